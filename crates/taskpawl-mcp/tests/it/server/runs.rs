use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl::tools::{CallContext, Tool, ToolError, ToolSpec};
use taskpawl::{SandboxSettings, Taskpawl, async_trait};
use taskpawl_mcp::{McpServer, ServerOptions};

use super::support::{ERAS, Ears, Scene, connect, connect_as};

#[tokio::test]
async fn what_comes_over_mcp_runs_only_by_the_policy() {
    let scene = Scene::new();
    let plan = json!({"plan": {"tasks": [{"id": "a", "call": {"write_file": {"path": "a.txt", "content": "x"}}}, {"id": "b", "call": {"log": {"message": "x"}}}]}});
    let client = connect(&scene.server(), ERAS[0]).await;
    client.call("plan_write", plan.clone()).await;
    let run = client.run(json!({})).await;
    assert_eq!((&run["exit"], &run["counts"]), (&json!(3), &json!({"blocked": 1, "done": 1})), "{run}");
    assert_eq!(run["onHold"][0]["id"], "a");
    assert!(
        run["nextActions"].as_array().unwrap().contains(&json!({"askPersonToRun": "taskpawl approve a"})),
        "{run}"
    );
    assert!(!scene.file("a.txt").exists());
    // Neither another version of the plan nor an update removes the question.
    let around = json!({"plan": {"tasks": [{"id": "a", "call": {"write_file": {"path": "b.txt", "content": "x"}}}, {"id": "b", "call": {"log": {"message": "x"}}}]}});
    client.raw("plan_write", around).await;
    client.run(json!({})).await;
    assert!(!scene.file("a.txt").exists() && !scene.file("b.txt").exists());
}

#[tokio::test]
async fn the_user_may_let_it_run_inside_the_sandbox() {
    let scene = Scene::new();
    let client = connect(&scene.trusting_server(), ERAS[0]).await;
    let plan = json!({"plan": {"tasks": [{"id": "a", "call": {"write_file": {"path": "a.txt", "content": "x"}}}, {"id": "p", "run": "true"}]}});
    client.call("plan_write", plan).await;
    let run = client.run(json!({})).await;
    // Programs run only inside the sandbox, which is off in this test.
    assert_eq!(run["counts"], json!({"blocked": 1, "done": 1}), "{run}");
    assert!(scene.file("a.txt").exists());
}

#[tokio::test]
async fn a_run_is_waited_for_with_progress_and_stopped() {
    for era in ERAS {
        let scene = Scene::new();
        let ears = Ears::default();
        let server = scene.server();
        let client = connect_as(&server, era, ears.clone()).await;
        let plan = json!({"plan": {"tasks": [
            {"id": "quick", "call": {"log": {"message": "x"}}},
            {"id": "slow", "call": {"sleep": {"duration": "10m"}}, "needs": ["quick"], "timeout": "20m"},
        ]}});
        client.call("plan_write", plan).await;
        let started = client.call("run_ready", json!({})).await;
        assert_eq!(started["state"], "running", "{started}");
        let id = started["run_id"].clone();
        while client.call("task_get", json!({"id": "slow"})).await["task"]["status"] != "in_progress" {}
        let seen = client.call("run_ready", json!({"run_id": id, "wait_s": 1})).await;
        assert_eq!((&seen["state"], &seen["running"]), (&json!("running"), &json!(["slow"])), "{seen}");
        client.call("run_ready", json!({"run_id": id, "cancel": true})).await;
        client.call("run_ready", json!({"run_id": id, "cancel": true})).await;
        let over = client.call("run_ready", json!({"run_id": id, "wait_s": 45})).await;
        assert_eq!((&over["state"], &over["exit"]), (&json!("finished"), &json!(130)), "{over}");
        // Each call of this client has a progress token.
        let heard = ears.progress.lock().unwrap().clone();
        assert!(heard.iter().any(|progress| progress.total == Some(2.0)), "{heard:?}");
        server.wait_for_runs().await;
    }
}

#[tokio::test]
async fn what_is_said_of_a_run_is_the_same_after_the_server_is_gone() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    client
        .call(
            "plan_write",
            json!({"plan": {"tasks": [{"id": "a", "call": {"fail": {"message": "broken"}}}]}}),
        )
        .await;
    let run = client.run(json!({})).await;
    assert_eq!((&run["exit"], &run["failed"][0]["id"]), (&json!(1), &json!("a")));
    let other = connect(&scene.server(), ERAS[1]).await;
    let later = other.call("run_ready", json!({"run_id": run["run_id"], "wait_s": 45})).await;
    assert_eq!(later, run);
}

#[tokio::test]
async fn a_run_of_another_process_is_seen_and_not_stopped() {
    let scene = Scene::new();
    let first = scene.server();
    let client = connect(&first, ERAS[0]).await;
    let plan = json!({"plan": {"tasks": [{"id": "slow", "call": {"sleep": {"duration": "10m"}}, "timeout": "20m"}]}});
    client.call("plan_write", plan).await;
    let id = client.call("run_ready", json!({})).await["run_id"].clone();
    let other = connect(&scene.server(), ERAS[0]).await;
    assert_eq!(other.call("plan_show", json!({})).await["runs"][0]["run_id"], id);
    let refused = other.refused("run_ready", json!({"run_id": id, "cancel": true})).await;
    assert_eq!(refused["error"]["kind"], "not_available", "{refused}");
    while client.call("task_get", json!({"id": "slow"})).await["task"]["status"] != "in_progress" {}
    first.stop_runs();
    first.stop_runs();
    first.wait_for_runs().await;
    let over = other.call("run_ready", json!({"run_id": id, "wait_s": 45})).await;
    assert_eq!(over["state"], "finished");
}

#[tokio::test]
async fn what_no_run_here_can_take_is_said_and_no_run_is_advised() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let task = json!({"name": "u", "id": "u", "call": {"nonsense": {}}});
    let written = client
        .call("plan_write", json!({"plan": {"tools": ["nonsense"], "tasks": [task]}, "name": "p"}))
        .await;
    let other = json!({"name": "v", "id": "v", "call": {"nonsense": {}}});
    let refused = client.refused("task_add", other).await;
    assert!(refused.to_string().contains("no tool `nonsense` is known here"), "{refused}");
    let before = client.call("plan_show", json!({})).await;
    let run = client.run(json!({})).await;
    let after = client.call("plan_show", json!({})).await;
    let list = client.call("ready_list", json!({})).await;
    let look = json!({"tool": "task_get", "arguments": {"id": "u"}});
    for answer in [&written, &before, &run, &after, &list] {
        let actions = answer["nextActions"].as_array().unwrap();
        assert!(actions.contains(&look), "{answer}");
        assert!(actions.iter().all(|action| action["tool"] != "run_ready"), "{answer}");
    }
    for answer in [before, run, after, list] {
        assert_eq!(answer["forNobody"][0]["missingTool"], "nonsense", "{answer}");
        assert_eq!(answer.get("readyForRuns"), None, "{answer}");
    }
    for filter in [json!({"status": ["todo"]}), json!({"plan": "p"})] {
        let tasks = client.call("plan_show", filter).await["tasks"].clone();
        assert_eq!(tasks[0].get("ready"), None, "{tasks}");
        assert!(tasks[0]["because"].as_str().unwrap().contains("`nonsense`"), "{tasks}");
    }
    // The answer for a task does not name itself as the next step.
    let shown = client.call("task_get", json!({"id": "u"})).await;
    assert!(!shown["nextActions"].as_array().unwrap().contains(&look), "{shown}");
}

#[tokio::test]
async fn a_plan_that_there_is_not_is_no_plan_without_tasks() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    client.call("plan_write", json!({"plan": {"tasks": [{"id": "a", "name": "a"}]}, "name": "p"})).await;
    assert_eq!(client.call("plan_show", json!({"plan": "p"})).await["tasks"][0]["id"], "a");
    assert_eq!(client.call("plan_show", json!({"plan": "p", "offset": 5})).await["tasks"], json!([]));
    let refused = client.refused("plan_show", json!({"plan": "nix"})).await;
    assert_eq!(refused["error"]["kind"], "unknown_id", "{refused}");
    assert!(refused["error"].get("hint").is_some() && refused.get("nextActions").is_some(), "{refused}");
}

/// Runs until it is killed, so that its end is unknown.
#[derive(Debug)]
struct Hold(ToolSpec);

#[async_trait]
impl Tool for Hold {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, cx: CallContext, _: Value) -> Result<Value, ToolError> {
        std::fs::write(cx.dir.join("holds"), "").unwrap();
        cx.until_interrupted(std::future::pending::<()>()).await?;
        Ok(Value::Null)
    }
}

fn holding(scene: &Scene) -> McpServer {
    let hold = Hold(ToolSpec::new("hold", "Holds.", json!({"type": "object"})));
    let plans = Taskpawl::builder(scene.store().to_str().unwrap())
        .root(scene.dir.path().join("project"))
        .sandbox(SandboxSettings::off())
        .tool(Arc::new(hold))
        .open()
        .unwrap();
    McpServer::new(plans, ServerOptions::default()).unwrap()
}

#[tokio::test]
async fn a_run_says_that_it_is_being_stopped_and_what_helps_with_what_was_interrupted() {
    let scene = Scene::new();
    let server = holding(&scene);
    let client = connect(&server, ERAS[0]).await;
    client.call("task_add", json!({"name": "held", "id": "held", "call": {"hold": {}}})).await;
    client.call("task_add", json!({"name": "mine", "id": "mine"})).await;
    client.call("task_update", json!({"id": "mine", "action": "claim", "agent": "ann"})).await;
    let started = client.call("run_ready", json!({})).await;
    assert_eq!(started.get("stopping"), None, "{started}");
    // The record of the start comes first: stopped in between, the call would not have begun.
    while !scene.dir.path().join("project/holds").exists() {
        client.call("task_get", json!({"id": "held"})).await;
    }
    let cancel = json!({"run_id": started["run_id"], "cancel": true});
    let stopping = client.call("run_ready", cancel.clone()).await;
    assert_eq!(stopping["running"], json!(["held"]), "what somebody holds by hand does not run");
    assert!(stopping["stopping"].as_str().unwrap().contains("a second cancel"), "{stopping}");
    let again = json!({"tool": "run_ready", "arguments": cancel});
    assert!(stopping["nextActions"].as_array().unwrap().contains(&again), "{stopping}");
    client.call("run_ready", cancel).await;
    let over = client.call("run_ready", json!({"run_id": started["run_id"], "wait_s": 45})).await;
    assert_eq!((&over["exit"], &over["interrupted"]), (&json!(130), &json!(["held"])), "{over}");
    let helps = [
        json!({"tool": "task_get", "arguments": {"id": "held"}}),
        json!({"askPersonToRun": "taskpawl unblock held"}),
    ];
    assert_eq!(over["nextActions"], json!(helps), "{over}");
    server.wait_for_runs().await;
}

#[tokio::test]
async fn what_an_earlier_call_printed_is_not_shown_as_what_the_running_one_prints() {
    let scene = Scene::new();
    let server = holding(&scene);
    let client = connect(&server, ERAS[0]).await;
    let calls = json!([{"id": "first", "log": {"message": "x"}}, {"id": "second", "hold": {}}]);
    client.call("task_add", json!({"name": "held", "id": "held", "calls": calls})).await;
    let read = |call: Option<&str>| {
        let mut arguments = json!({"id": "held", "part": "stderr"});
        call.inspect(|call| arguments["call"] = json!(call));
        client.call("task_get", arguments)
    };
    let plans = Taskpawl::open(scene.store().to_str().unwrap()).unwrap();
    let printed = plans.engine().output().stem(&"held".into(), &"first".into(), 1).with_extension("stderr");
    std::fs::create_dir_all(printed.parent().unwrap()).unwrap();
    std::fs::write(&printed, "early").unwrap();
    let started = client.call("run_ready", json!({})).await;
    while client.call("task_get", json!({"id": "held"})).await["task"]["calls"][1]["status"] != "running" {}
    let [first, running] = [read(Some("first")).await, read(None).await];
    assert_eq!(
        (&first["text"], &running["text"], &running["totalBytes"]),
        (&json!("early"), &json!(""), &json!(0))
    );
    let cancel = json!({"run_id": started["run_id"], "cancel": true});
    client.call("run_ready", cancel.clone()).await;
    client.call("run_ready", cancel).await;
    server.wait_for_runs().await;
    assert_eq!(read(None).await["text"], "", "interrupted, and it printed nothing");
}
