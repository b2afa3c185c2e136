//! What a model learns that has lost its context, and what it hands on.

use serde_json::json;

use super::support::{ERAS, Scene, connect};

#[tokio::test]
async fn the_plan_says_what_it_is_for() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let goal = "Move the customers to the new ledger before March";
    let tasks = json!([{"id": "a"}]);
    client.call("plan_write", json!({"plan": {"name": "old", "tasks": [{"id": "o"}]}})).await;
    client
        .call("plan_write", json!({"plan": {"name": "harbour", "description": goal, "tasks": tasks}}))
        .await;
    let shown = client.call("plan_show", json!({})).await;
    assert_eq!(shown["plans"], json!([{"name": "harbour", "description": goal}, {"name": "old"}]));
}

#[tokio::test]
async fn many_long_goals_are_cut() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[1]).await;
    for n in 0..7 {
        let plan = json!({"name": format!("p{n}"), "description": "goal ".repeat(500), "tasks": [{"id": format!("t{n}")}]});
        client.call("plan_write", json!({"plan": plan})).await;
    }
    let shown = client.call("plan_show", json!({})).await;
    let plans = shown["plans"].as_array().unwrap();
    assert_eq!((plans.len(), &shown["more"][0]), (5, &json!("plans")), "{shown}");
    assert!(plans.iter().all(|plan| plan["description"].as_str().unwrap().chars().count() == 81));
}

#[tokio::test]
async fn the_end_of_an_output_is_read_at_once() {
    let scene = Scene::new();
    let client = connect(&scene.trusting_server(), ERAS[0]).await;
    let run = "seq 1 20000; echo the-last-line";
    client.call("task_add", json!({"id": "t", "name": "t", "run": run})).await;
    client.run(json!({"only": ["t"]})).await;
    let part = |more: (&str, usize)| {
        let mut arguments = json!({"id": "t", "part": "stdout"});
        arguments[more.0] = json!(more.1);
        arguments
    };
    let end = client.call("task_get", part(("tail", 200))).await;
    let (text, total) = (end["text"].as_str().unwrap(), end["totalBytes"].as_u64().unwrap());
    assert!(text.len() == 200 && text.ends_with("20000\nthe-last-line\n"), "{text}");
    assert_eq!((&end["offset"], end.get("nextOffset")), (&json!(total - 200), None));
    for wrong in [
        json!({"id": "t", "tail": 200}),
        json!({"id": "t", "part": "stdout", "tail": 200, "offset": 7}),
        json!({"id": "t", "part": "stdout", "tail": 200, "limit": 7}),
    ] {
        client.refused("task_get", wrong).await;
    }
}

#[tokio::test]
async fn a_claim_is_made_renewed_and_released_with_a_note() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[1]).await;
    client.call("task_add", json!({"id": "a", "name": "a", "agent": "boss"})).await;
    for action in ["claim", "renew", "release", "claim"] {
        client
            .call("task_update", json!({"id": "a", "action": action, "note": action, "agent": "ann"}))
            .await;
    }
    let shown = client.call("task_get", json!({"id": "a"})).await;
    let notes: Vec<_> = shown["task"]["notes"].as_array().unwrap().iter().map(|note| &note["text"]).collect();
    assert_eq!(notes, ["claim", "renew", "release", "claim"]);
    // The holder has just called.
    let early = json!({"id": "a", "action": "release", "note": "it is silent", "agent": "boss"});
    let refused = client.refused("task_update", early).await;
    assert_eq!(refused["error"]["kind"], "refused", "{refused}");
}
