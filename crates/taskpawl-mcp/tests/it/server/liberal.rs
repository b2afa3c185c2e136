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
        assert!(told.contains("max_bytes: 4000 as 4000"), "{told}");
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
