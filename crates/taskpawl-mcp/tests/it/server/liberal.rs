//! What must not be read as something else than was meant.

use serde_json::{Value, json};

use super::support::{Client, ERAS, Scene, connect};

async fn scene(tasks: Value) -> (Scene, Client) {
    let scene = Scene::new();
    let client = connect(&scene.trusting_server(), ERAS[0]).await;
    client.call("plan_write", json!({"name": "p", "plan": {"tasks": tasks}})).await;
    (scene, client)
}

#[tokio::test]
async fn an_id_with_a_mark_is_offered_where_work_ends() {
    let (_scene, client) = scene(json!([{"id": "b", "name": "B"}])).await;
    let refused = client.refused("task_update", json!({"id": "#b", "action": "cancel"})).await;
    let exact = json!({"tool": "task_update", "arguments": {"id": "b", "action": "cancel"}});
    assert_eq!(refused["nextActions"][0], exact, "{refused}");
    let read = client.call("task_get", json!({"id": "#b"})).await;
    assert_eq!(read["understood"], json!(["id: #b as b"]), "{read}");
    let cancelled = client.call("task_update", json!({"id": "B", "action": "cancel"})).await;
    assert_eq!(cancelled["task"]["status"], "cancelled", "{cancelled}");
}

#[tokio::test]
async fn ids_that_differ_in_case_alone_are_listed() {
    let (_scene, client) = scene(json!([{"id": "Ab", "name": "One"}, {"id": "aB", "name": "Two"}])).await;
    for action in ["claim", "cancel"] {
        let refused = client.refused("task_update", json!({"id": "AB", "action": action})).await;
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.contains("several tasks can be meant: Ab, aB"), "{said}");
    }
    assert_eq!(client.call("task_get", json!({"id": "aB"})).await["task"]["name"], "Two");
}

#[tokio::test]
async fn a_list_of_labels_never_becomes_all() {
    let (_scene, client) =
        scene(json!([{"id": "a", "labels": ["x"], "call": {"log": {"message": "a"}}}])).await;
    client.refused("run_ready", json!({"labels": [true]})).await;
    client.refused("run_ready", json!({"labels": " , "})).await;
    let run = client.run(json!({"labels": "x"})).await;
    assert_eq!((&run["state"], &run["counts"]), (&json!("finished"), &json!({"done": 1})), "{run}");
}

#[tokio::test]
async fn a_status_is_left_out_of_new_tasks_alone() {
    let (_scene, client) = scene(json!([{"id": "a", "name": "A"}])).await;
    let added = client.call("task_add", json!({"name": "b", "status": "Not Started"})).await;
    assert_eq!(added["understood"], json!(["status: left out, as a new task has no other"]), "{added}");
    client.refused("task_update", json!({"id": "a", "fields": {"status": "todo"}})).await;
}

#[tokio::test]
async fn the_size_of_an_answer_may_be_text_for_every_tool() {
    let (_scene, client) = scene(json!([{"id": "a", "name": "A"}])).await;
    for name in ["max_bytes", "maxBytes"] {
        let added = client.call("task_add", json!({"name": "b", (name): "4000"})).await;
        let told = added["understood"].to_string();
        assert!(told.contains(r#"max_bytes: \"4000\" as 4000"#), "{told}");
    }
}

#[tokio::test]
async fn milliseconds_in_text_are_not_seconds() {
    let (_scene, client) = scene(json!([{"id": "a", "name": "A"}])).await;
    let added = json!({"id": "t", "name": "t", "run": "true", "timeout_ms": "3000"});
    let understood = client.call("task_add", added).await["understood"].to_string();
    assert!(understood.contains("timeout_ms as timeout"), "{understood}");
    let whole = client.call("task_get", json!({"id": "t"})).await.to_string();
    assert!(whole.contains("\"3s\"") || whole.contains("\"3000ms\""), "{whole}");
}

async fn needs_of(client: &Client, id: &str) -> Value {
    client.call("task_get", json!({"id": id})).await["task"]["dependencies"].clone()
}

#[tokio::test]
async fn one_need_under_another_name_is_a_list() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    client.call("task_add", json!({"name": "a"})).await;
    for name in ["needs", "blockedBy", "depends_on", "requires", "dependencies"] {
        let added = client.call("task_add", json!({"name": name, "id": name, name: "A"})).await;
        assert_eq!(needs_of(&client, name).await, json!(["a"]), "{added}");
    }
}

#[tokio::test]
async fn needs_in_a_plan_are_read_as_other_ids_are() {
    let (_scene, client) = scene(json!([{"id": "Old", "name": "The old one"}])).await;
    let tasks = json!([
        {"id": 1, "name": "Design"}, {"name": "Write Tests"}, {"id": "Ship-It", "name": "Ship"},
        {"id": "number", "needs": [1]}, {"id": "one", "needs": 1}, {"id": "name", "needs": "design"},
        {"id": "made", "needs": ["write-tests"]}, {"id": "case", "needs": "ship-it, #1"},
        {"id": "stored", "needs": ["the old one"]}, {"id": "below", "subtasks": [{"id": "leaf", "needs": ["ship"]}]},
        {"id": "none", "needs": ""},
    ]);
    let written = client.call("plan_write", json!({"name": "q", "plan": {"tasks": tasks}})).await;
    let told = written["understood"].to_string();
    assert!(told.contains("needs: design as 1") && told.contains("and 4 more"), "{written}");
    for (id, needs) in [
        ("number", json!(["1"])),
        ("one", json!(["1"])),
        ("name", json!(["1"])),
        ("made", json!(["write-tests"])),
        ("case", json!(["1", "Ship-It"])),
        ("stored", json!(["Old"])),
        ("leaf", json!(["Ship-It"])),
        ("none", Value::Null),
    ] {
        assert_eq!(needs_of(&client, id).await, needs, "{id}");
    }
}

#[tokio::test]
async fn a_need_that_can_mean_several_tasks_is_refused() {
    let (_scene, client) = scene(json!([{"id": "a"}])).await;
    let tasks = json!([{"id": "t1"}, {"id": "t2"}, {"id": "b", "needs": ["T"]}]);
    let refused = client.refused("plan_write", json!({"plan": {"tasks": tasks}})).await;
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(said.contains("`T` can mean several tasks: t1, t2"), "{said}");
    for empty in [" , ", "[]"] {
        let tasks = json!([{"id": "b", "needs": empty}]);
        client.refused("plan_write", json!({"plan": {"tasks": tasks}})).await;
    }
}

#[tokio::test]
async fn needs_of_a_task_that_is_there_are_read_as_other_ids_are() {
    let (_scene, client) =
        scene(json!([{"id": "a", "name": "Alpha"}, {"id": "7", "name": "Seven"}, {"id": "b", "name": "B"}]))
            .await;
    for (given, needs) in [
        (json!(["alpha", 7]), json!(["a", "7"])),
        (json!("A"), json!(["a"])),
        (json!("#a, seven"), json!(["a", "7"])),
        (json!(7), json!(["7"])),
    ] {
        let call = json!({"id": "b", "fields": {"needs": given}});
        let changed = client.call("task_update", call).await;
        assert!(changed["understood"].is_array(), "{changed}");
        assert_eq!(needs_of(&client, "b").await, needs);
    }
    // Its own id may not be read for this action, but those that it needs may.
    let reopened = json!({"id": "b", "action": "reopen", "fields": {"needs": ["ALPHA"]}});
    client.call("task_update", json!({"id": "b", "action": "cancel"})).await;
    client.call("task_update", reopened).await;
    assert_eq!(needs_of(&client, "b").await, json!(["a"]));
    // Without the need the call would clear all needs, so it is not offered.
    let refused = client.refused("task_update", json!({"id": "b", "fields": {"needs": ["zzz"]}})).await;
    assert!(!refused["nextActions"].to_string().contains("fields"), "{refused}");
}

#[tokio::test]
async fn a_field_that_is_left_out_is_told() {
    let (_scene, client) = scene(json!([{"id": "a"}])).await;
    let item =
        |n: u32| json!({"content": format!("Item {n}"), "status": "pending", "activeForm": "Doing it"});
    let todos: Vec<Value> = (0..9).map(item).collect();
    let written = client.call("plan_write", json!({"name": "q", "todos": todos})).await;
    let told = written["understood"].as_array().unwrap();
    let left_out =
        told.iter().filter(|told| **told == "activeForm: left out, as a task has one name").count();
    assert_eq!((left_out, told.len()), (1, 4), "each reading is told once: {told:?}");
}

#[tokio::test]
async fn an_empty_plan_is_none() {
    let (_scene, client) = scene(json!([{"id": "a", "call": {"log": {"message": "a"}}}])).await;
    let ready = client.call("ready_list", json!({"plan": ""})).await;
    assert_eq!(ready["forRuns"][0]["task"], "a", "{ready}");
    let run = client.run(json!({"plan": ""})).await;
    assert_eq!(run["counts"], json!({"done": 1}), "{run}");
    client.refused("run_ready", json!({"only": ""})).await;
}

#[tokio::test]
async fn a_plan_in_yaml_may_have_the_words_of_other_tools() {
    let (_scene, client) = scene(json!([{"id": "a"}])).await;
    let plan = "steps:\n- id: 1\n  title: Build it\n- id: two\n  name: Two\n  depends_on: [build it]\n";
    let written = client.call("plan_write", json!({"name": "q", "plan": plan})).await;
    assert!(written["understood"].to_string().contains("title as name"), "{written}");
    assert_eq!(needs_of(&client, "two").await, json!(["1"]));
    // Other values are taken as they were written.
    let wrong = "tasks:\n- id: x\n  title: X\n  retries: 3\n";
    let refused = client.refused("plan_write", json!({"name": "r", "plan": wrong})).await;
    assert!(refused["error"]["problems"].to_string().contains("unknown field `title`"), "{refused}");
    assert_eq!(refused.get("understood"), None, "{refused}");
}

#[tokio::test]
async fn counts_and_pauses_inside_options_may_be_text() {
    let (_scene, client) = scene(json!([{"id": "a"}])).await;
    let retry = json!({"attempts": "3", "delay": "5 seconds"});
    let task = json!({"id": "r", "name": "R", "retry": retry, "forEach": {"in": ["x"], "concurrency": "2"}, "run": "true"});
    let added = client.call("task_add", task).await;
    assert!(added["understood"].to_string().contains(r#"retry.attempts: \"3\" as 3"#), "{added}");
    let task = &client.call("task_get", json!({"id": "r"})).await["task"];
    assert_eq!((&task["retry"]["attempts"], &task["retry"]["delay"]), (&json!(3), &json!("5s")), "{task}");
    assert_eq!(task["forEach"]["concurrency"], 2, "{task}");
}

#[tokio::test]
async fn states_of_a_part_of_a_plan_are_taken_out_by_the_corrected_call() {
    let (_scene, client) = scene(json!([{"id": "a"}])).await;
    let todos = json!([{"content": "Q", "status": "completed"}, {"content": "R", "status": "in_progress"}]);
    let refused = client.refused("plan_write", json!({"todos": todos, "merge": true})).await;
    let corrected = &refused["nextActions"][0];
    assert_eq!(corrected["tool"], "plan_write", "{refused}");
    let written = client.call("plan_write", corrected["arguments"].clone()).await;
    assert_eq!(written["created"], json!(["q", "r"]), "{written}");
    let topics = client.call("plan_show", json!({"help": "foreach"})).await;
    assert!(topics["help"].as_str().unwrap().starts_with("One copy"), "{topics}");
}
