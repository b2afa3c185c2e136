//! Results of servers that are longer than a stored result. Expressions must not read them as if they were complete.

use serde_json::{Value, json};
use taskpawl::{RunOptions, Taskpawl};

use crate::support::test_server;
use crate::tool_lookup::plans;

/// Longer than the stored part of a result.
const LENGTH: usize = 300_000;

/// Returns a task that lets the server echo a text.
fn echo(id: &str, needs: &[&str], text: &str) -> Value {
    json!({"id": id, "needs": needs, "call": {"s/echo": {"text": text}}})
}

/// Returns the error class and the message of a failed task.
fn failure(plans: &Taskpawl, id: &str) -> (String, String) {
    let task = plans.blocking().get_task(id).unwrap();
    let of_call = task.metadata.tool_calls.iter().find_map(|call| call.error_class.clone());
    let class = task.error_class.map(|class| class.to_string()).or(of_call);
    (class.unwrap_or_else(|| task.status.to_string()), task.error.unwrap_or_default())
}

#[tokio::test]
async fn a_result_that_was_cut_is_read_only_where_it_is_kept_or_a_part_will_do() {
    let dir = tempfile::tempdir().unwrap();
    let plans = plans(dir.path(), &test_server("both"));
    let long = "x".repeat(LENGTH);
    let call = json!([{"toolName": "s/echo", "args": {"text": long}, "keep": "4MiB"}]);
    let length = "${{ tasks.cut.result.text | length | string }}";
    let plan = json!({"tasks": [
        echo("cut", &[], &long),
        {"id": "kept", "toolCalls": call},
        echo("argument", &["cut"], length),
        {"id": "when", "needs": "cut", "when": "tasks.cut.result.text | length > 1", "call": {"s/echo": {"text": "a"}}},
        {"id": "each", "needs": "cut", "forEach": {"in": "${{ [tasks.cut.result.text] }}"}, "call": {"s/echo": {"text": "a"}}},
        echo("part", &["cut"], "${{ (tasks.cut.result | partial).sha256 }}"),
        echo("whole", &["kept"], &length.replace("cut", "kept")),
    ]});
    plans.blocking().apply_text(&plan.to_string(), "plan").unwrap();
    let summary = plans.run_all_ready(RunOptions::default()).await.unwrap();
    assert_eq!(plans.blocking().get_task("cut").unwrap().status.as_str(), "done", "{summary:?}");
    for id in ["argument", "when", "each"] {
        let (class, error) = failure(&plans, id);
        assert_eq!(class, "truncated", "{id}: {error}");
        assert!(error.contains("`keep: 4MiB`") && error.contains("| partial`"), "{id}: {error}");
    }
    let text = |id: &str| plans.blocking().get_task(id).unwrap().result.unwrap()["text"].clone();
    assert_eq!(text("part").as_str().unwrap().len(), 64);
    assert_eq!(text("whole"), LENGTH.to_string());
}
