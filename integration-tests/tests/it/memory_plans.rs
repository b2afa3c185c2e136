//! A large plan over MCP takes little memory.

use serde_json::{Value, json};

use crate::support::{Figures, Home, McpClient};

/// Memory limit of a server for a plan of 7 MB, in MiB.
const MAX_MIB: u64 = 250;

/// Returns plans of 7 MB: many tasks, tasks with long commands, and a few tasks with long texts.
fn plans() -> [(&'static str, Vec<Value>); 3] {
    let chained = |number: usize| {
        let needs: Vec<String> = (number > 0).then(|| format!("t{}", number - 1)).into_iter().collect();
        let name = format!("task number {number} with a name");
        json!({"id": format!("t{number}"), "name": name, "needs": needs, "run": format!("echo {}", "x".repeat(120))})
    };
    let long = |number: usize| json!({"id": format!("t{number}"), "description": "d".repeat(600), "run": format!("echo {}", "x".repeat(360))});
    let few = |number: usize| json!({"id": format!("t{number}"), "description": "d".repeat(700_000)});
    [
        ("35,000 tasks in a chain", (0..35_000).map(chained).collect()),
        ("7,000 tasks with long commands", (0..7_000).map(long).collect()),
        ("10 tasks with long texts", (0..10).map(few).collect()),
    ]
}

/// The maximum number of tasks of one call.
const MAX_TASKS: usize = 40_000;

/// Returns the largest plans of minimal tasks: only commands, and a chain. Those of ids alone join in parts, see below.
fn short_tasks() -> [(&'static str, Vec<Value>); 2] {
    let run = |number: usize| json!({"id": format!("t{number}"), "run": "true"});
    let chained = |number: usize| match number.checked_sub(1) {
        Some(before) => json!({"id": format!("t{number}"), "needs": [format!("t{before}")], "run": "true"}),
        None => run(number),
    };
    let all = |task: &dyn Fn(usize) -> Value| (0..MAX_TASKS).map(task).collect();
    [("tasks with a command", all(&run)), ("such tasks in a chain", all(&chained))]
}

#[test]
fn as_many_tasks_as_one_call_may_write_take_little_memory() {
    let mut figures = Figures::of("as_many_tasks_as_one_call_may_write_take_little_memory", 0);
    for (label, tasks) in short_tasks() {
        let peak = peak(&json!({"plan": {"name": "large", "tasks": tasks}}), MAX_TASKS);
        figures.add(format!("{peak} MiB for {MAX_TASKS} {label}"));
        assert!(peak < MAX_MIB, "{label}: {peak} MiB");
    }
}

#[test]
fn seven_mb_of_bare_tasks_are_refused_with_little_memory_and_join_in_parts() {
    let mut figures = Figures::of("seven_mb_of_bare_tasks_are_refused_with_little_memory", 0);
    let tasks: Vec<Value> = (0..460_000).map(|number| json!({"id": format!("t{number}")})).collect();
    let arguments = json!({"plan": {"name": "large", "tasks": tasks}});
    let bytes = arguments.to_string().len();
    assert!((6_900_000..8_300_000).contains(&bytes), "{bytes} bytes");
    let home = Home::new();
    let mut client = McpClient::start(home.program(&["mcp"]));
    let told = client.refused("plan_write", &arguments);
    assert!(told.contains("too many objects") && told.contains("merge"), "{told}");
    figures.add(format!("{} MiB for {} tasks that are not read", peak_of(&client), tasks.len()));
    let arguments = json!({"plan": {"name": "large", "tasks": tasks[..129_000]}});
    let answer = client.call("plan_write", &arguments);
    let told = answer["structuredContent"]["error"]["message"].as_str().unwrap();
    assert!(told.contains("more than 40000 tasks") && told.contains("merge"), "{told}");
    figures.add(format!("{} MiB for 129,000 tasks that are refused", peak_of(&client)));
    for part in tasks[..2 * MAX_TASKS].chunks(MAX_TASKS) {
        let arguments = json!({"plan": {"name": "large", "tasks": part}, "merge": true});
        assert_ne!(client.call("plan_write", &arguments)["isError"], true);
    }
    let peak = peak_of(&client);
    figures.add(format!("{peak} MiB after two parts of {MAX_TASKS}"));
    assert!(peak < MAX_MIB, "{peak} MiB");
    drop(client);
    assert_eq!(home.manager().counts().unwrap().values().sum::<u64>(), 2 * MAX_TASKS as u64);
}

#[test]
fn a_plan_of_7_mb_over_mcp_takes_little_memory() {
    let mut figures = Figures::of("a_plan_of_7_mb_over_mcp_takes_little_memory", 0);
    for (label, tasks) in plans() {
        let count = tasks.len();
        let arguments = json!({"plan": {"name": "large", "tasks": tasks}});
        let bytes = arguments.to_string().len();
        assert!((6_900_000..8_300_000).contains(&bytes), "{label}: {bytes} bytes");
        let peak = peak(&arguments, count);
        figures.add(format!("{peak} MiB for {label}"));
        assert!(peak < MAX_MIB, "{label}: {peak} MiB");
        assert!(peak > bytes as u64 >> 20, "the figure is that of the server: {peak} MiB");
    }
}

/// Returns the peak memory of a server that gets a call which creates `count` tasks, in MiB.
fn peak(arguments: &Value, count: usize) -> u64 {
    let home = Home::new();
    let mut client = McpClient::start(home.program(&["mcp"]));
    let answer = client.call("plan_write", arguments);
    assert_ne!(answer["isError"], true, "{answer}");
    let peak = peak_of(&client);
    drop(client);
    assert_eq!(home.manager().counts().unwrap().values().sum::<u64>(), count as u64);
    peak
}

/// Returns the peak memory of a server so far, in MiB.
fn peak_of(client: &McpClient) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.server_id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib >> 10
}
