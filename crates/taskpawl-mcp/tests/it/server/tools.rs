use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl::tools::Registry;
use taskpawl_mcp::{McpServer, ServerOptions, ToolSet};

use super::support::{Client, ERAS, Scene, connect};

#[tokio::test]
async fn a_plan_is_written_looked_at_and_done_in_both_eras() {
    for era in ERAS {
        let scene = Scene::new();
        let client = connect(&scene.server(), era).await;
        let empty = client.call("plan_show", json!({})).await;
        assert_eq!(empty["nextActions"][0]["tool"], "plan_write", "{empty}");

        let plan = json!({"tasks": [
            {"id": "read", "name": "Read the notes", "call": {"log": {"message": "read"}}},
            {"id": "write", "name": "Write the text", "needs": ["read"]},
            {"id": "check", "name": "Check it", "needs": ["write"], "priority": "high"},
        ]});
        let written = client.call("plan_write", json!({"plan": plan, "name": "text"})).await;
        assert_eq!(written["created"], json!(["read", "write", "check"]));
        assert_eq!(
            written["nextActions"][0],
            json!({"tool": "run_ready", "arguments": {"only": ["plan:text"]}})
        );
        let again = client.call("plan_write", json!({"plan": plan, "name": "text"})).await;
        assert_eq!((&again["unchanged"], again.get("created")), (&json!(3), None));

        let run = client.run(json!({"only": ["plan:text"]})).await;
        assert_eq!((&run["state"], &run["exit"]), (&json!("finished"), &json!(3)), "{run}");
        assert_eq!(run["counts"], json!({"done": 1, "todo": 2}));
        let claimed = client.call("ready_list", json!({"claim": true, "agent": "ann"})).await;
        assert_eq!(claimed["claimed"]["id"], "write");
        let digest = client.call("plan_show", json!({"agent": "ann"})).await;
        assert_eq!((&digest["you"], &digest["claimedByYou"][0]["id"]), (&json!("ann"), &json!("write")));
        let foreign =
            client.refused("task_update", json!({"id": "write", "action": "done", "agent": "bob"})).await;
        assert_eq!(foreign["error"]["kind"], "refused", "{foreign}");
        assert!(!foreign.to_string().contains("release"), "{foreign}");
        // No other task can be claimed, so claiming is not suggested: it would be refused.
        let look = json!({"tool": "plan_show", "arguments": {"agent": "bob"}});
        assert_eq!(foreign["nextActions"], json!([look]));
        assert!(!foreign["error"]["hint"].as_str().unwrap().contains("ready_list"), "{foreign}");
        client.call("task_add", json!({"name": "Spare", "id": "spare"})).await;
        let foreign =
            client.refused("task_update", json!({"id": "write", "action": "claim", "agent": "bob"})).await;
        let next = json!({"tool": "ready_list", "arguments": {"claim": true, "agent": "bob"}});
        assert_eq!(foreign["nextActions"], json!([next]));
        assert!(foreign["error"]["hint"].as_str().unwrap().contains("\"agent\":\"bob\""), "{foreign}");
        client.call("task_delete", json!({"ids": ["spare"]})).await;
        // The suggested call works unchanged.
        let advised = &claimed["nextActions"][0];
        assert_eq!(
            (&advised["tool"], &advised["arguments"]["agent"]),
            (&json!("task_update"), &json!("ann"))
        );
        assert_eq!(advised["arguments"]["action"], "done");
        let done = json!({"id": "write", "action": "done", "result": {"words": 100}, "note": "in text.md", "agent": "ann"});
        assert_eq!(client.call("task_update", done).await["task"]["status"], "done");

        let task = client.call("task_get", json!({"id": "write"})).await;
        assert_eq!(task["task"]["result"], json!({"words": 100}));
        assert_eq!(task["task"]["notes"][0]["text"], "in text.md");
        let list = client.call("plan_show", json!({"status": ["todo"]})).await;
        assert_eq!(
            list["tasks"],
            json!([{"id": "check", "name": "Check it", "status": "todo", "priority": "high", "needs": ["write"], "plan": "text", "work": "by hand", "ready": true}])
        );
        let added = client
            .call("task_add", json!({"name": "Send it", "id": "send", "needs": ["check"], "plan": "text"}))
            .await;
        assert_eq!(added["task"]["id"], "send");
        assert_eq!(client.call("task_delete", json!({"ids": ["send"]})).await["deleted"], json!(["send"]));
    }
}

#[tokio::test]
async fn a_merge_keeps_what_the_plan_says_beside_its_tasks() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let plan =
        json!({"params": {"name": {"type": "string", "default": "x"}}, "tasks": [{"id": "a", "name": "a"}]});
    client.call("plan_write", json!({"plan": plan})).await;
    let part = json!({"tasks": [{"id": "b", "name": "b", "needs": ["a"], "call": {"log": {"message": "${{ params.name }}"}}}]});
    let merged = client.call("plan_write", json!({"plan": part, "merge": true})).await;
    assert_eq!((&merged["created"], merged.get("gone")), (&json!(["b"]), None));
    let whole = client.call("plan_write", json!({"plan": plan, "dry_run": true})).await;
    assert_eq!((&whole["gone"], &whole["dryRun"]), (&json!(["b"]), &json!(true)));
    // A missing dependency is reported with the task that needs it.
    let part = json!({"tasks": [{"id": "c", "name": "c", "needs": ["zz"]}]});
    let refused = client.refused("plan_write", json!({"plan": part, "merge": true})).await;
    let problem = &refused["error"]["problems"][0];
    assert_eq!(
        (&problem["code"], &problem["path"]),
        (&json!("unknown_task"), &json!("task `c`")),
        "{refused}"
    );
    // A plan may also be text.
    let text = client.call("plan_write", json!({"plan": "tasks: [{id: c, name: c}]", "name": "other"})).await;
    assert_eq!(text["created"], json!(["c"]));
}

#[tokio::test]
async fn a_merge_keeps_what_its_tasks_leave_out() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[1]).await;
    let plan = json!({"budget": {"calls": 9}, "tasks": [
        {"id": "q0", "name": "Q0", "subtasks": [{
            "id": "q1", "name": "Q1", "description": "long", "priority": "high", "labels": ["x"], "needs": ["Before"],
            "call": {"log": {"message": "${{ tasks.Before.result }}"}}, "metadata": {"a": 1, "context": {"c": 1}},
        }]},
        {"name": "Before", "call": {"log": {"message": "y"}}},
        {"id": "other", "name": "Other"},
    ]});
    client.call("plan_write", json!({"plan": plan, "name": "q"})).await;
    let merge = async |plan: Value| {
        client.call("plan_write", json!({"plan": plan, "name": "q", "merge": true})).await
    };
    let task = async || client.call("task_get", json!({"id": "q1"})).await["task"].clone();
    let before = task().await;

    let written = merge(json!({"tasks": [{"id": "q1", "name": "Q1 renamed"}]})).await;
    assert_eq!((&written["changed"], &written["unchanged"]), (&json!(["q1"]), &json!(0)), "{written}");
    assert_eq!(written.get("changedFields"), None);
    let mut after = task().await;
    assert_eq!(after["name"], "Q1 renamed");
    for field in ["name", "version", "updatedAt"] {
        after[field] = before[field].clone();
    }
    assert_eq!(after, before);

    // A short form replaces the work, `null` removes a field, and entries of `metadata` are merged one by one.
    let part = json!({"budget": {"calls": 5}, "tasks": [
        {"id": "q1", "call": {"log": {"message": "z"}}, "labels": null, "metadata": {"b": 2}}, "Before",
    ]});
    let written = merge(part).await;
    assert_eq!((&written["changed"], &written["unchanged"]), (&json!(["q1"]), &json!(1)), "{written}");
    assert_eq!(written["changedFields"], json!(["budget"]));
    let changed = task().await;
    assert_eq!((changed.get("labels"), &changed["priority"]), (None, &json!("high")), "{changed}");
    assert_eq!((&changed["metadata"], &changed["context"]), (&json!({"a": 1, "b": 2}), &json!({"c": 1})));
    assert_eq!(changed["calls"].as_array().unwrap().len(), 1);
    assert_eq!(changed["calls"][0]["args"], json!({"message": "z"}));

    merge(json!({"tasks": [{"id": "q1", "call": null, "needs": null}]})).await;
    let by_hand = task().await;
    assert_eq!((by_hand.get("calls"), by_hand.get("dependencies")), (None, None), "{by_hand}");
    assert_eq!(by_hand["description"], "long");
}

#[tokio::test]
async fn a_merge_takes_entries_away_that_are_null() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let plan = json!({"tasks": [
        {"id": "t", "name": "T", "metadata": {"a": {"x": 1, "y": 2}, "b": 1, "context": {"c": 1, "d": 2}}},
    ]});
    client.call("plan_write", json!({"plan": plan})).await;
    let merge = async |plan: Value| client.call("plan_write", json!({"plan": plan, "merge": true})).await;
    let task = async |id: &str| client.call("task_get", json!({"id": id})).await["task"].clone();
    let both = |task: &Value| (task["metadata"].clone(), task["context"].clone());

    // A part of a plan may also be text in YAML.
    let part = "tasks: [{id: t, metadata: {b: null, e: 1, none: null}, context: {c: null}}]";
    let written = merge(json!(part)).await;
    assert_eq!(written["changed"], json!(["t"]), "{written}");
    assert_eq!(both(&task("t").await), (json!({"a": {"x": 1, "y": 2}, "e": 1}), json!({"d": 2})));
    assert_eq!(merge(json!(part)).await["unchanged"], 1, "the same part changes nothing");
    merge(json!({"tasks": [{"id": "t", "metadata": {"context": {"d": null, "f": 1}}}]})).await;
    assert_eq!(both(&task("t").await), (json!({"a": {"x": 1, "y": 2}, "e": 1}), json!({"f": 1})));
    merge(json!({"tasks": [{"id": "t", "metadata": {"a": null, "e": null}, "context": null}]})).await;
    let bare = task("t").await;
    assert_eq!((bare.get("metadata"), bare.get("context")), (None, None), "{bare}");

    // In a new task `null` removes nothing and leaves no trace.
    let part = json!({"tasks": [{"id": "new", "name": "New", "metadata": {"a": null, "b": 2}}]});
    assert_eq!(merge(part.clone()).await["created"], json!(["new"]));
    assert_eq!(task("new").await["metadata"], json!({"b": 2}));
    assert_eq!(merge(part).await["unchanged"], 1);
    let wrong = client.refused("plan_write", json!({"plan": "tasks: [{id: t, x", "merge": true})).await;
    assert!(wrong["error"]["problems"][0].as_str().unwrap().contains("line 1"), "{wrong}");
}

#[tokio::test]
async fn refusals_say_what_to_call_instead() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[1]).await;
    client.call("plan_write", json!({"plan": {"tasks": [{"id": "build", "name": "b"}, {"id": "test", "name": "t", "needs": ["build"]}]}})).await;
    let mut said = Vec::new();
    for (tool, arguments) in [
        ("task_get", json!({"id": "biuld"})),
        ("task_get", json!({"id": "build", "colour": "red"})),
        ("task_get", json!({"id": "build", "part": "stdout"})),
        ("task_update", json!({"id": "test", "action": "done"})),
        ("task_update", json!({"id": "build", "action": "retry"})),
        ("task_update", json!({"id": "build", "fields": {"nmae": "x"}})),
        ("task_update", json!({"id": "build", "result": 1})),
        ("task_update", json!({"id": "build"})),
        ("task_delete", json!({"ids": ["build"]})),
        ("task_add", json!({"name": "x", "agent": {}})),
        (
            "plan_write",
            json!({"plan": {"tasks": [{"id": "a", "needs": ["b"]}, {"id": "b", "needs": ["a"]}, {"id": "c", "call": {"log": {"mesage": 1}}}]}}),
        ),
        ("plan_write", json!({"plan": {"tasks": [{"id": "c", "call": {"log": {"mesage": 1}}}]}})),
        ("run_ready", json!({"only": ["plan:none"]})),
        ("run_ready", json!({"run_id": "none"})),
        ("run_ready", json!({"cancel": true})),
        ("run_ready", json!({"wait_s": "soon"})),
    ] {
        let refused = client.refused(tool, arguments.clone()).await;
        assert!(refused["error"].get("hint").is_some() && refused.get("nextActions").is_some(), "{refused}");
        said.push(format!("{tool} {arguments}\n  {refused}"));
    }
    insta::assert_snapshot!(said.join("\n"));
}

#[tokio::test]
async fn long_texts_are_cut_and_paged_through() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let lines: Vec<String> = (0..2_000).map(|n| format!("line {n} é\n")).collect();
    let text = lines.concat();
    client.call("task_add", json!({"name": "long", "id": "long", "description": text})).await;
    let shown = client.call("task_get", json!({"id": "long"})).await;
    assert!(shown["task"]["description"].as_str().unwrap().ends_with('…'));
    let (mut read, mut offset) = (String::new(), json!(0));
    while !offset.is_null() {
        let page =
            client.call("task_get", json!({"id": "long", "part": "description", "offset": offset})).await;
        assert_eq!(page.get("shortened"), None, "{page}");
        read.push_str(page["text"].as_str().unwrap());
        offset = page["nextOffset"].clone();
    }
    assert_eq!(read, text);
}

/// Reads all pages of a list or a text.
async fn pages(client: &Client, tool: &str, mut arguments: Value, field: &str) -> Vec<Value> {
    let mut pages = Vec::new();
    loop {
        let mut page = client.call(tool, arguments.clone()).await;
        pages.push(page[field].take());
        if page.get("nextOffset").is_none() {
            return pages;
        }
        arguments["offset"] = page["nextOffset"].clone();
    }
}

#[tokio::test]
async fn the_pages_of_a_list_have_every_task_once() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[1]).await;
    let ids: Vec<String> = (0..120).map(|n| format!("t{n:03}")).collect();
    // Long enough that each page is cut.
    let name = "long-\"name\"".repeat(10);
    let tasks: Vec<Value> = ids.iter().map(|id| json!({"id": id, "name": name})).collect();
    client.call("plan_write", json!({"plan": {"tasks": tasks}, "name": "big"})).await;
    let pages = pages(&client, "plan_show", json!({"plan": "big"}), "tasks").await;
    let tasks: Vec<&Value> = pages.iter().filter_map(Value::as_array).flatten().collect();
    assert!(pages[0].as_array().unwrap().len() < 20, "{}", pages[0]);
    assert_eq!(tasks.iter().map(|task| task["id"].as_str().unwrap()).collect::<Vec<_>>(), ids);
    assert!(tasks.iter().all(|task| task["name"] == name), "{}", tasks[0]);
}

#[tokio::test]
async fn the_pages_of_a_text_that_grows_by_escapes_are_the_whole() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let text = "\u{1b}[31m\u{1b}[0m\u{1}\"\\\" é€😀".repeat(500);
    client.call("task_add", json!({"name": "coloured", "id": "a"})).await;
    client.call("task_update", json!({"id": "a", "action": "done", "result": text})).await;
    for limit in [json!(null), json!(1_001), json!(50_000)] {
        let arguments = json!({"id": "a", "part": "result", "limit": limit});
        let (mut read, mut offset) = (String::new(), json!(0));
        while !offset.is_null() {
            let mut params = arguments.clone();
            params["offset"] = offset;
            let page = client.raw("task_get", params).await.structured_content.unwrap();
            read.push_str(page["text"].as_str().unwrap());
            offset = page["nextOffset"].clone();
        }
        assert_eq!(read, text, "{arguments}");
    }
}

#[tokio::test]
async fn a_server_that_only_reads_writes_nothing() {
    let scene = Scene::new();
    let options = ServerOptions { read_only: true, ..ServerOptions::default() };
    let client = connect(&McpServer::new(scene.plans(), options).unwrap(), ERAS[0]).await;
    let tools = client.running.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["plan_show", "task_get", "ready_list"]);
    assert!(tools.iter().all(|tool| tool.annotations.as_ref().unwrap().read_only_hint == Some(true)));
    client.call("plan_show", json!({})).await;
    client.call("ready_list", json!({})).await;
    client.refused("ready_list", json!({"claim": true})).await;
    assert!(!scene.store().exists());
}

/// Every step suggested by a server is possible there: a read-only server suggests no writes, claims or runs.
#[tokio::test]
async fn a_server_that_only_reads_advises_only_to_read() {
    let scene = Scene::new();
    let writer = connect(&scene.server(), ERAS[1]).await;
    let options = ServerOptions { read_only: true, ..ServerOptions::default() };
    let client = connect(&McpServer::new(scene.plans(), options).unwrap(), ERAS[1]).await;
    let mut answers = vec![client.call("plan_show", json!({})).await];
    let tasks = json!([
        {"id": "hand"}, {"id": "held"}, {"id": "failed"}, {"id": "call", "call": {"log": {"message": "x"}}},
        {"id": "lost", "call": {"nonsense": {}}}, {"id": "long", "description": "x".repeat(9_000)},
    ]);
    writer.call("plan_write", json!({"plan": {"tools": ["nonsense"], "tasks": tasks}})).await;
    writer.call("task_update", json!({"id": "held", "action": "claim"})).await;
    writer.call("task_update", json!({"id": "failed", "action": "fail"})).await;
    answers.push(client.call("plan_show", json!({})).await);
    answers.push(client.call("plan_show", json!({"status": ["todo"], "limit": 1})).await);
    answers.push(client.call("ready_list", json!({})).await);
    for id in ["hand", "held", "failed", "lost"] {
        answers.push(client.call("task_get", json!({"id": id})).await);
    }
    answers.push(client.call("task_get", json!({"id": "long", "part": "description"})).await);
    answers.push(client.refused("task_get", json!({"id": "none"})).await);
    let mut count = 0;
    for action in answers.iter().filter_map(|answer| answer["nextActions"].as_array()).flatten() {
        let Some(tool) = action["tool"].as_str() else { continue };
        count += 1;
        assert!(["plan_show", "task_get", "ready_list"].contains(&tool), "{action}");
        client.call(tool, action["arguments"].clone()).await;
    }
    assert!(count > 4, "{answers:?}");
    assert!(client.running.list_all_prompts().await.unwrap().is_empty());
    assert!(writer.call("plan_show", json!({})).await["nextActions"].to_string().contains("task_update"));
}

#[tokio::test]
async fn a_plan_without_a_name_that_meets_an_earlier_one_is_told() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let plan = |id: &str| json!({"plan": {"tasks": [{"id": id, "call": {"log": {"message": "x"}}}]}});
    let first = client.call("plan_write", plan("a")).await;
    assert_eq!((&first["plan"], first.get("note")), (&json!("plan"), None));
    let second = client.call("plan_write", plan("b")).await;
    assert_eq!(second["gone"], json!(["a"]));
    let note = second["note"].as_str().unwrap();
    assert!(
        note.contains("the plan `plan`, which was there before") && note.contains("give `name`"),
        "{note}"
    );
    let mut named = plan("c");
    named["name"] = json!("other");
    let other = client.call("plan_write", named.clone()).await;
    assert_eq!((&other["plan"], other.get("note"), other.get("gone")), (&json!("other"), None, None));
    // Without a note, since the name was given.
    assert_eq!(client.call("plan_write", named).await.get("note"), None);
    // A plan as text contains its own name.
    let text = client.call("plan_write", json!({"plan": "name: third\ntasks: [{id: d}]"})).await;
    assert_eq!((&text["plan"], text.get("note")), (&json!("third"), None));
}

#[tokio::test]
async fn a_plan_as_a_text_is_wrong_at_a_place() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    for text in ["tasks: [", "{\"tasks\": [", "tasks:\n  - {id: [a]}"] {
        let refused = client.refused("plan_write", json!({"plan": text})).await;
        assert_eq!(refused["error"]["kind"], "invalid_plan", "{refused}");
        let problem = &refused["error"]["problems"][0];
        assert!(problem["line"].is_u64() && problem["column"].is_u64(), "{problem}");
    }
    // The same applies to a part, which may be text in JSON or YAML.
    let refused = client.refused("plan_write", json!({"plan": "tasks: [", "merge": true})).await;
    assert!(refused["error"]["problems"][0].as_str().unwrap().starts_with("line "), "{refused}");
    let written = client.call("plan_write", json!({"plan": "tasks: [{id: a}]", "merge": true})).await;
    assert_eq!(written["created"], json!(["a"]));
    let json = json!({"plan": "{\"tasks\": [{\"id\": \"a\"}]}", "merge": true});
    assert_eq!(client.call("plan_write", json).await["unchanged"], 1);
}

#[tokio::test]
async fn of_many_things_that_are_wrong_with_a_plan_it_is_said_how_many() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let refused = async |count: usize, task: &dyn Fn(usize) -> Value| {
        let tasks: Vec<Value> = (0..count).map(task).collect();
        let result = client.raw("plan_write", json!({"plan": {"tasks": tasks}})).await;
        assert!(serde_json::to_string(&result).unwrap().len() <= 8_000, "{result:?}");
        assert_eq!(result.is_error, Some(true), "{result:?}");
        result.structured_content.unwrap()
    };
    for (count, word) in [(400, "hihg".to_owned()), (400, "h".repeat(900))] {
        let many =
            refused(count, &|n| json!({"id": format!("t{n}"), "priority": format!("{n}{word}")})).await;
        let shown = many["error"]["problems"].as_array().unwrap().len();
        assert!((1..=5).contains(&shown), "{many}");
        assert_eq!(many["leftOut"], json!({"problems": count - shown}), "{many}");
        assert_eq!(many["shortened"], true, "{many}");
        let message = many["error"]["message"].as_str().unwrap();
        assert_eq!(message, "the arguments are wrong in 400 places, and nothing was changed");
    }
    // A complete list has no count of missing elements.
    let few = refused(5, &|n| json!({"id": format!("t{n}"), "priority": format!("hihg{n}")})).await;
    assert_eq!(few["error"]["problems"].as_array().unwrap().len(), 5);
    assert_eq!((few.get("leftOut"), few.get("shortened")), (None, None), "{few}");
    assert_eq!(few["error"]["message"], "the arguments are wrong, and nothing was changed");

    let needs = refused(400, &|n| json!({"id": format!("t{n}"), "needs": [format!("none-{n}")]})).await;
    let first = &needs["error"]["problems"][0];
    let path = (&first["path"], &first["message"]);
    let message = json!("needs `none-0`, which is neither in the plan nor in the store");
    assert_eq!(path, (&json!("tasks[0].needs[0]"), &message), "{needs}");
    assert_eq!(needs["leftOut"], json!({"problems": 395}), "{needs}");
}

#[tokio::test]
async fn a_written_plan_is_checked_as_plan_check_does() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let wrong = "tasks:
- {id: a, dependson: [b]}
- {id: b, call: {read_file: {path: ../x}}}
- {id: c, run: ls}
- {id: d, needs: c, run: 'echo ${{ tasks.c.result.stdot }}'}
";
    let refused = client.refused("plan_write", json!({"plan": wrong})).await;
    let problems = refused["error"]["problems"].as_array().unwrap();
    let places: Vec<String> = problems
        .iter()
        .map(|problem| format!("{}:{} {}", problem["line"], problem["column"], problem["code"]))
        .collect();
    let expected = ["2:11 \"unknown_field\"", "3:30 \"outside_root\"", "5:51 \"unknown_result_field\""];
    assert_eq!(places, expected, "{refused}");
    // A warning does not refuse the plan.
    let plan = json!({"tasks": [{"id": "a", "run": ["no-such-program"]}]});
    let written = client.call("plan_write", json!({"plan": plan})).await;
    let problem = &written["problems"][0];
    assert_eq!(
        (&problem["code"], &problem["severity"]),
        (&json!("missing_program"), &json!("warning")),
        "{written}"
    );
    assert_eq!(problem.get("line"), None, "an object has no lines");
}

#[tokio::test]
async fn arguments_of_every_call_are_told_by_name_and_type() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    for (arguments, said) in [
        (
            json!({"agent": {"name": "x"}, "name": "x"}),
            "argument `agent`: expected text of 1 to 128 characters, none of them a control character, not an object",
        ),
        (
            json!({"request_id": ["r", "s"], "name": "x"}),
            "argument `request_id`: expected text of 1 to 128 characters, none of them a control character, not a list",
        ),
        (json!({"name": "x", "plan": {}}), "argument `plan`: expected text, not an object"),
    ] {
        let refused = client.refused("task_add", arguments).await;
        assert_eq!(refused["error"]["message"], said);
    }
    // A task with unfinished dependencies cannot be claimed.
    client.call("task_add", json!({"name": "first", "id": "first"})).await;
    let later = client.call("task_add", json!({"name": "later", "id": "later", "needs": ["first"]})).await;
    assert_eq!(later["nextActions"], json!([{"tool": "plan_show", "arguments": {}}]));
}

#[tokio::test]
async fn what_the_refusal_of_a_deletion_says_can_be_done() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let plan = json!({"plan": {"tasks": [{"id": "build"}, {"id": "test", "needs": ["build"]}]}});
    client.call("plan_write", plan).await;
    let refused = client.refused("task_delete", json!({"ids": ["build"]})).await;
    assert!(
        refused["error"]["hint"].as_str().unwrap().contains("`dependencies` without `build`"),
        "{refused}"
    );
    client.call("task_update", json!({"id": "test", "fields": {"dependencies": []}})).await;
    assert_eq!(client.call("task_delete", json!({"ids": ["build"]})).await["deleted"], json!(["build"]));
}

#[tokio::test]
async fn tools_from_outside_are_served_beside_those_of_the_plan() {
    let scene = Scene::new();
    let others = Registry::builtin();
    let set = |names: &[&str]| ToolSet {
        tools: names.iter().map(|name| Arc::clone(others.get(name).unwrap().tool())).collect(),
        ..ToolSet::default()
    };
    let options = ServerOptions { sets: vec![set(&["list_dir", "fail"])], ..ServerOptions::default() };
    let client = connect(&McpServer::new(scene.plans(), options).unwrap(), ERAS[1]).await;
    let tools = client.running.list_all_tools().await.unwrap();
    let tool = tools.iter().find(|tool| tool.name == "list_dir").unwrap();
    assert_eq!((tools.len(), tool.annotations.as_ref().unwrap().read_only_hint), (10, Some(true)));
    std::fs::write(scene.file("a.txt"), "x").unwrap();
    let listed = client.raw("list_dir", json!({"path": "."})).await;
    assert!(serde_json::to_string(&listed).unwrap().contains("a.txt"), "{listed:?}");
    for (tool, arguments) in [("fail", json!({"message": "broken"})), ("list_dir", json!({"pth": "."}))] {
        assert_eq!(client.raw(tool, arguments).await.is_error, Some(true));
    }
    // Names of tools are unique.
    let twice = ServerOptions { sets: vec![set(&["fail"]), set(&["fail"])], ..ServerOptions::default() };
    McpServer::new(scene.plans(), twice).unwrap_err();
}

#[tokio::test]
async fn what_will_ask_is_announced_with_the_ways_to_let_it_run() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let tasks = json!([
        {"id": "w", "call": {"write_file": {"path": "x", "content": "y"}}},
        {"id": "s", "run": "echo hi"},
        {"id": "g", "call": {"glob": {"pattern": "*"}}},
    ]);
    let written = client.call("plan_write", json!({"name": "p", "plan": {"tasks": tasks}})).await;
    assert_eq!((&written["asks"]["calls"], &written["asks"]["ask"]), (&json!(3), &json!(2)), "{written}");
    let ways = written["asks"]["aPersonCan"].to_string();
    for way in ["taskpawl mcp --allow sandboxed", "policy.toml", "approve --only plan:p"] {
        assert!(ways.contains(way), "{way}: {ways}");
    }
    let added = client.call("task_add", json!({"name": "x", "run": "true"})).await;
    assert_eq!(added["asks"]["ask"], 1, "{added}");
    let reads = client.call("task_add", json!({"name": "r", "call": {"log": {"message": "x"}}})).await;
    assert!(reads.get("asks").is_none(), "{reads}");
}

#[tokio::test]
async fn one_call_mends_a_failed_task_and_starts_it_over() {
    let scene = Scene::new();
    let client = connect(&scene.trusting_server(), ERAS[0]).await;
    let tasks = json!([
        {"id": "t", "call": {"fail": {"message": "broken"}}},
        {"id": "u", "needs": ["t"], "call": {"log": {"message": "after"}}},
    ]);
    client.call("plan_write", json!({"name": "p", "plan": {"tasks": tasks}})).await;
    let run = client.run(json!({})).await;
    let offered = json!({"tool": "task_update", "arguments":
        {"id": "t", "action": "retry", "fields": {"call": {"fail": {"message": "broken"}}}}});
    assert_eq!(run["nextActions"][0], offered, "{run}");
    for first in
        [client.call("plan_show", json!({})).await, client.call("task_get", json!({"id": "t"})).await]
    {
        assert_eq!(first["nextActions"][0], offered, "{first}");
    }
    let wrong = json!({"id": "t", "action": "reopen", "fields": {"call": {"write_file": {"path": 1}}}});
    let refused = client.refused("task_update", wrong).await.to_string();
    assert!(refused.contains("write_file"), "{refused}");
    let mended = json!({"id": "t", "action": "reopen", "fields": {"call": {"log": {"message": "mended"}}}});
    let answer = client.call("task_update", mended).await;
    assert_eq!(answer["task"]["status"], "todo", "{answer}");
    assert_eq!(
        answer["nextActions"][0],
        json!({"tool": "run_ready", "arguments": {"only": ["t"]}}),
        "{answer}"
    );
    assert_eq!(client.run(json!({})).await["counts"], json!({"done": 2}));
}

#[tokio::test]
async fn calls_of_tools_that_no_run_can_have_are_refused_with_the_name_that_was_meant() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let call = json!({"write_fil": {"path": "x", "content": "y"}});
    let plan = json!({"tasks": [{"id": "a", "call": call}, {"id": "b", "call": {"s/echo": {}}}]});
    let refused = client.refused("plan_write", json!({"plan": plan})).await;
    let problems = &refused["error"]["problems"];
    assert_eq!(
        (&problems[0]["code"], &problems[1]["code"]),
        (&json!("unknown_tool"), &json!("unknown_tool")),
        "{refused}"
    );
    assert!(problems[0]["hint"].as_str().unwrap().contains("write_file"), "{refused}");
    let refused = client.refused("task_add", json!({"name": "a", "call": call})).await.to_string();
    assert!(
        refused.contains("no tool `write_fil` is known here") && refused.contains("write_file"),
        "{refused}"
    );
    client.call("task_add", json!({"name": "a", "id": "a", "run": "ls"})).await;
    let fields = json!({"id": "a", "fields": {"call": call}});
    let refused = client.refused("task_update", fields).await.to_string();
    assert!(refused.contains("no tool `write_fil` is known here"), "{refused}");
    assert_eq!(client.call("plan_show", json!({})).await["counts"]["todo"], 1);
    // Another program may bring a tool that the plan names.
    let plan = json!({"tools": ["deploy_site"], "tasks": [{"id": "d", "call": {"deploy_site": {}}}]});
    client.call("plan_write", json!({"name": "p", "plan": plan})).await;
    let (brought, other) = (json!({"deploy_site": {}}), json!({"deploy_sit": {}}));
    client.call("task_add", json!({"name": "e", "id": "e", "plan": "p", "call": brought})).await;
    client.call("task_add", json!({"name": "f", "parent": "d", "call": brought})).await;
    client.call("task_update", json!({"id": "e", "fields": {"call": brought, "priority": "high"}})).await;
    client.refused("task_add", json!({"name": "g", "plan": "p", "call": other})).await;
    // It belongs to that plan alone.
    client.refused("task_add", json!({"name": "h", "call": brought})).await;
    let fields = json!({"id": "a", "fields": {"call": brought}});
    client.refused("task_update", fields).await;
}
