//! Round trips between the flat form of a task and its parts.

use serde_json::{Value, json};
use taskpawl_model::task::{Task, TaskParts};

/// Returns a finished task with this result and one call with the result 1.
fn ended(result: &Value) -> Task {
    let time = "2026-01-01T00:00:00Z";
    serde_json::from_value(json!({
        "id": "a", "name": "a", "status": "done", "result": result, "createdAt": time, "updatedAt": time,
        "metadata": {"toolCalls": [
            {"id": "c1", "toolName": "echo", "status": "succeeded", "result": 1, "origin": "cli"},
        ]},
    }))
    .unwrap()
}

fn split(task: &Task) -> TaskParts {
    task.clone().into_parts().unwrap()
}

#[test]
fn reported_result_is_stored_separately_from_the_last_call() {
    let task = ended(&json!("by hand"));
    assert_eq!(split(&task).record.body.result, Some(json!("by hand")));
    assert_eq!(Task::from_parts(split(&task), None), task);
}

#[test]
fn result_of_the_last_call_is_stored_only_with_the_call() {
    let task = ended(&json!(1));
    assert_eq!(split(&task).record.body.result, None);
    assert_eq!(Task::from_parts(split(&task), None), task);
}

#[test]
fn round_trip_keeps_author_fields_and_unknown_fields() {
    let mut task = ended(&json!(1));
    for (name, value) in [("labels", json!(["x"])), ("timeout", json!("5m")), ("ticket", json!(7))] {
        task.options.insert(name.to_owned(), value);
    }
    let parts = split(&task);
    assert_eq!(parts.record.spec.labels, ["x"]);
    assert_eq!(parts.record.spec.extra, *json!({"ticket": 7}).as_object().unwrap());
    assert_eq!(Task::from_parts(parts, None), task);
}

#[test]
fn null_results_are_dropped_on_both_sides_of_a_round_trip() {
    let mut parts = split(&ended(&json!(1)));
    parts.record.body.result = Some(Value::Null);
    let call = &mut parts.calls[0];
    call.spec.save_as = Some("answer".to_owned());
    (call.body.result, call.body.usage) = (Some(Value::Null), Some(Box::new(Value::Null)));
    let task = Task::from_parts(parts, None);
    assert_eq!((&task.result, &task.metadata.tool_calls[0].result), (&None, &None));
    let text = serde_json::to_string(&task).unwrap();
    let read: Task = serde_json::from_str(&text).unwrap();
    assert_eq!(read, task);
    assert_eq!(Task::from_parts(split(&read), None), task);
}
