//! Lists of tasks that no store wrote, such as the output of `taskpawl export tasks`, as the content of a new
//! store.

use serde_json::{Map, Value, json};

/// The version of such a file. Stores begin with version 1.
pub(super) const VERSION: i64 = 0;

/// Fields that every exported task has. An object without one of them is some other JSON.
const ALWAYS: &[&str] = &["id", "name", "status", "metadata", "createdAt", "updatedAt"];

/// Top-level fields that only a store has. They are dropped, so that an export cannot carry history into a
/// new store.
const OF_A_STORE: &[&str] =
    &["plans", "runs", "prunedRuns", "events", "deletedIds", "applied", "undo", "requests", "index"];

/// Fields with results of another store. They are dropped: dependents here would otherwise use a result or an
/// error that nothing in this store has produced.
const NOT_TAKEN: &[&str] = &["claim", "granted", "due", "emitted", "result", "errorClass"];

/// Further fields with the results of a call.
const OF_A_CALL: &[&str] = &["usage", "evaluatedArgs", "error", "asked", "artifacts"];

/// Returns whether this is the output of a command with `--json`, which lacks the data that a store needs.
pub(super) fn is_printed(value: &Value) -> bool {
    let has = |field| value.get(field).is_some();
    has("schemaVersion") && (has("data") || has("error")) && !has("tasks")
}

/// Returns the content of a store with these tasks, or `None` if `value` is not a list of tasks.
pub(super) fn content_of(value: &Value, version: i64) -> Option<Value> {
    let mut content = value.as_object()?.clone();
    let tasks = content.get("tasks")?.as_array()?;
    let is_task = |task: &Value| ALWAYS.iter().all(|field| task.get(field).is_some());
    // An empty list without further fields could come from any program, but accepting it loses nothing.
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

/// Resets the progress of a task from another store, none of whose calls run here. All calls get the origin
/// `agent`, which requires an approval before they start: the user who opens the file did not write them.
fn task(mut task: Map<String, Value>) -> Value {
    // The error of a failed task describes a run elsewhere. The error of any other status is the remark of a
    // person; keep it.
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
