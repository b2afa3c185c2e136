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
    let client = connect(&scene.server(), ERAS[0]).await;
    let call = json!({"id": "print", "log": {"message": "x"}});
    client.call("task_add", json!({"id": "t", "name": "t", "calls": [call]})).await;
    client.run(json!({"only": ["t"]})).await;
    let output = scene.plans().engine().output().stem(&"t".into(), &"print".into(), 1);
    std::fs::create_dir_all(output.parent().unwrap()).unwrap();
    let lines = (1..=20_000).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
    std::fs::write(output.with_extension("stdout"), lines + "the-last-line\n").unwrap();
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

#[tokio::test]
async fn a_claim_brings_what_the_needed_tasks_found() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    let ids: Vec<String> = (0..7).map(|n| format!("n{n}")).collect();
    for id in &ids {
        client.call("task_add", json!({"id": id, "name": id})).await;
        let result = if id == "n0" { "found ".repeat(500) } else { id.clone() };
        let done = json!({"id": id, "action": "done", "result": result, "note": "look at the log"});
        client.call("task_update", done).await;
    }
    client.call("task_add", json!({"id": "a", "name": "a", "needs": ids})).await;
    let claimed = client.call("task_update", json!({"id": "a", "action": "claim", "agent": "ann"})).await;
    let needs = claimed["needs"].as_array().unwrap();
    assert_eq!((needs.len(), &claimed["leftOut"]["needs"]), (5, &json!(2)), "{claimed}");
    assert!(needs.iter().all(|need| need.to_string().len() <= 300), "{claimed}");
    assert_eq!(needs[1], json!({"id": "n1", "result": "n1", "note": "look at the log"}));
    assert_eq!((&needs[0]["bytes"], &needs[0]["note"]), (&json!(3_000), &json!("look at the log")));
    let rest = &needs[0]["rest"];
    let read = client.call(rest["tool"].as_str().unwrap(), rest["arguments"].clone()).await;
    assert!(read["text"].as_str().unwrap().starts_with("found found"), "{read}");
    client.call("task_update", json!({"id": "a", "action": "release", "agent": "ann"})).await;
    let next = client.call("ready_list", json!({"claim": true, "agent": "bob"})).await;
    assert_eq!(next["needs"], claimed["needs"]);
}

#[tokio::test]
async fn a_report_claims_the_next_task() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[1]).await;
    let tasks = json!([{"id": "a"}, {"id": "b", "needs": ["a"]}, {"id": "c"}]);
    client.call("plan_write", json!({"plan": {"tasks": tasks}})).await;
    let end = |id: &str, action: &str| json!({"id": id, "action": action, "result": id, "next": true, "agent": "ann", "request_id": id});
    client.call("task_update", json!({"id": "a", "action": "claim", "agent": "ann"})).await;
    for _ in 0..2 {
        let next = client.call("task_update", end("a", "done")).await;
        assert_eq!(
            (&next["task"]["status"], &next["claimed"]["id"]),
            (&json!("done"), &json!("b")),
            "{next}"
        );
        assert_eq!(next["needs"], json!([{"id": "a", "result": "a"}]));
        assert_eq!(next["nextActions"][0]["arguments"]["id"], "b");
    }
    client.call("task_update", end("b", "fail")).await;
    let last = client.call("task_update", end("c", "done")).await;
    assert_eq!(last.get("claimed"), None, "{last}");
    assert!(last["notClaimed"].is_string(), "{last}");
    client.refused("task_update", json!({"id": "a", "action": "claim", "next": true})).await;
}

#[tokio::test]
async fn the_digest_says_who_holds_what_until_when() {
    let scene = Scene::new();
    let client = connect(&scene.server(), ERAS[0]).await;
    for (id, agent) in [("a", "ann"), ("b", "bob")] {
        client.call("task_add", json!({"id": id, "name": id})).await;
        client
            .call("task_update", json!({"id": id, "action": "claim", "note": "begun", "agent": agent}))
            .await;
    }
    let shown = client.call("plan_show", json!({"agent": "ann"})).await;
    let until = scene.plans().blocking().get_task("b").unwrap().claim.unwrap().lease_until.unwrap();
    let until = taskpawl::model::value::format_time(until);
    let other = json!({"id": "b", "name": "b", "attempt": 1, "until": until, "note": "begun", "by": "bob"});
    assert_eq!(shown["heldByOthers"], json!([other]));
    assert_eq!(shown["claimedByYou"][0]["id"], "a");
}
