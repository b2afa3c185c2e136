use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::support::{ERAS, Scene, connect};

/// Sends the same call to a server and, as after its end, to another one on the same store.
async fn twice(scene: &Scene, tool: &str, arguments: &Value) -> (Value, Value) {
    let first = connect(&scene.server(), ERAS[0]).await.call(tool, arguments.clone()).await;
    let second = connect(&scene.server(), ERAS[1]).await.call(tool, arguments.clone()).await;
    (first, second)
}

fn tasks(scene: &Scene) -> usize {
    scene.plans().blocking().list_tasks(&taskpawl::model::view::Query::default()).unwrap().len()
}

#[tokio::test]
async fn a_request_that_is_repeated_is_done_once() {
    let scene = Scene::new();
    let add = json!({"name": "one", "agent": "ann", "request_id": "r1"});
    let (first, second) = twice(&scene, "task_add", &add).await;
    assert_eq!((&first["task"]["id"], tasks(&scene)), (&second["task"]["id"], 1));
    // Without a name, or with the name of another agent, it is a new request.
    twice(&scene, "task_add", &json!({"name": "two"})).await;
    twice(&scene, "task_add", &json!({"name": "three", "agent": "bob", "request_id": "r1"})).await;
    assert_eq!(tasks(&scene), 4);

    let claim = json!({"claim": true, "agent": "ann", "request_id": "r2"});
    let (first, second) = twice(&scene, "ready_list", &claim).await;
    assert_eq!(first["claimed"]["id"], second["claimed"]["id"]);
    // The positive control: a claim without a request name takes another task.
    let (first, second) = twice(&scene, "ready_list", &json!({"claim": true, "agent": "bob"})).await;
    assert_ne!(first["claimed"]["id"], second["claimed"]["id"]);

    let id = first["claimed"]["id"].clone();
    let note = json!({"id": id, "note": "hello", "agent": "bob", "request_id": "r3"});
    twice(&scene, "task_update", &note).await;
    let notes = scene.plans().blocking().get_task(id.as_str().unwrap()).unwrap().notes;
    assert_eq!(notes.len(), 1);
    let both = json!({"id": id, "fields": {"priority": "high"}, "action": "done", "agent": "bob", "request_id": "r4"});
    let (_, second) = twice(&scene, "task_update", &both).await;
    assert_eq!(second["task"]["status"], "done");

    let plan = json!({"plan": {"tasks": [{"name": "a"}, {"name": "b"}]}, "agent": "ann", "request_id": "r5"});
    let (first, second) = twice(&scene, "plan_write", &plan).await;
    assert_eq!(first["created"], second["created"]);
    let delete = json!({"ids": [first["created"][0]], "agent": "ann", "request_id": "r6"});
    let (first, second) = twice(&scene, "task_delete", &delete).await;
    assert_eq!(first, second);
    let run = json!({"agent": "ann", "request_id": "r7"});
    let (first, second) = twice(&scene, "run_ready", &run).await;
    assert_eq!(first["run_id"], second["run_id"]);
    assert_eq!(scene.plans().manager().runs(&taskpawl::RunFilter::default()).unwrap().len(), 1);
}

#[tokio::test]
async fn a_name_is_for_one_request() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    client.call("task_add", json!({"name": "one", "request_id": "r"})).await;
    let refused = client.refused("task_add", json!({"name": "two", "request_id": "r"})).await;
    assert_eq!(refused["error"]["hint"], "use a unique name for each request", "{refused}");
    assert!(refused.get("nextActions").is_some(), "{refused}");
    assert_eq!(tasks(&scene), 1);
    client.call("run_ready", json!({"request_id": "r"})).await;
    let refused = client.refused("run_ready", json!({"request_id": "r", "jobs": 3})).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("other arguments"), "{refused}");
}

#[tokio::test]
async fn what_cannot_be_read_is_answered() {
    let scene = Scene::new();
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let request = |id: &str, arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"plan_show","arguments":{arguments}}}}}"#
        )
    };
    let no_object = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":[]}"#.to_owned();
    let lines = [
        "{bad".to_owned(),
        String::new(),
        request("7", &deep(130)),
        request("\"x\"", "{\"a\":"),
        no_object,
        r#"{"jsonrpc":"2.0","id":"y","method":[]}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":10,"method":"tools/list","params":{"cursor":5}}"#.to_owned(),
    ];
    let written = format!("{}\n", lines.join("\n"));
    let server = scene.server();
    let (said, ended) = tokio::join!(
        async {
            ours.write_all(written.as_bytes()).await.unwrap();
            ours.shutdown().await.unwrap();
            let mut said = String::new();
            ours.read_to_string(&mut said).await.unwrap();
            said
        },
        async {
            let (input, output) = tokio::io::split(theirs);
            server.serve_on(input, output).await
        }
    );
    ended.unwrap();
    let answers: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let heads: Vec<_> =
        answers.iter().map(|answer| (answer["id"].clone(), answer["error"]["code"].clone())).collect();
    let code = json!(-32_700);
    let expected = [
        (json!(null), code.clone()),
        (json!(7), code.clone()),
        (json!(null), code),
        (json!(9), json!(-32_602)),
        (json!("y"), json!(-32_600)),
        (json!(10), json!(-32_602)),
    ];
    assert_eq!(heads, expected, "{said}");
    let problem = "the parameters of `tools/call` cannot be read: expected an object, not a list";
    assert_eq!(answers[3]["error"]["message"], problem);
    let problem = "the parameters of `tools/list` cannot be read: argument `cursor`: expected text, not `5`";
    assert_eq!(answers[5]["error"]["message"], problem);
}
