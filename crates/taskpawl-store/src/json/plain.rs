//! A list of tasks that no store wrote, as `taskpawl export tasks` does: each with the fields that every task has.

use serde_json::{Map, Value, json};

/// The version of such a file, which is that of no store.
pub(super) const VERSION: i64 = 0;

/// Fields without which it is no task of ours.
const ALWAYS: &[&str] = &["id", "name", "status", "metadata", "createdAt", "updatedAt"];

/// What a store alone says.
const OF_A_STORE: &[&str] =
    &["plans", "runs", "prunedRuns", "events", "deletedIds", "applied", "undo", "requests", "index"];

/// What became of a task or call elsewhere, and counts there alone: other tasks would go on with a result or an
/// error that nothing here gave.
const NOT_TAKEN: &[&str] = &["claim", "granted", "due", "emitted", "result", "errorClass"];

/// What else is recorded of a call.
const OF_A_CALL: &[&str] = &["usage", "evaluatedArgs", "error"];

/// Returns whether this is what a command printed with `--json`: an answer, and nothing that a store could go on from.
pub(super) fn is_printed(value: &Value) -> bool {
    let has = |field| value.get(field).is_some();
    has("schemaVersion") && (has("data") || has("error")) && !has("tasks")
}

/// Returns the content of a store with these tasks; `None` where it is something else.
pub(super) fn content_of(value: &Value, version: i64) -> Option<Value> {
    let mut content = value.as_object()?.clone();
    let tasks = content.get("tasks")?.as_array()?;
    let is_task = |task: &Value| ALWAYS.iter().all(|field| task.get(field).is_some());
    // An empty list alone may be anybody's, but nothing is lost with it.
    if !tasks.iter().all(is_task) || (tasks.is_empty() && content.len() > 1) {
        return None;
    }
    let tasks: Vec<Value> = tasks.iter().filter_map(Value::as_object).cloned().map(task).collect();
    content.retain(|field, _| !OF_A_STORE.contains(&field.as_str()));
    content.insert("schemaVersion".to_owned(), json!(version));
    content.insert("revision".to_owned(), json!(0));
    content.insert("tasks".to_owned(), Value::Array(tasks));
    Some(Value::Object(content))
}

/// Nothing in it runs here, and whoever wrote its calls is not who opens the file: they ask before they run.
fn task(mut task: Map<String, Value>) -> Value {
    // Why a task was given up is a remark; what failed elsewhere says nothing to others here.
    let is_failed = task.get("status") == Some(&json!("failed"));
    task.retain(|field, _| !(NOT_TAKEN.contains(&field.as_str()) || is_failed && field == "error"));
    let calls = task.get_mut("metadata").and_then(|metadata| metadata.get_mut("toolCalls"));
    let (mut has_calls, mut running) = (false, None);
    for call in calls.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut) {
        has_calls = true;
        call.retain(|field, _| !NOT_TAKEN.contains(&field.as_str()) && !OF_A_CALL.contains(&field.as_str()));
        call.insert("origin".to_owned(), json!("agent"));
        if call.get("status") == Some(&json!("running")) {
            call.insert("status".to_owned(), json!("interrupted"));
            running = call.get("id").cloned();
        }
    }
    let is_begun = task.get("status") == Some(&json!("in_progress"));
    if let Some(call) = running.filter(|_| is_begun) {
        task.insert("status".to_owned(), json!("blocked"));
        task.insert("blockedReason".to_owned(), json!({ "type": "interrupted", "call": call }));
    } else if is_begun && has_calls {
        task.insert("status".to_owned(), json!("todo"));
    } else if let Some(actor) = task.get("assignee").cloned().filter(|_| is_begun) {
        task.insert("claim".to_owned(), json!({ "actor": actor }));
    }
    Value::Object(task)
}
