//! Answers fit into the size that their caller asks for: of every tool, over a large store.

use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use taskpawl::Ending;
use taskpawl::model::command::Command;

use super::support::{Client, ERAS, Scene, connect};

const TASKS: usize = 300;

fn long(text: &str, length: usize) -> String {
    format!("{text} \"quoted\" ").repeat(length / text.len())
}

/// Fills a store: long names, descriptions, results and notes, and many tasks of each kind.
fn fill(scene: &Scene) {
    let plans = scene.plans();
    for n in 0..7 {
        let plan = json!({"description": long("goal", 4_000), "tasks": [{"id": format!("p{n}")}]});
        plans.blocking().apply_text(&plan.to_string(), &format!("plan-{n}")).unwrap();
    }
    let task = |n: usize| {
        let id = format!("t{n:03}");
        let (name, description) = (long(&id, 150), long("text", 3_000));
        match n % 5 {
            0 => json!({"id": id, "name": name, "call": {"log": {"message": description}}}),
            1 => json!({"id": id, "name": name, "call": {"nonsense": {}}}),
            _ => json!({"id": id, "name": name, "description": description}),
        }
    };
    let mut tasks: Vec<Value> = (0..TASKS).map(task).collect();
    let needs: Vec<String> = (0..TASKS).filter(|n| n % 5 == 2).map(|n| format!("t{n:03}")).collect();
    tasks.push(json!({"id": "gather", "needs": needs, "description": long("text", 3_000)}));
    plans.blocking().apply_text(&json!({"tasks": tasks}).to_string(), "big").unwrap();
    let manager = plans.manager();
    let ending = || Ending {
        result: Some(json!({"text": long("found", 20_000)})),
        note: Some(long("note", 2_000)),
        attempt: None,
    };
    manager.done(&needs, ending()).unwrap();
    let failed: Vec<String> = (0..TASKS).filter(|n| n % 25 == 3).map(|n| format!("t{n:03}")).collect();
    manager.fail(&failed, ending()).unwrap();
    for n in (0..TASKS).filter(|n| n % 25 == 4) {
        let id = format!("t{n:03}");
        let agent = manager.clone().with_actor(format!("agent-{n}"));
        agent.claim(&id, std::time::Duration::from_mins(30)).unwrap();
        agent.command(Command::Note { id, text: long("note", 2_000) }).unwrap();
    }
}

/// Returns the text of an answer, which has at most `most` bytes.
fn checked(call: &str, result: &CallToolResult, most: usize) -> Value {
    let text = &result.content[0].as_text().unwrap().text;
    assert!(text.len() <= most, "{call}: {} bytes: {text}", text.len());
    serde_json::from_str(text).unwrap()
}

/// Checks an answer, and that the first of its next steps reads what was cut.
async fn check(client: &Client, tool: &str, arguments: &Value) {
    let call: String = format!("{tool} {arguments}").chars().take(200).collect();
    let result = client.raw(tool, arguments.clone()).await;
    let most = arguments["max_bytes"].as_u64().map_or(2_000, |asked| asked.min(16_000) as usize);
    let answer = checked(&call, &result, most);
    let is_cut = answer["shortened"] == true || answer.get("nextOffset").is_some();
    if result.is_error == Some(true) || !is_cut || tool == "task_delete" {
        return;
    }
    let next = &answer["nextActions"][0];
    assert!(
        matches!(next["tool"].as_str(), Some("plan_show" | "task_get" | "ready_list" | "run_ready")),
        "{answer}"
    );
    let most = next["arguments"]["max_bytes"].as_u64().map_or(2_000, |asked| usize::try_from(asked).unwrap());
    let rest = client.raw(next["tool"].as_str().unwrap(), next["arguments"].clone()).await;
    assert_eq!(rest.is_error, Some(false), "{call}: {next}: {rest:?}");
    let rest = checked(&next.to_string(), &rest, most);
    assert!(most == 2_000 || rest.to_string().len() > answer.to_string().len(), "{call}: {next}: {rest}");
}

#[tokio::test]
async fn every_answer_fits() {
    let scene = Scene::new();
    fill(&scene);
    let client = connect(&scene.server(), ERAS[1]).await;
    let many: Vec<Value> =
        (0..TASKS).map(|n| json!({"id": format!("new-{n}"), "name": long("new", 100)})).collect();
    let wrong: Vec<Value> =
        (0..TASKS).map(|n| json!({"id": format!("w{n}"), "needs": [long("none", 100)]})).collect();
    let ids: Vec<String> = (0..TASKS).map(|n| format!("new-{n}")).collect();
    let name = long("name", 5_000);
    for (tool, arguments) in [
        ("plan_show", json!({})),
        ("plan_show", json!({"agent": "agent-4"})),
        ("plan_show", json!({"status": ["todo"]})),
        ("plan_show", json!({"plan": "big", "limit": 200})),
        ("plan_show", json!({"text": name})),
        ("task_get", json!({"id": "gather"})),
        ("task_get", json!({"id": "t000"})),
        ("task_get", json!({"id": "t001"})),
        ("task_get", json!({"id": "t002"})),
        ("task_get", json!({"id": "t003"})),
        ("task_get", json!({"id": "t002", "part": "result"})),
        ("task_get", json!({"id": "t002", "part": "result", "tail": 10_000})),
        ("task_get", json!({"id": "t002", "part": "result", "limit": 50_000})),
        ("task_get", json!({"id": "t002", "part": "description"})),
        ("task_get", json!({"id": name})),
        ("ready_list", json!({})),
        ("ready_list", json!({"limit": TASKS})),
        ("ready_list", json!({"claim": true, "agent": "eve"})),
        ("task_update", json!({"id": "gather", "action": "claim", "agent": "eve"})),
        ("task_update", json!({"id": "gather", "action": "done", "next": true, "agent": "eve"})),
        ("task_update", json!({"id": "t004", "note": name})),
        ("task_update", json!({"id": "t004", "action": "release", "agent": "eve"})),
        ("task_update", json!({"id": "t004", "action": name})),
        ("task_add", json!({"id": "added", "name": name, "description": name, "needs": ["t002", "t007"]})),
        ("plan_write", json!({"name": "new", "plan": {"tasks": many}})),
        ("plan_write", json!({"name": "new", "plan": {"tasks": [{"id": "new-1"}]}})),
        ("plan_write", json!({"name": "wrong", "plan": {"tasks": wrong}})),
        ("task_delete", json!({"ids": ["t002", "t007"]})),
        ("task_delete", json!({"ids": ids})),
        ("run_ready", json!({"only": ["plan:big"], "wait_s": 45})),
    ] {
        check(&client, tool, &arguments).await;
        let is_read =
            matches!(tool, "plan_show" | "task_get" | "ready_list") && arguments.get("claim").is_none();
        for max_bytes in [500, 4_000, 1_000_000].into_iter().filter(|_| is_read) {
            let mut sized = arguments.clone();
            sized["max_bytes"] = json!(max_bytes);
            check(&client, tool, &sized).await;
        }
    }
}
