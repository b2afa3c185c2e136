//! The to-do dialects over MCP: their contract about tools, scopes and shared lists.

use std::fs;

use serde_json::{Value, json};
use taskpawl_todo::{Dialect, Lists, ScopeRule, guide};

use crate::harness::Cli;
use crate::mcp_server::{Agent, HttpServer, said};

const TALK: &str = "0B2F6C1E-9a4d-4c55-8a39-2f6f0f5f7f10";
const FILE: &str = "work/.agents/tasks/0b2f6c1e9a4d4c558a392f6f0f5f7f10.json";
const NO_TALK: &str = "Error: Task list is not available (no conversation context).";

fn project() -> Cli {
    let cli = Cli::without_store().with_clock();
    cli.run(&["init"]).ok();
    cli
}

fn start(cli: &Cli, options: &[&str]) -> Agent {
    Agent::start(cli, &cli.path("work"), options)
}

/// Calls a tool. Returns its text, and whether it is an error result.
fn call(agent: &mut Agent, tool: &str, arguments: &Value) -> (String, bool) {
    let answer = agent.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
    (said(&answer).to_owned(), answer["result"]["isError"] == true)
}

/// Calls a tool and asserts that it succeeds.
fn does(agent: &mut Agent, tool: &str, arguments: &Value) -> String {
    let (text, is_error) = call(agent, tool, arguments);
    assert!(!is_error, "{text}");
    text
}

/// Calls a tool and asserts that it returns an error result.
fn refuses(agent: &mut Agent, tool: &str, arguments: &Value) -> String {
    let (text, is_error) = call(agent, tool, arguments);
    assert!(is_error, "{text}");
    text
}

fn checklist(states: &[&str]) -> Value {
    let item = |(number, status): (usize, &&str)| json!({"id": number + 1, "title": format!("t{}", number + 1), "status": status});
    states.iter().enumerate().map(item).collect()
}

fn todo(content: &str) -> Value {
    json!([{"id": "1", "content": content, "status": "pending", "priority": "low"}])
}

#[test]
fn a_server_has_the_tools_and_the_guide_of_each_dialect() {
    let cli = project();
    for dialect in Dialect::ALL.into_iter().chain([Dialect::TodoList]) {
        for (options, rule) in [
            (&["--dialect", dialect.as_str()][..], ScopeRule::argument()),
            (&["--dialect", dialect.as_str(), "--scope", TALK], ScopeRule::fixed(TALK)),
        ] {
            let mut agent = start(&cli, options);
            let listed = agent.ask("tools/list", &json!({}));
            let listed = listed["result"]["tools"].as_array().unwrap();
            let mut tools = Lists::builder().scope(rule).build().tools(dialect);
            tools.sort_by(|one, other| one.spec().name.cmp(&other.spec().name));
            assert_eq!(listed.len(), tools.len(), "{dialect}");
            for (shown, tool) in listed.iter().zip(&tools) {
                let spec = tool.spec();
                assert_eq!(
                    (&shown["name"], &shown["description"]),
                    (&json!(spec.name), &json!(spec.description))
                );
                assert_eq!(shown["inputSchema"], spec.args_schema, "{dialect}");
                assert_eq!(
                    shown["annotations"]["readOnlyHint"],
                    json!(spec.hints.read_only),
                    "{}",
                    spec.name
                );
            }
            let name = format!("{}_guide", dialect.as_str().replace(':', "_"));
            let prompt = agent.ask("prompts/get", &json!({"name": name}));
            assert_eq!(prompt["result"]["messages"][0]["content"]["text"], guide(dialect), "{dialect}");
            assert_eq!(agent.close(), (Some(0), String::new()));
        }
    }
}

#[test]
fn the_alias_of_the_checklist_takes_either_name_of_its_list() {
    let cli = project();
    let mut agent = start(&cli, &["--dialect", "checklist:manage_todo_list", "--dialect", "checklist"]);
    for field in ["todoList", "taskList"] {
        let list = json!({field: checklist(&["completed", "in-progress"])});
        let said = does(&mut agent, "manage_todo_list", &list);
        assert_eq!(said, r#"{"success":true,"message":"Task list updated: 1/2 completed"}"#);
    }
    // Both tool names work on the same list.
    let read = does(&mut agent, "manage_tasks", &json!({"operation": "read"}));
    assert!(
        read.starts_with(r#"{"success":true,"taskList":[{"id":1,"title":"t1","status":"completed"}"#),
        "{read}"
    );
    let dropped = does(&mut agent, "manage_tasks", &json!({"taskList": "[]", "operation": null}));
    assert_eq!(
        dropped,
        r#"{"success":true,"message":"Task list updated: 0/0 completed","dropped":[{"id":2,"title":"t2"}]}"#
    );
    let several = json!({"todoList": checklist(&["in-progress", "in-progress"])});
    assert_eq!(
        call(&mut agent, "manage_todo_list", &several).0,
        r#"{"success":false,"error":"At most one task may be in-progress at a time"}"#
    );
    agent.close();
}

#[test]
fn a_conversation_is_its_file_and_every_tool_answers_as_it_should() {
    let cli = project();
    let mut agent = start(&cli, &["--dialect", "conversation", "--scope", TALK]);
    let empty = does(&mut agent, "ListTasks", &json!({}));
    assert_eq!((empty.as_str(), cli.path("work/.agents").exists()), (r#"{"tasks":[]}"#, false));
    let added = does(&mut agent, "AddTask", &json!({"title": "a"}));
    let id = serde_json::from_str::<Value>(&added).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(added, format!(r#"{{"id":"{id}","title":"a","description":"","done":false}}"#));
    let task = |done: bool| format!(r#"{{"id":"{id}","title":"a","description":"","done":{done}}}"#);
    let one = json!({"taskId": id});
    for (tool, answer) in [
        ("CompleteTask", format!(r#"{{"ok":true,"task":{}}}"#, task(true))),
        ("UncompleteTask", format!(r#"{{"ok":true,"task":{}}}"#, task(false))),
        ("ListTasks", format!(r#"{{"tasks":[{}],"ignored":["taskId"]}}"#, task(false))),
        ("DeleteTask", r#"{"ok":true}"#.to_owned()),
        ("DeleteTask", r#"{"ok":false,"error":"Task not found"}"#.to_owned()),
        ("CompleteTask", r#"{"ok":false,"error":"Task not found"}"#.to_owned()),
    ] {
        assert_eq!(call(&mut agent, tool, &one).0, answer, "{tool}");
    }
    assert_eq!(
        call(&mut agent, "AddTask", &json!({"title": " "})).0,
        r#"{"ok":false,"error":"title is required"}"#
    );
    assert_eq!(
        call(&mut agent, "CompleteTask", &json!({})).0,
        r#"{"ok":false,"error":"taskId is required"}"#
    );
    fs::write(cli.path(FILE), "{\"tasks\": 1}").unwrap();
    let corrupt = refuses(&mut agent, "AddTask", &json!({"title": "b"}));
    assert_eq!(corrupt, "Error: Task file is corrupt or invalid.");
    assert_eq!(fs::read_to_string(cli.path(FILE)).unwrap(), "{\"tasks\": 1}");
    let (_, reported) = agent.close();
    assert!(!reported.contains("panicked"), "{reported}");
}

#[test]
fn whose_conversation_it_is_says_the_server_its_variable_or_the_call() {
    let file =
        |cli: &Cli| fs::read_to_string(cli.path(FILE)).is_ok_and(|text| text.contains(r#""title":"a""#));
    let add = |arguments: Value, cli: &Cli, options: &[&str]| {
        let all: Vec<&str> = ["--dialect", "conversation"].iter().chain(options).copied().collect();
        let mut agent = start(cli, &all);
        let answer = call(&mut agent, "AddTask", &arguments).0;
        agent.close();
        answer
    };
    let other = "11111111-2222-4333-8444-555555555555";
    let cli = project();
    assert_eq!(add(json!({"title": "a"}), &cli, &[]), NO_TALK);
    assert_eq!(add(json!({"title": "a", "conversation_id": null}), &cli, &[]), NO_TALK);
    assert!(!cli.path("work/.agents").exists(), "no file is touched");
    let no_id = add(json!({"title": "a", "conversation_id": "../x"}), &cli, &[]);
    assert_eq!(no_id, "Error: conversation id must be a UUID.");
    add(json!({"title": "a", "conversation_id": TALK}), &cli, &[]);
    assert!(file(&cli));
    // A fixed scope overrides the argument of a call, and `--scope` overrides the variable.
    let cli = project();
    add(json!({"title": "a", "conversation_id": other}), &cli, &["--scope", TALK]);
    assert!(file(&cli));
    let cli = project().with("TASKPAWL_SCOPE", TALK);
    add(json!({"title": "a", "conversation_id": other}), &cli, &[]);
    assert!(file(&cli));
    let cli = project().with("TASKPAWL_SCOPE", other);
    add(json!({"title": "a"}), &cli, &["--scope", TALK]);
    assert!(file(&cli));
}

#[test]
fn a_session_is_a_server_or_what_calls_say() {
    let cli = project();
    let both = ["--dialect", "session", "--dialect", "checklist"];
    let (mut one, mut other) = (start(&cli, &both), start(&cli, &both));
    let written = does(&mut one, "todowrite", &json!({"todos": todo("a")}));
    assert_eq!(
        written,
        r#"{"title":"1 todos","output":"[{\"id\":\"1\",\"content\":\"a\",\"status\":\"pending\",\"priority\":\"low\"}]"}"#
    );
    does(&mut one, "manage_tasks", &json!({"taskList": checklist(&["not-started"])}));
    assert_eq!(does(&mut one, "todoread", &json!({})), written);
    let empty = r#"{"title":"0 todos","output":"[]"}"#;
    for (agent, arguments) in [(&mut other, json!({})), (&mut one, json!({"session_id": "s"}))] {
        assert_eq!(does(agent, "todoread", &arguments), empty);
        assert_eq!(does(agent, "manage_tasks", &arguments), r#"{"success":true,"taskList":[]}"#);
    }
    does(&mut one, "todowrite", &json!({"todos": todo("b"), "session_id": "s"}));
    assert_eq!(does(&mut one, "todoread", &json!({})), written);
    assert!(does(&mut one, "todoread", &json!({"session_id": "s"})).contains("\\\"b\\\""));
    let two =
        json!({"todos": [todo("a")[0], {"id": "2", "content": "b", "status": "later", "priority": "low"}]});
    let refused = refuses(&mut one, "todowrite", &two);
    assert!(refused.starts_with(r#"{"error":"todos[1].status: unknown status `later`"#), "{refused}");
    assert_eq!(does(&mut one, "todoread", &json!({})), written, "nothing has changed");
    let dropped = does(&mut one, "todowrite", &json!({"todos": []}));
    assert_eq!(dropped, r#"{"title":"0 todos","output":"[]","dropped":[{"id":"1","content":"a"}]}"#);
    one.close();
    other.close();
    // This list exists only in memory.
    let left = cli.run(&["history", "--json"]).ok().stdout;
    assert!(!left.contains("\"content\":") && !cli.path("work/.agents").exists(), "{left}");
}

#[test]
fn by_http_nobody_shares_a_list_without_saying_so() {
    let cli = project();
    let all = ["--dialect", "conversation", "--dialect", "checklist", "--dialect", "session"];
    let server = HttpServer::open(&cli, &all);
    for tool in ["todowrite", "todoread"] {
        assert_eq!(
            server.call(tool, &json!({"todos": todo("a")})),
            (r#"{"error":"session_id is required"}"#.to_owned(), true)
        );
    }
    let list = json!({"taskList": checklist(&["completed"])});
    let refused = r#"{"success":false,"error":"session_id is required"}"#;
    assert_eq!(server.call("manage_tasks", &list).0, refused);
    assert_eq!(server.call("manage_tasks", &json!({"operation": "read"})).0, refused);
    assert_eq!(server.call("ListTasks", &json!({})), (NO_TALK.to_owned(), true));
    // The server cannot tell that these requests belong together: each could come from another client.
    server.call("todowrite", &json!({"todos": todo("a"), "session_id": "s"}));
    assert!(server.call("todoread", &json!({"session_id": "s"})).0.starts_with(r#"{"title":"1 todos""#));
    assert!(server.call("todoread", &json!({"session_id": "t"})).0.starts_with(r#"{"title":"0 todos""#));
    server.call("AddTask", &json!({"title": "a", "conversation_id": TALK}));
    assert!(cli.path(FILE).exists());
    server.close();
    let fixed: Vec<&str> = all.into_iter().chain(["--scope", "s"]).collect();
    let server = HttpServer::open(&cli, &fixed);
    assert_eq!(
        server.call("manage_tasks", &list).0,
        r#"{"success":true,"message":"Task list updated: 1/1 completed"}"#
    );
    assert!(server.call("manage_tasks", &json!({})).0.contains("\"t1\""));
    server.close();
}

#[test]
fn a_queue_is_shared_by_servers_and_commands() {
    let cli = project();
    let mut agents =
        [start(&cli, &["--dialect", "queue"]), start(&cli, &["--dialect", "queue", "--scope", "x"])];
    let queue = |operation: &str, more: Value| {
        let mut arguments = json!({"agent_id": "agent-7", "operation": operation});
        arguments.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        arguments
    };
    let steps = [
        ("count", json!({}), r#"{"count":0}"#),
        ("lpop", json!({}), r#"{"item":null}"#),
        ("rpush", json!({"item": "b"}), r#"{"count":1}"#),
        ("lpush", json!({"item": "a"}), r#"{"count":2}"#),
        ("rpush", json!({"item": "c"}), r#"{"count":3}"#),
        ("lpeek", json!({}), r#"{"item":"a"}"#),
        ("rpeek", json!({}), r#"{"item":"c"}"#),
        ("list", json!({}), r#"{"items":["a","b","c"]}"#),
        ("rpop", json!({}), r#"{"item":"c"}"#),
        ("lpop", json!({"lease": null}), r#"{"item":"a"}"#),
    ];
    for (number, (operation, more, answer)) in steps.into_iter().enumerate() {
        // The two servers take turns, so each step reads the state that the other one wrote.
        assert_eq!(does(&mut agents[number % 2], "task", &queue(operation, more)), answer, "{operation}");
    }
    assert_eq!(cli.run(&["todo-list", "--agent", "agent-7"]).ok().stdout, "{\"items\":[\"b\"]}\n");
    let taken: Value =
        serde_json::from_str(&does(&mut agents[0], "task", &queue("lpop", json!({"lease": "5m"})))).unwrap();
    assert_eq!(cli.run(&["todo-count", "--agent", "agent-7"]).ok().stdout, "{\"count\":0}\n");
    let ack = queue("ack", json!({"receipt": taken["receipt"]}));
    assert_eq!(does(&mut agents[1], "task", &ack), r#"{"ok":true}"#);
    for (arguments, error) in [
        (json!({"operation": "count"}), "agent_id is required"),
        (queue("rpush", json!({})), "item is required"),
        (queue("x", json!({})), "unknown operation `x`"),
    ] {
        assert_eq!(refuses(&mut agents[0], "task", &arguments), json!({ "error": error }).to_string());
    }
    let out = refuses(&mut agents[0], "task", &json!({"agent_id": "../x", "operation": "count"}));
    assert!(out.starts_with(r#"{"error":"#), "{out}");
    for agent in agents {
        agent.close();
    }
}

#[test]
fn a_lease_that_is_over_brings_its_item_back_to_the_end_that_it_came_from() {
    let cli = Cli::new();
    for item in ["a", "b", "c"] {
        cli.run(&["todo-rpush", "--agent", "x", item]).ok();
    }
    cli.run(&["todo-lpop", "--agent", "x", "--lease", "5m"]).ok();
    cli.run(&["todo-rpop", "--agent", "x", "--lease", "10m"]).ok();
    let list = |cli: &Cli| cli.run(&["todo-list", "--agent", "x"]).ok().stdout;
    assert_eq!(list(&cli), "{\"items\":[\"b\"]}\n");
    let cli = cli.with("TASKPAWL_TEST_NOW", "2026-01-02T03:09:06Z");
    assert_eq!(list(&cli), "{\"items\":[\"a\",\"b\"]}\n");
    let cli = cli.with("TASKPAWL_TEST_NOW", "2026-01-02T03:14:06Z");
    assert_eq!(list(&cli), "{\"items\":[\"a\",\"b\",\"c\"]}\n");
}

#[test]
fn a_server_that_only_reads_reads_every_list_and_writes_none() {
    let cli = project();
    cli.run(&["todo-rpush", "--agent", "a", "x"]).ok();
    let add = json!({"title": "a", "conversation_id": TALK}).to_string();
    cli.run(&["tools", "call", "AddTask", "--args", &add]).ok();
    let before = fs::read_to_string(cli.path(FILE)).unwrap();
    let all: Vec<&str> = ["conversation", "checklist", "session", "queue"]
        .into_iter()
        .flat_map(|name| ["--dialect", name])
        .collect();
    let options: Vec<&str> = all.into_iter().chain(["--read-only", "--scope", TALK]).collect();
    let mut agent = start(&cli, &options);
    assert!(does(&mut agent, "ListTasks", &json!({})).contains(r#""title":"a""#));
    assert_eq!(does(&mut agent, "todoread", &json!({})), r#"{"title":"0 todos","output":"[]"}"#);
    assert_eq!(
        does(&mut agent, "manage_tasks", &json!({"operation": "read"})),
        r#"{"success":true,"taskList":[]}"#
    );
    for (operation, answer) in [
        ("list", r#"{"items":["x"]}"#),
        ("count", r#"{"count":1}"#),
        ("lpeek", r#"{"item":"x"}"#),
        ("rpeek", r#"{"item":"x"}"#),
    ] {
        assert_eq!(does(&mut agent, "task", &json!({"agent_id": "a", "operation": operation})), answer);
    }
    let pop = json!({"agent_id": "a", "operation": "lpop"});
    let push = json!({"agent_id": "a", "operation": "rpush", "item": "y"});
    for (tool, arguments) in [
        ("AddTask", json!({"title": "b"})),
        ("CompleteTask", json!({"taskId": "1"})),
        ("UncompleteTask", json!({"taskId": "1"})),
        ("DeleteTask", json!({"taskId": "1"})),
        ("todowrite", json!({"todos": todo("a")})),
        ("manage_tasks", json!({"taskList": checklist(&["completed"])})),
        ("task", pop),
        ("task", push),
    ] {
        let refused = call(&mut agent, tool, &arguments).0;
        assert!(refused.contains("This server is read-only"), "{tool}: {refused}");
    }
    agent.close();
    assert_eq!(fs::read_to_string(cli.path(FILE)).unwrap(), before);
    assert_eq!(cli.run(&["todo-count", "--agent", "a"]).ok().stdout, "{\"count\":1}\n");
}

#[test]
fn a_checklist_of_a_server_is_seen_cleared_kept_and_promoted_elsewhere() {
    let cli = project();
    let mut agent = start(&cli, &["--dialect", "checklist", "--scope", "talk", "--keep"]);
    let read = |agent: &mut Agent| does(agent, "manage_tasks", &json!({}));
    does(&mut agent, "manage_tasks", &json!({"taskList": checklist(&["completed", "in-progress"])}));
    let block = cli.run(&["todo", "prompt", "--scope", "talk"]).ok().stdout;
    assert_eq!(
        block,
        "<taskList>\nCurrent task progress:\n- [completed] (1) t1\n- [in-progress] (2) t2\n\nProgress: 1/2 tasks completed\n</taskList>\n"
    );
    let resource = |agent: &mut Agent| {
        let read = agent.ask("resources/read", &json!({"uri": "taskpawl://checklist"}));
        read["result"]["contents"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(resource(&mut agent).trim_end(), block.trim_end());
    cli.run(&["todo", "promote", "--yes"]).ok();
    assert_eq!(
        cli.run(&["list", "--fields", "name,status"]).ok().json()["data"],
        json!([{"name": "t2", "status": "todo"}])
    );
    cli.run(&["todo", "clear", "--scope", "talk"]).ok();
    // The server notices the change before its next answer, of any kind.
    assert_eq!(resource(&mut agent), "");
    assert_eq!(read(&mut agent), r#"{"success":true,"taskList":[]}"#);
    assert_eq!(cli.run(&["todo", "prompt"]).ok().stdout, "");
    does(&mut agent, "manage_tasks", &json!({"taskList": checklist(&["completed"])}));
    agent.close();
    assert!(
        cli.run(&["todo", "prompt", "--scope", "talk"]).ok().stdout.contains("(1) t1"),
        "it is kept for review"
    );
}

#[test]
fn who_has_subscribed_to_the_checklist_hears_of_changes() {
    let cli = project();
    let mut agent = start(&cli, &["--dialect", "checklist", "--scope", "talk"]);
    let uri = json!({"uri": "taskpawl://checklist"});
    let subscribed = agent.ask("resources/subscribe", &uri);
    assert!(subscribed.get("result").is_some(), "{subscribed}");
    // This server does not offer the plan.
    let digest = agent.ask("resources/subscribe", &json!({"uri": "taskpawl://digest"}));
    assert!(digest["error"]["message"].as_str().unwrap().contains("nothing at"), "{digest}");
    does(&mut agent, "manage_tasks", &json!({"taskList": checklist(&["in-progress"])}));
    assert_eq!(agent.hear("notifications/resources/updated")["params"], uri);
    agent.close();
}

#[test]
fn beside_the_plan_a_model_promotes_its_list() {
    let cli = project();
    let names = |agent: &mut Agent| -> Vec<String> {
        let listed = agent.ask("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    // A dialect alone offers only the tools of its contract.
    let mut alone = start(&cli, &["--dialect", "session"]);
    assert_eq!(names(&mut alone), ["todoread", "todowrite"]);
    alone.close();
    let mut reader = start(&cli, &["--dialect", "session", "--dialect", "core", "--read-only"]);
    assert!(!names(&mut reader).contains(&"todo_promote".to_owned()));
    reader.close();

    let mut agent = start(&cli, &["--dialect", "session", "--dialect", "core"]);
    assert!(names(&mut agent).contains(&"todo_promote".to_owned()));
    does(&mut agent, "todowrite", &json!({"todos": todo("a")}));
    let promote = json!({"name": "todo_promote", "arguments": {"agent": "ann"}});
    let made = agent.ask("tools/call", &promote)["result"]["structuredContent"].clone();
    assert_eq!((&made["made"], &made["tasks"][0]["name"]), (&json!(1), &json!("a")), "{made}");
    let again = agent.ask("tools/call", &promote)["result"]["structuredContent"].clone();
    assert_eq!((&again["made"], &again["before"]), (&json!(0), &json!(1)), "{again}");
    let ready = agent.ask("tools/call", &json!({"name": "ready_list", "arguments": {}}));
    assert_eq!(ready["result"]["structuredContent"]["byHand"][0]["task"], made["tasks"][0]["task"]);
    agent.close();
    assert_eq!(cli.run(&["list", "--fields", "name"]).ok().json()["data"], json!([{"name": "a"}]));
}

#[test]
fn a_checklist_is_over_when_its_server_is_killed_unless_it_is_kept() {
    let cli = project();
    for (scope, options, is_kept) in [("gone", &[][..], false), ("kept", &["--keep"], true)] {
        let options = [&["--dialect", "checklist", "--scope", scope], options].concat();
        let mut agent = start(&cli, &options);
        does(&mut agent, "manage_tasks", &json!({"taskList": checklist(&["in-progress"])}));
        let seen = || {
            let lists = cli.run(&["watch", "--once", "--json"]).ok().json()["data"]["lists"].clone();
            let lists: Vec<Value> = serde_json::from_value(lists).unwrap_or_default();
            let is_drawn = lists.iter().any(|list| list["scope"] == scope);
            let block = cli.run(&["todo", "prompt", "--scope", scope]).ok().stdout;
            assert_eq!(is_drawn, block.contains("(1) t1"), "{block}");
            is_drawn
        };
        assert!(seen());
        agent.kill();
        assert_eq!(seen(), is_kept, "{scope}");
    }
    // The next process that keeps a list removes the files of the killed one.
    let mut agent = start(&cli, &["--dialect", "checklist", "--scope", "next"]);
    does(&mut agent, "manage_tasks", &json!({"taskList": checklist(&["in-progress"])}));
    let state = fs::read_dir(cli.path(".local/state/taskpawl")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_dir(state.join("tasks.db.files/keepers")).unwrap().count(), 1);
    agent.close();
}

#[test]
fn who_misspells_a_dialect_is_told_of_all_that_a_server_can_serve() {
    let refused = project().run(&["mcp", "--dialect", "cor"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("session, queue, core; did you mean `core`?"), "{refused}");
}

#[test]
fn what_is_kept_in_no_project_needs_none() {
    let cli = Cli::without_store().with_clock();
    let mut agent = start(&cli, &["--dialect", "session", "--dialect", "queue"]);
    does(&mut agent, "todowrite", &json!({"todos": todo("a")}));
    assert!(does(&mut agent, "todoread", &json!({})).starts_with(r#"{"title":"1 todos""#));
    let push = json!({"agent_id": "x", "operation": "rpush", "item": "b"});
    assert_eq!(does(&mut agent, "task", &push), r#"{"count":1}"#);
    assert_eq!(agent.close(), (Some(0), String::new()));
    assert_eq!(fs::read_dir(cli.path("work")).unwrap().count(), 0, "nothing is made there");
    assert_eq!(cli.run(&["todo-list", "--agent", "x"]).ok().stdout, "{\"items\":[\"b\"]}\n");
}

#[test]
fn lists_of_a_directory_without_a_project_are_kept_in_memory() {
    let cli = Cli::without_store().with_clock();
    let options = ["--dialect", "conversation", "--dialect", "checklist", "--scope", TALK];
    let mut agent = start(&cli, &options);
    does(&mut agent, "AddTask", &json!({"title": "Write"}));
    assert!(does(&mut agent, "ListTasks", &json!({})).contains(r#""title":"Write""#));
    does(&mut agent, "manage_tasks", &json!({"taskList": checklist(&["not-started"])}));
    assert_eq!(agent.close().0, Some(0));
    assert_eq!(fs::read_dir(cli.path("work")).unwrap().count(), 0, "nothing is made there");
    let mut agent = start(&cli, &options);
    assert_eq!(does(&mut agent, "ListTasks", &json!({})), r#"{"tasks":[]}"#);
}

#[test]
fn the_first_item_of_a_list_makes_the_project_of_a_git_root() {
    let cli = Cli::without_store().with_clock();
    fs::create_dir(cli.path("work/.git")).unwrap();
    let mut agent = start(&cli, &["--dialect", "conversation", "--scope", TALK]);
    does(&mut agent, "ListTasks", &json!({}));
    assert!(!cli.path("work/.taskpawl").exists());
    does(&mut agent, "AddTask", &json!({"title": "Write"}));
    assert!(cli.path("work/.taskpawl/project.json").exists() && cli.path(FILE).exists());
}
