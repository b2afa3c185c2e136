//! Earlier revisions, answers to questions, previews and groups of the graph.

use serde_json::{Value, json};
use taskpawl::model::command::NewTask;
use taskpawl::model::task::Status;
use tokio::sync::mpsc;

use super::{PLAN, Site};
use crate::{Ask, Decision, PageOptions};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_revision_has_its_statuses_counts_and_tasks() {
    let site = Site::open(PLAN, PageOptions::default()).await;
    let before = site.plans.manager().revision().unwrap();
    let json = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let counts = json(site.get("/api/v1/state").await.1)["counts"].clone();
    let letters = json(site.get("/api/v1/overview").await.1)["states"].clone();
    site.plans.run().await.unwrap();
    site.plans
        .apply_text(
            "tasks: [{id: later, milestone: true, needs: gate2}, {id: gate2, description: y}]",
            "more",
        )
        .await
        .unwrap();
    let (status, then) = site.get(&format!("/api/v1/state?at={before}")).await;
    let then: Value = serde_json::from_str(&then).unwrap();
    assert_eq!((status, &then["counts"], &then["revision"]), (200, &counts, &json!(before)));
    let (_, columns) = site.get(&format!("/api/v1/overview?at={before}")).await;
    let columns: Value = serde_json::from_str(&columns).unwrap();
    assert_eq!((&columns["ids"], &columns["states"]), (&json!(["a", "b", "x", "gate"]), &letters));
    let (_, overview) = site.get(&format!("/fragment/?at={before}")).await;
    assert!(overview.contains("are those of today") && !overview.contains("later"), "{overview}");
    let (_, runs) = site.get(&format!("/api/v1/runs?at={before}")).await;
    assert_eq!(serde_json::from_str::<Value>(&runs).unwrap()["runs"], json!([]));
    assert_eq!(site.get("/api/v1/state?at=999999").await.0, 404);
    assert_eq!(site.get("/fragment/tasks?at=x").await.0, 400);
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_carries_answers_arguments_and_a_time_where_they_fit() {
    let plan = "tasks: [{id: paint, approval: {ask: Colour?, options: [red, blue]}, run: 'true'}, \
        {id: gate, approval: {ask: Now?}, run: 'true'}]";
    let (sender, mut asks) = mpsc::channel::<Ask>(1);
    let site = Site::open(plan, PageOptions { approvals: Some(sender), ..PageOptions::default() }).await;
    site.plans.run().await.unwrap();
    let questions: Value = serde_json::from_str(&site.get("/api/v1/questions").await.1).unwrap();
    let of = |task: &str| {
        let all = questions["questions"].as_array().unwrap();
        all.iter().find(|question| question["task"] == task).unwrap()["hash"].clone()
    };
    let (paint, gate) = (of("paint"), of("gate"));
    for wrong in [
        json!({"questions": [{"task": "paint", "hash": paint}]}),
        json!({"questions": [{"task": "paint", "hash": paint, "answer": "green"}]}),
        json!({"questions": [{"task": "gate", "hash": gate, "answer": "red"}]}),
        json!({"questions": [{"task": "paint", "hash": paint, "answer": "red"}], "minutes": 5}),
        json!({"questions": [{"task": "gate", "hash": gate}], "minutes": 11}),
    ] {
        assert_eq!(site.post("/api/v1/approvals", &wrong).await.0, 400, "{wrong}");
    }
    let right = json!({"questions": [{"task": "paint", "hash": paint, "answer": "blue"}], "session": "ab12"});
    assert_eq!(site.post("/api/v1/approvals", &right).await.0, 200);
    let ask = asks.recv().await.unwrap();
    assert_eq!(ask.questions[0].answer.as_deref(), Some("blue"));
    assert!(ask.opener.starts_with("session ab12, token "), "{}", ask.opener);
    ask.decide(Decision::Expired);
    let right = json!({"questions": [{"task": "gate", "hash": gate, "args": {"command": "false"}}]});
    assert_eq!(site.post("/api/v1/approvals", &right).await.0, 200);
    assert_eq!(asks.recv().await.unwrap().questions[0].args.as_ref().unwrap()["command"], "false");
    let (status, follows) = site.get("/fragment/consequences/gate").await;
    assert!(status == 200 && follows.contains("Yes"), "{status} {follows}");
    let (status, change) = site.get("/fragment/diff/gate").await;
    assert_eq!(status, 200, "{change}");
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_definitions_are_shown_as_differences_also_after_later_changes() {
    let site = Site::open(PLAN, PageOptions::default()).await;
    let manager = site.plans.manager().clone();
    let fields = json!({"description": "<b>new</b>", "run": "false"});
    manager.update("a", fields.as_object().unwrap().clone(), None).unwrap();
    let revision = manager.revision().unwrap();
    let added = manager.create(NewTask::named("Added later")).unwrap();
    let later = manager.revision().unwrap();
    manager.cancel(&["a".to_owned()], None).unwrap();
    let (status, html) = site.get(&format!("/fragment/undo/{revision}")).await;
    assert!(status == 200 && html.contains("&lt;b&gt;new&lt;/b&gt;"), "{status} {html}");
    assert!(html.contains("<ins>") && html.contains("<del>") && html.contains("cannot be undone"), "{html}");
    let (status, html) = site.get(&format!("/fragment/undo/{later}")).await;
    assert!(status == 200 && html.contains(added.as_str()) && html.contains(" added"), "{status} {html}");
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_is_previewed_before_it_is_given() {
    let site = Site::open(PLAN, PageOptions::default()).await;
    site.plans.manager().clone().cancel(&["a".to_owned()], None).unwrap();
    let revision = site.plans.manager().revision().unwrap();
    let (status, preview) = site.get(&format!("/fragment/undo/{revision}")).await;
    assert!(status == 200 && preview.contains("would be as before"), "{status} {preview}");
    assert_eq!(site.plans.get_task("a").await.unwrap().status, Status::Cancelled, "looking changes nothing");
    let undo = json!({"command": "undo", "revision": revision});
    let (status, undone) = site.post("/api/v1/commands", &undo).await;
    assert_eq!(status, 200, "{undone}");
    assert_eq!(site.plans.get_task("a").await.unwrap().status, Status::Todo);
    assert_eq!(site.post("/api/v1/commands", &json!({"command": "undo"})).await.0, 400);
    assert_eq!(site.post("/api/v1/commands", &json!({"command": "retry", "ids": []})).await.0, 400);
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_siblings_are_one_node_with_the_number_of_each_state() {
    let plan = "tasks: [{id: root, milestone: true}, {id: a, needs: root, milestone: true}, {id: b, needs: root, milestone: true}, \
        {id: c, needs: root, call: {fail: {message: no}}}]";
    let site = Site::open(plan, PageOptions::default()).await;
    site.plans.run().await.unwrap();
    let (_, graph) = site.get("/api/v1/tasks/root/graph").await;
    let graph: Value = serde_json::from_str(&graph).unwrap();
    let group = graph["nodes"].as_array().unwrap().iter().find(|node| node["count"] == 3).unwrap();
    assert_eq!((&group["state"], &group["states"]), (&json!("failed"), &json!({"done": 2, "failed": 1})));
    assert!(site.get("/fragment/graph/root").await.1.contains("×3: 2 done, 1 failed"));
    assert!(site.get("/fragment/outlook").await.0 == 200);
    site.close().await;
}
