//! Tests of the program inside a call that has plan access.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::harness::Cli;

const PLAN: &str = "
name: demo
tasks:
  - id: agent
    calls: [{toolName: shell, planAccess: ACCESS, args: {command: sh agent.sh}}]
  - {id: last, needs: [agent], run: echo last}
  - {id: by-hand, needs: [agent]}
";

/// Runs a plan whose first task executes a script. In it, `taskpawl` is this program, and `try` appends the
/// result of a command to `tried.txt`.
fn run(access: &str, script: &str) -> Cli {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", &PLAN.replace("ACCESS", access));
    cli.file(
        "more.yaml",
        "tasks: [{id: more, run: echo more}, {name: after more, needs: [more], run: echo after}]",
    );
    let program = env!("CARGO_BIN_EXE_taskpawl");
    let head = format!(
        "set -e\ntaskpawl() {{ {program} \"$@\"; }}\ntry() {{ code=0; taskpawl \"$@\" >out.txt 2>&1 || code=$?; \
         echo \"$code $1: $(head -n 1 out.txt)\" >> tried.txt; }}\n"
    );
    cli.file("agent.sh", &(head + script));
    cli.run(&["run-all-ready", "--plan", "plan.yaml"]);
    cli
}

fn read(cli: &Cli, name: &str) -> String {
    fs::read_to_string(cli.path("work").join(name)).unwrap_or_default()
}

#[test]
fn a_call_looks_at_its_plan_and_adds_to_it() {
    let cli = run(
        "add",
        "taskpawl ready --quiet
taskpawl create Found --id found --run 'echo found' --actor mallory
taskpawl create Group --id group --needs by-hand
taskpawl add-subtask group Below --id below --run 'echo below'
taskpawl add-tool-call group --tool log --args '{\"message\": \"x\"}'
taskpawl apply more.yaml
taskpawl apply more.yaml > again.txt
taskpawl add-dependency last more
taskpawl note by-hand 'look at it'
taskpawl list --fields id > list.json
taskpawl where > where.txt
taskpawl explain last > explain.txt
taskpawl history agent > history.txt
taskpawl graph > graph.txt
taskpawl critical-path > path.txt
taskpawl runs > runs.txt
",
    );
    let states = cli.run(&["list", "--fields", "id,status,plan"]).ok();
    insta::assert_snapshot!(states.stdout);
    let history = cli.run(&["history", "found"]).ok();
    assert!(history.stdout.contains("user@host") && !history.stdout.contains("mallory"), "{history}");
    assert!(
        read(&cli, "where.txt").starts_with("store    the plan of this call\n"),
        "{}",
        read(&cli, "where.txt")
    );
    assert_eq!(read(&cli, "again.txt"), "plan demo\n  unchanged      2\n");
    assert!(read(&cli, "list.json").contains("\"below\""), "{}", read(&cli, "list.json"));
    for file in ["explain.txt", "history.txt", "graph.txt", "path.txt", "runs.txt"] {
        assert!(!read(&cli, file).is_empty(), "{file}");
    }
}

#[test]
fn everything_else_is_refused_from_within_a_call() {
    let script = "taskpawl create Found --id found
for command in run-all-ready 'run found' 'run found --json' 'logs agent' 'done last' 'fail by-hand' 'skip last' 'block last --reason x' \
 'unblock last' 'retry last' 'reopen last' 'cancel found' 'approve last' 'reject last' 'claim by-hand' 'claim --next' 'renew last' \
 'release last' 'delete found' 'update found --priority high' 'remove-dependency last agent' 'undo' 'prune --older-than 1d' \
 'doctor' 'init' 'apply more.yaml --dry-run' 'apply more.yaml --prune' 'apply more.yaml --fresh' \
 'add-subtask found --existing last' 'add-subtask by-hand X' 'add-tool-call last --tool sleep --args {\"duration\":\"1ms\"}' 'add-dependency last by-hand' \
 'create X --id last' 'show nobody'; do try $command; done
TASKPAWL_FD=7777 try list
TASKPAWL_FD=x try list
try list --store other.db --quiet
";
    let cli = run("add", script);
    insta::assert_snapshot!(read(&cli, "tried.txt"));
    let cli = run("read", "try list\ntry create X --id x\ntry apply more.yaml\ntry note last x\n");
    insta::assert_snapshot!(read(&cli, "tried.txt"));
}

#[test]
fn what_a_call_leaves_running_has_no_part_in_its_plan() {
    // The process leaves its session, so that the end of the call does not find it. It uses the plan access
    // after the call has ended.
    let script = "(TASKPAWL_PROCESS= setsid sh -c 'while ! [ -e over ]; do sleep 0.02; done; PROGRAM create Late --id late \
                  >late.txt 2>&1; echo $? >code.txt' >/dev/null 2>&1 &)\n";
    let script = script.replace("PROGRAM", env!("CARGO_BIN_EXE_taskpawl"));
    let cli = Cli::new().with_programs();
    let plan = "tasks: [{id: agent, calls: [{toolName: shell, planAccess: add, args: {command: sh agent.sh}}]},
      {id: then, needs: [agent], run: 'touch over; for i in 1 2 3 4 5 6 7 8 9 10; do [ -s code.txt ] || sleep 0.1; done'}]";
    cli.file("plan.yaml", plan);
    cli.file("agent.sh", &script);
    cli.run(&["run-all-ready", "--plan", "plan.yaml"]).ok();
    // Either it was killed with the call, or its request was refused after the end of the call.
    let late = read(&cli, "late.txt");
    assert!(late.is_empty() || late.contains("the call that gave access to this plan has ended"), "{late}");
    assert_eq!(cli.run(&["show", "late"]).code, Some(6));
}

/// Sends requests to `taskpawl mcp` inside a call, each after the previous response.
fn talk(access: &str, requests: &[(&str, &str)]) -> (Cli, Vec<Value>) {
    let beginning =
        r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
    let mut script = "ask() { printf '%s\\n' \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$1,\\\"method\\\":\\\"$2\\\",\\\"params\\\":$3}\"; \
                      for i in $(seq 400); do grep -q \"\\\"id\\\":$1[,}]\" said.txt 2>/dev/null && return; sleep 0.05; done; }\n\
                      { "
        .to_owned();
    script.push_str(&["ask 0 initialize '", beginning, "'\n"].concat());
    script += "printf '%s\\n' '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}'\n";
    for (number, (method, params)) in requests.iter().enumerate() {
        writeln!(script, "ask {} {method} '{params}'", number + 1).unwrap();
    }
    script += "} | taskpawl mcp > said.txt 2> errors.txt\n";
    let cli = run(access, &script);
    let said = read(&cli, "said.txt");
    let answers: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = |number: usize| answers.iter().find(|answer| answer["id"] == number).cloned();
    let all = (1..=requests.len()).map(|number| {
        answer(number).unwrap_or_else(|| panic!("{number}: {said}{}", read(&cli, "errors.txt")))["result"]
            .clone()
    });
    let all = all.collect();
    (cli, all)
}

fn tool_names(listed: &Value) -> Vec<&str> {
    listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn an_mcp_server_within_a_call_that_adds_serves_what_adds() {
    let (cli, said) = talk(
        "add",
        &[
            ("tools/list", "{}"),
            (
                "tools/call",
                r#"{"name":"task_add","arguments":{"name":"Found","id":"found","run":"echo found"}}"#,
            ),
            (
                "tools/call",
                r#"{"name":"plan_write","arguments":{"plan":{"tasks":[{"id":"more","name":"More","run":"echo more"}]}}}"#,
            ),
            ("tools/call", r#"{"name":"plan_show","arguments":{}}"#),
            ("tools/call", r#"{"name":"task_get","arguments":{"id":"found"}}"#),
            ("tools/call", r#"{"name":"task_update","arguments":{"id":"by-hand","action":"claim"}}"#),
            ("tools/call", r#"{"name":"task_add","arguments":{"name":"X","request_id":"r"}}"#),
            ("tools/call", r#"{"name":"plan_write","arguments":{"plan":{"tasks":[]},"dry_run":true}}"#),
        ],
    );
    assert_eq!(tool_names(&said[0]), ["plan_show", "plan_write", "task_add", "task_get", "ready_list"]);
    assert!(!said[0].to_string().contains("request_id"), "{}", said[0]);
    for answer in &said[1..5] {
        assert_ne!(answer["isError"], true, "{answer}");
        let next = answer["structuredContent"]["nextActions"].to_string();
        assert!(!next.contains("run_ready") && !next.contains("task_update"), "{answer}");
    }
    assert_eq!(said[1]["structuredContent"]["task"]["id"], "found");
    assert_eq!(said[2]["structuredContent"]["created"][0], "more");
    for (answer, words) in
        said[5..].iter().zip(["`task_update` is not allowed", "leave it out", "join that of the call"])
    {
        assert!(answer["isError"] == true && answer.to_string().contains(words), "{answer}");
    }
    // Tasks that an agent adds wait for approval.
    for id in ["found", "more"] {
        let shown = cli.run(&["show", id, "--json"]).ok().json()["data"].clone();
        assert_eq!(
            (&shown["plan"], &shown["blockedReason"]["type"]),
            (&"demo".into(), &"approval".into()),
            "{shown}"
        );
    }
    let history = cli.run(&["history", "found"]).ok();
    assert!(history.stdout.contains("user@host"), "{history}");
}

#[test]
fn an_mcp_server_within_a_call_that_reads_serves_what_reads() {
    let (cli, said) = talk(
        "read",
        &[
            ("tools/list", "{}"),
            ("tools/call", r#"{"name":"ready_list","arguments":{}}"#),
            ("tools/call", r#"{"name":"task_add","arguments":{"name":"Found","id":"found"}}"#),
            ("tools/call", r#"{"name":"ready_list","arguments":{"claim":true}}"#),
        ],
    );
    assert_eq!(tool_names(&said[0]), ["plan_show", "task_get", "ready_list"]);
    assert_ne!(said[1]["isError"], true, "{}", said[1]);
    assert!(said[2]["isError"] == true && said[2].to_string().contains("planAccess: add"), "{}", said[2]);
    assert!(said[3]["isError"] == true, "{}", said[3]);
    assert_eq!(cli.run(&["show", "found"]).code, Some(6));
}

#[test]
fn an_mcp_server_within_a_call_opens_no_other_door() {
    let cli = run("add", "try mcp --http 0\ntry mcp --allow sandboxed </dev/null\n");
    let tried = read(&cli, "tried.txt");
    let lines: Vec<&str> = tried.lines().collect();
    assert!(lines[0].starts_with("7 mcp: ") && lines[0].contains("`--http` is not allowed"), "{tried}");
    assert!(
        lines[1].starts_with("0 mcp: ") && lines[1].contains("`--allow` changes nothing within a call"),
        "{tried}"
    );
}

#[test]
fn a_nested_run_says_once_that_it_relies_on_the_outer_sandbox() {
    let cli = Cli::new().with_programs();
    let inner = "tasks: [{id: a, run: echo a}, {id: b, run: echo b}]";
    let program = env!("CARGO_BIN_EXE_taskpawl");
    let command = format!(
        "{program} --store $TMPDIR/own.db run-all-ready --plan inner.yaml 2>&1; {program} --store $TMPDIR/own.db show a --json > shown.json; {program} doctor"
    );
    cli.file("inner.yaml", inner);
    cli.file("outer.json", &serde_json::json!({"tasks": [{"id": "outer", "run": command}]}).to_string());
    cli.run(&["run-all-ready", "--plan", "outer.json", "--quiet"]).ok();
    let shown = cli.run(&["show", "outer", "--json"]).ok().json();
    let result = &shown["data"]["metadata"]["toolCalls"][0]["result"];
    if result["sandbox"].get("isolation").is_some() {
        return taskpawl_fuzz::skip("namespaces", "nested runs", result["sandbox"].to_string());
    }
    let said = result["stdout"].as_str().unwrap();
    assert_eq!(said.matches("this runs in the sandbox of another taskpawl").count(), 1, "{result}");
    assert!(said.contains("rely on the sandbox of the taskpawl around this one"), "{said}");
    let inner: Value = serde_json::from_str(&read(&cli, "shown.json")).unwrap();
    let sandbox = &inner["data"]["metadata"]["toolCalls"][0]["result"]["sandbox"];
    assert_eq!((&sandbox["nested"], result["sandbox"].get("nested")), (&true.into(), None), "{sandbox}");
    // The least level is that of the outer sandbox.
    cli.policy("least_level = 'A'\n");
    cli.run(&["run-all-ready", "--plan", "outer.json", "--fresh", "--quiet"]).ok();
}
