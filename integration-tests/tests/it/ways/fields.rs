//! Fields of tasks, right and wrong, offered in every way in which an author gives them.

use serde_json::{Map, Value, json};
use taskpawl::Taskpawl;

use crate::support::{Home, McpClient, Random};

/// The ways in which an author gives fields.
pub(super) const WAYS: [&str; 6] = [
    "plan file",
    "MCP plan",
    "create on the command line",
    "update on the command line",
    "MCP update",
    "library update",
];

/// Values of fields, of which some are right.
fn pool() -> Vec<(&'static str, Value)> {
    vec![
        ("retry", json!({"attempts": 3})),
        ("retry", json!({"attempts": 0})),
        ("retry", json!({"attempts": -1})),
        ("retry", json!({"attempts": 2, "factor": 1.5})),
        ("retry", json!({"attempts": 2, "factor": -1})),
        ("retry", json!({"attempts": 2, "atempts": 2})),
        ("repeat", json!({"until": "attempt > 1", "max": 3})),
        ("repeat", json!({"until": "attempt > 1", "max": 0})),
        ("priority", json!("high")),
        ("priority", json!("urgent")),
        ("labels", json!(["a", "b"])),
        ("labels", json!("a b")),
        ("labels", json!([1])),
        ("dueDate", json!("2030-01-31")),
        ("dueDate", json!("soon")),
        ("timeout", json!("5m")),
        ("timeout", json!(5)),
        ("timeout", json!("5 minutes")),
        ("estimate", json!("1h")),
        ("trigger", json!("all_finished")),
        ("trigger", json!("some_done")),
        ("mode", json!("parallel")),
        ("mode", json!("paralel")),
        ("approval", json!({"ask": "Now?", "options": ["yes", "no"]})),
        ("approval", json!({"ask": "Now?", "options": ["yes", "yes"]})),
        ("approval", json!({"ask": "Now?", "options": [""]})),
        ("approval", json!({"ask": "Now?", "expires": "1h", "onExpiry": "no such answer"})),
        ("writes", json!(["out/**"])),
        ("resources", json!({"gpu": 1})),
        ("resources", json!({"gpu": 0})),
        ("assigne", json!("ann")),
        ("prioritty", json!("high")),
        ("if", json!("true")),
        ("name", json!("")),
        ("name", json!("a name")),
        ("description", json!("a text")),
        ("description", json!(7)),
        ("x-own", json!(1)),
    ]
}

#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) accepted: usize,
    pub(super) refused: usize,
    pub(super) different: Vec<String>,
}

/// Offers every field by itself, and then random ones together.
pub(super) fn check(random: &mut Random, count: usize) -> Checked {
    let home = Home::new();
    let mut client = McpClient::start(home.program(&["mcp"]));
    let pool = pool();
    let alone = pool.iter().map(|(field, value)| Map::from_iter([((*field).to_owned(), value.clone())]));
    let mut cases: Vec<Map<String, Value>> = alone.collect();
    for _ in 0..count {
        let some = (0..1 + random.below(3)).map(|_| pool[random.below(pool.len())].clone());
        cases.push(some.map(|(field, value)| (field.to_owned(), value)).collect());
    }
    let mut checked = Checked::default();
    for (number, fields) in cases.iter().enumerate() {
        let answers = offer(&home, &mut client, number, fields, fields);
        match answers.iter().filter(|accepted| **accepted).count() {
            0 => checked.refused += 1,
            accepted if accepted == WAYS.len() => checked.accepted += 1,
            _ => {
                let ways = WAYS.iter().zip(&answers).filter(|(_, accepted)| **accepted).map(|(way, _)| *way);
                let taken: Vec<&str> = ways.collect();
                checked.different.push(format!("{}: taken by {}", json!(fields), taken.join(", ")));
            }
        }
    }
    checked
}

/// Returns whether a way that is given other fields than the rest is found.
pub(super) fn control() -> bool {
    let home = Home::new();
    let mut client = McpClient::start(home.program(&["mcp"]));
    let right = Map::from_iter([("priority".to_owned(), json!("high"))]);
    let wrong = Map::from_iter([("priority".to_owned(), json!("urgent"))]);
    let answers = offer(&home, &mut client, 0, &right, &wrong);
    answers.iter().any(|accepted| *accepted) && answers.iter().any(|accepted| !*accepted)
}

/// Returns whether each way takes the fields, each for a task of its own; the last one is given `last`.
fn offer(
    home: &Home,
    client: &mut McpClient,
    number: usize,
    fields: &Map<String, Value>,
    last: &Map<String, Value>,
) -> [bool; WAYS.len()] {
    let plans = Taskpawl::open(home.store()).unwrap();
    let task = |id: &str| {
        let own = json!({"id": id, "name": "a task", "call": {"log": {"message": "x"}}});
        let Value::Object(mut task) = own else { unreachable!() };
        task.extend(fields.clone());
        json!({"name": id, "tasks": [task]})
    };
    let base = |way: &str| {
        let id = format!("{way}-{number}");
        let own = json!({"tasks": [{"id": id, "call": {"log": {"message": "x"}}}]});
        plans.apply_text(&own.to_string(), &id).unwrap();
        id
    };
    home.file("fields.json", &task(&format!("file-{number}")).to_string());
    let by_file = home.run(&["apply", "fields.json", "--dry-run"]).code == Some(0);
    let plan = json!({"plan": task(&format!("mcp-{number}")), "dry_run": true});
    let by_mcp = client.call("plan_write", &plan)["isError"] != true;
    let set: Vec<String> = fields.iter().map(|(field, value)| format!("{field}={value}")).collect();
    let all: Vec<&str> = set.iter().flat_map(|field| ["--set", field]).collect();
    // The command line has the name as an argument.
    let others = set.iter().filter(|field| !field.starts_with("name=")).flat_map(|field| ["--set", field]);
    let name = fields.get("name").and_then(Value::as_str).unwrap_or("a task");
    let id = format!("create-{number}");
    let create = ["create", name, "--id", &id, "--tool", "log", "--args", r#"{"message": "x"}"#];
    let by_create = home.run(&create.into_iter().chain(others).collect::<Vec<_>>()).code == Some(0);
    let id = base("cli");
    let by_update = home.run(&["update", &id].into_iter().chain(all).collect::<Vec<_>>()).code == Some(0);
    let update = json!({"id": base("update"), "fields": fields, "agent": "ann"});
    let by_mcp_update = client.call("task_update", &update)["isError"] != true;
    let by_library = plans.update_task(&base("library"), last.clone()).is_ok();
    [by_file, by_mcp, by_create, by_update, by_mcp_update, by_library]
}
