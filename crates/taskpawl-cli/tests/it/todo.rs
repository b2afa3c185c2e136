//! Tests of the to-do lists of models on the command line.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};
use taskpawl::Taskpawl;
use taskpawl::tools::CallContext;
use taskpawl_todo::{Dialect, Lists, ScopeRule};

use crate::harness::Cli;
use crate::terminal::terminal;

const TALK: &str = "0b2f6c1e-9a4d-4c55-8a39-2f6f0f5f7f10";

/// A process that owns a checklist and mirrors it into the store.
struct ChecklistOwner {
    lists: Lists,
    cli_store: Taskpawl,
}

impl ChecklistOwner {
    fn of(cli: &Cli, scope: &str) -> Self {
        let cli_store = Taskpawl::open(cli.path("tasks.db").to_str().unwrap()).unwrap();
        let lists = Lists::builder().scope(ScopeRule::fixed(scope)).keep(true).build();
        lists.mirror_to(cli_store.manager(), &cli_store.engine().project().files);
        Self { lists, cli_store }
    }

    fn call(&self, args: Value) -> String {
        let tool = self.lists.tools(Dialect::Checklist).pop().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let said = runtime.block_on(tool.call(CallContext::new("/", "/tmp/call"), args));
        said.unwrap().as_str().unwrap().to_owned()
    }

    fn write(&self) {
        let list = json!([
            {"id": 1, "title": "Set up project structure", "status": "completed"},
            {"id": 3, "title": "Implement **tool** registration", "status": "in-progress"},
            {"id": 4, "title": "Build UI\u{1b}[31m widget", "status": "not-started"},
        ]);
        self.call(json!({ "taskList": list }));
    }
}

#[test]
fn queues_have_a_command_for_each_operation() {
    let cli = Cli::new();
    let lines: &[&[&str]] = &[
        &["todo-rpush", "--agent", "a", "Fix authentication bug"],
        &["todo-lpush", "--agent", "a", "first"],
        &["todo-rpush", "--agent", "a", "--json", "last"],
        &["todo-list", "--agent", "a"],
        &["todo-lpeek", "--agent", "a"],
        &["todo-rpeek", "--agent", "a"],
        &["todo-lpop", "--agent", "a"],
        &["todo-rpop", "--agent", "a"],
        &["todo-count", "--agent", "a"],
        &["todo-count", "--agent", "b"],
        &["todo-lpop", "--agent", "b"],
        &["todo-list"],
        &["todo-list", "--agent", "../a"],
        &["todo-rpush", "--agent", "a", " "],
        &["todo-lpop", "--agent", "a", "--lease", "soon"],
        &["todo", "ack", "--agent", "a", "nothing"],
    ];
    insta::assert_snapshot!(cli.session(lines));
    let file = cli.path(".local/state/taskpawl/files/system/agents/a/tasks.json");
    assert_eq!(fs::read_to_string(file).unwrap(), r#"{"items":["Fix authentication bug"]}"#);
}

#[test]
fn a_queue_is_in_the_state_directory_of_its_project_or_where_it_is_said() {
    let cli = Cli::without_store().with("TASKPAWL_ACTOR", "agent-7");
    cli.run(&["init"]).ok();
    cli.run(&["todo-rpush", "x"]).ok();
    let id = cli.run(&["where", "--json"]).ok().json()["data"]["id"].as_str().unwrap().to_owned();
    let file = format!(".local/state/taskpawl/{id}/files/system/agents/agent-7/tasks.json");
    assert!(cli.path(&file).exists());
    cli.run(&["todo-rpush", "--root", "queues", "y"]).ok();
    assert!(cli.path("work/queues/system/agents/agent-7/tasks.json").exists());
    assert_eq!(cli.run(&["todo-list", "--root", "queues"]).ok().stdout, "{\"items\":[\"y\"]}\n");
}

#[test]
fn what_is_taken_with_a_lease_is_acknowledged() {
    let cli = Cli::new();
    cli.run(&["todo-rpush", "--agent", "a", "x"]).ok();
    let taken = cli.run(&["todo-lpop", "--agent", "a", "--lease", "5m"]).ok().json();
    let receipt = taken["receipt"].as_str().unwrap();
    assert_eq!(taken["item"], "x");
    assert_eq!(cli.run(&["todo", "ack", "--agent", "a", receipt]).ok().stdout, "{\"ok\":true}\n");
    assert_eq!(cli.run(&["todo", "ack", "--agent", "a", receipt]).code, Some(2));
}

#[test]
fn tools_are_listed_and_called_like_all_others() {
    let cli = Cli::new();
    let listed = cli.run(&["tools", "list", "--json"]).ok().json();
    let names: Vec<&str> =
        listed["data"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in taskpawl_todo::tool_names() {
        assert!(names.contains(&name), "{name}");
    }
    let add = json!({"title": "a", "conversation_id": TALK}).to_string();
    cli.run(&["tools", "call", "AddTask", "--args", &add]).ok();
    let with_scope = Cli::new().with("TASKPAWL_SCOPE", TALK);
    with_scope.run(&["tools", "call", "AddTask", "--args", r#"{"title": "b"}"#]).ok();
    for (cli, title) in [(&cli, "a"), (&with_scope, "b")] {
        let file = cli.path("work/.agents/tasks/0b2f6c1e9a4d4c558a392f6f0f5f7f10.json");
        assert!(fs::read_to_string(file).unwrap().contains(&format!(r#""title":"{title}""#)));
    }
    let refused = cli.run(&["tools", "call", "ListTasks"]);
    let line = "Error: Task list is not available (no conversation context).";
    assert!(refused.code == Some(1) && refused.stdout.contains(line), "{refused}");
}

#[test]
fn a_tool_of_the_user_takes_the_place_of_one_with_its_name() {
    let cli = Cli::new().with_programs();
    let config = "[tools.task]\ndescription = \"Mine.\"\nargv = [\"echo\", \"mine\"]\n";
    fs::create_dir_all(cli.path(".config/taskpawl")).unwrap();
    fs::write(cli.path(".config/taskpawl/config.toml"), config).unwrap();
    assert!(cli.run(&["tools", "show", "task"]).ok().stdout.contains("Mine."));
    let of_agent = |tool: &str| {
        let run = cli.run(&["policy", "check", "--tool", tool, "--origin", "agent", "--json"]);
        run.json()["data"]["decision"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!([of_agent("AddTask"), of_agent("task")], ["allow", "ask"]);
}

#[test]
fn plans_call_the_tools_and_watchers_hear_of_checklists() {
    let cli = Cli::new();
    let list = r#"[{"id": 1, "title": "a", "status": "completed"}, {"id": 2, "title": "b", "status": "not-started"}]"#;
    let plan = format!(
        "name: p\ntasks:\n  - id: write\n    call: {{manage_tasks: {{session_id: s, taskList: {list}}}}}\n  - id: read\n    needs: write\n    call: {{manage_tasks: {{session_id: s}}}}\n"
    );
    cli.file("plan.yaml", &plan);
    cli.run(&["run-all-ready", "--plan", "plan.yaml"]).ok();
    let result = &cli.run(&["show", "read", "--json"]).ok().json()["data"]["result"];
    assert!(result.as_str().unwrap().contains(r#""title":"b","status":"not-started""#), "{result}");
    let history = cli.run(&["history"]).ok().stdout;
    let heard: Vec<&str> =
        history.lines().filter_map(|line| line.split_once("checklist of ")).map(|(_, rest)| rest).collect();
    // One event for the written list, and one because its run has ended.
    assert_eq!(heard, ["s: 1/2 completed", "s: 0/0 completed"], "{history}");
    assert_eq!(cli.run(&["todo", "prompt"]).ok().stdout, "");
}

#[test]
fn another_process_reads_a_checklist_and_clears_it() {
    let cli = Cli::new();
    let owner = ChecklistOwner::of(&cli, "talk");
    owner.write();
    insta::assert_snapshot!(cli.session(&[
        &["todo", "prompt"],
        &["todo", "prompt", "--scope", "other"],
        &["todo", "prompt", "--json"],
        &["todo", "clear"],
        &["todo", "clear"],
        &["todo", "prompt"],
    ]));
    assert_eq!(owner.call(json!({})), r#"{"success":true,"taskList":[]}"#);
    assert_eq!(owner.cli_store.manager().store().events_since(0, 0).unwrap().len(), 2);
}

#[test]
fn items_become_tasks_when_somebody_says_so() {
    let cli = Cli::new();
    let owner = ChecklistOwner::of(&cli, "talk");
    owner.write();
    let lines: &[&[&str]] = &[
        &["todo", "promote"],
        &["todo", "promote", "--dry-run"],
        &["todo", "promote", "--yes"],
        &["todo", "promote", "--yes"],
        &["todo", "promote", "7", "--yes"],
        &["todo", "promote", "1", "--yes", "--quiet"],
        &["list", "--fields", "name,status,labels"],
        &["todo", "promote", "--dialect", "session"],
        &["todo", "promote", "--dialect", "queue"],
        &["todo", "promote", "--dialect", "conversation", "--scope", "x"],
        &["todo", "promote", "--dialect", "chat"],
    ];
    insta::assert_snapshot!(cli.session(lines));
}

#[test]
fn on_a_terminal_promote_asks() {
    let cli = Cli::new();
    cli.run(&["todo-rpush", "--agent", "a", "Write the report"]).ok();
    for (answer, tasks) in [("n\n", 0), ("y\n", 1)] {
        let (mut person, program) = terminal();
        let args = ["todo", "promote", "--dialect", "queue", "--scope", "a"];
        let mut command = cli.command(&cli.path("work"), &args);
        command.stdin(program.try_clone().unwrap()).stdout(Stdio::piped()).stderr(program);
        let child = command.spawn().unwrap();
        person.write_all(answer.as_bytes()).unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
        drop(command);
        // The terminal returns its data in pieces, the first of which is the echoed answer. After the last
        // copy of the other end is closed, reading fails with EIO.
        let mut shown = Vec::new();
        let _ = person.read_to_end(&mut shown);
        assert!(String::from_utf8_lossy(&shown).contains("Write the report"));
        let list = cli.run(&["list", "--json"]).ok().json();
        assert_eq!(list["data"].as_array().unwrap().len(), tasks, "{answer}");
    }
}

#[test]
fn help_and_guides_are_there_for_models() {
    let cli = Cli::new();
    assert!(cli.run(&["todo", "help", "todowrite"]).ok().stdout.starts_with("todowrite (session)\n"));
    assert!(cli.run(&["todo", "guide", "queue"]).ok().stdout.starts_with("# The queues of agents\n"));
    insta::assert_snapshot!(cli.session(&[&["todo", "help", "todowrit"], &["todo", "guide", "sesion"]]));

    let path = cli.path("work/.agent/prompts/rules/todo_tool_usage.md");
    cli.run(&["todo", "guide", "session", "--write"]).ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), taskpawl_todo::guide(Dialect::Session));
    cli.run(&["todo", "guide", "session", "--write"]).ok();
    fs::write(&path, "mine").unwrap();
    assert_eq!(cli.run(&["todo", "guide", "session", "--write"]).code, Some(2));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    cli.run(&["todo", "guide", "session", "--write", "--force"]).ok();
    cli.run(&["todo", "guide", "checklist:manage_todo_list", "--write", "a/b.md"]).ok();
    assert!(fs::read_to_string(cli.path("work/a/b.md")).unwrap().contains("manage_todo_list"));
}

/// Calls that a schema would refuse, each with the answer of the dialect and whether it is an error.
fn hard_calls() -> Vec<(&'static str, Value, &'static str, bool)> {
    let item = |status: &str| json!([{"id": 1, "title": "a", "status": status}]);
    let todo = |status: &str| json!([{"content": "a", "status": status, "priority": "low"}]);
    let updated = r#"{"success":true,"message":"Task list updated: 0/0 completed"}"#;
    vec![
        (
            "AddTask",
            json!({"title": "One", "description": null, "conversation_id": TALK}),
            r#""title":"One","description":"","done":false}"#,
            false,
        ),
        ("AddTask", json!({"conversation_id": TALK}), r#"{"ok":false,"error":"title is required"}"#, true),
        (
            "CompleteTask",
            json!({"conversation_id": TALK, "taskId": null}),
            r#"{"ok":false,"error":"taskId is required"}"#,
            true,
        ),
        ("manage_tasks", json!({"taskList": "[]"}), updated, false),
        ("manage_tasks", json!({"todoList": [], "operation": null}), updated, false),
        ("manage_todo_list", json!({"taskList": "[]"}), updated, false),
        (
            "manage_tasks",
            json!({"taskList": 1}),
            r#"{"success":false,"error":"Invalid JSON array for taskList"}"#,
            true,
        ),
        (
            "manage_tasks",
            json!({"taskList": item("zap")}),
            r#"{"success":false,"error":"taskList[0].status: unknown status `zap`"#,
            true,
        ),
        (
            "todowrite",
            json!({"todos": todo("zap")}),
            r#"{"error":"todos[0].status: unknown status `zap`"#,
            true,
        ),
        ("task", json!({"agent_id": "a", "operation": "lpop", "lease": null}), r#"{"item":null}"#, false),
        ("task", json!({"operation": "lpop"}), r#"{"error":"agent_id is required"}"#, true),
        (
            "task",
            json!({"agent_id": "a", "operation": "zap"}),
            r#"{"error":"unknown operation `zap`"}"#,
            true,
        ),
    ]
}

#[test]
fn a_call_by_hand_gets_the_answer_of_the_dialect_whatever_the_arguments() {
    let cli = Cli::new();
    for (tool, args, answer, is_error) in hard_calls() {
        let run = cli.run(&["tools", "call", tool, "--args", &args.to_string()]);
        assert!(run.stdout.contains(answer), "{tool} {args}: {run}");
        assert_eq!(run.code, Some(i32::from(is_error)), "{tool} {args}: {run}");
    }
}

#[test]
fn a_plan_gets_the_answer_of_the_dialect_whatever_the_arguments() {
    let cli = Cli::new();
    let calls = hard_calls();
    let tasks: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(number, (tool, args, ..))| json!({"id": format!("t{number}"), "call": {*tool: args}}))
        .collect();
    cli.file("plan.json", &json!({"name": "p", "tasks": tasks}).to_string());
    cli.run(&["plan", "check", "plan.json"]).ok();
    cli.run(&["run-all-ready", "--plan", "plan.json"]);
    for (number, (tool, args, answer, is_error)) in calls.iter().enumerate() {
        let task = cli.run(&["show", &format!("t{number}"), "--json"]).ok().json()["data"].clone();
        let call = &task["metadata"]["toolCalls"][0];
        assert!(call["result"].as_str().unwrap_or_default().contains(answer), "{tool} {args}: {task}");
        assert_eq!(task["status"], if *is_error { "failed" } else { "done" }, "{tool} {args}");
    }
}

#[test]
fn authors_of_plans_are_told_of_misspelt_arguments_of_dialects() {
    let cli = Cli::new();
    cli.file("plan.yaml", "tasks: [{id: a, call: {AddTask: {titel: x}}}]");
    let refused = cli.run(&["plan", "check", "plan.yaml"]);
    assert!(refused.code == Some(7) && refused.stdout.contains("did you mean `title`?"), "{refused}");
    // An unknown name that resembles no argument is ignored, as in all plans.
    cli.file("plan.yaml", "tasks: [{id: a, call: {AddTask: {title: x, explanation: y}}}]");
    cli.run(&["plan", "check", "plan.yaml"]).ok();
}

#[test]
fn the_plan_of_the_documentation_uses_what_a_tool_answered() {
    let cli = Cli::new();
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/todo.md");
    let docs = fs::read_to_string(docs).unwrap();
    let plan = docs.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    cli.file("plan.yaml", plan);
    cli.run(&["run-all-ready", "--plan", "plan.yaml"]).ok();
    let file = cli.path("work/.agents/tasks/0b2f6c1e9a4d4c558a392f6f0f5f7f10.json");
    assert!(fs::read_to_string(file).unwrap().contains(r#""done":true"#));
}

#[test]
fn promote_finds_a_list_by_its_scope() {
    let cli = Cli::new();
    let add = json!({"title": "Look at it", "conversation_id": TALK}).to_string();
    cli.run(&["tools", "call", "AddTask", "--args", &add]).ok();
    cli.run(&["todo-rpush", "--agent", "a", "Write the report"]).ok();
    for (scope, title) in [(TALK, "Look at it"), ("a", "Write the report")] {
        let shown = cli.run(&["todo", "promote", "--scope", scope, "--yes"]).ok();
        assert!(shown.stdout.contains(title), "{shown}");
    }
    let none = cli.run(&["todo", "promote", "--scope", "b", "--yes"]).ok();
    assert!(none.stderr.contains("no checklist, conversation or queue of `b` has an item"), "{none}");
    cli.run(&["todo-rpush", "--agent", TALK, "Another"]).ok();
    let several = cli.run(&["todo", "promote", "--scope", TALK, "--yes"]);
    assert_eq!(several.code, Some(2));
    assert!(several.stderr.contains("conversation, queue"), "{several}");
    assert!(several.stderr.contains("`--dialect DIALECT` says which"), "{several}");
}
