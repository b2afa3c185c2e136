use std::collections::BTreeSet;

use serde_json::json;
use taskpawl::model::task::Status;
use tokio::task::JoinSet;

use super::support::{ERAS, Scene, connect};

const AGENTS: usize = 10;
const TASKS: usize = 60;

/// One server, one client for each agent, and a plan in which half of the tasks depend on the other half.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_agents_share_a_plan_and_no_task_is_lost_or_done_twice() {
    let scene = Scene::new();
    let server = scene.server();
    let first = connect(&server, ERAS[0]).await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|n| json!({"id": format!("t{n}"), "name": format!("Task {n}"), "needs": if n % 2 == 1 { vec![format!("t{}", n - 1)] } else { vec![] }}))
        .collect();
    first.call("plan_write", json!({"plan": {"tasks": tasks}})).await;
    let mut agents = JoinSet::new();
    for n in 0..AGENTS {
        let client = connect(&server, ERAS[n % 2]).await;
        agents.spawn(async move {
            let agent = format!("agent-{n}");
            let mut done = Vec::new();
            loop {
                let number = done.len();
                let claim = json!({"claim": true, "agent": agent, "request_id": format!("claim-{number}")});
                let result = client.raw("ready_list", claim.clone()).await;
                if result.is_error == Some(true) {
                    // When other agents end their tasks, more tasks may become ready.
                    let left = client.call("plan_show", json!({"status": ["todo", "in_progress"]})).await;
                    if left["tasks"] == json!([]) {
                        break done;
                    }
                    tokio::task::yield_now().await;
                    continue;
                }
                let claimed = result.structured_content.unwrap()["claimed"].clone();
                // As after a lost answer: the repeated claim gets the same task.
                let repeated = client.call("ready_list", claim).await;
                assert_eq!(repeated["claimed"]["id"], claimed["id"]);
                let end = json!({
                    "id": claimed["id"], "action": "done", "attempt": claimed["attempt"], "agent": agent,
                    "result": agent, "request_id": format!("done-{number}"),
                });
                client.call("task_update", end.clone()).await;
                client.call("task_update", end).await;
                done.push(claimed["id"].as_str().unwrap().to_owned());
            }
        });
    }
    let done: Vec<String> = agents.join_all().await.into_iter().flatten().collect();
    let different: BTreeSet<&String> = done.iter().collect();
    assert_eq!((done.len(), different.len()), (TASKS, TASKS));
    let plans = scene.plans();
    assert_eq!(plans.manager().counts().unwrap()[&Status::Done], TASKS as u64);
    for id in &done {
        assert_eq!(plans.blocking().get_task(id).unwrap().attempt, 1, "{id} was claimed more than once");
    }
}
