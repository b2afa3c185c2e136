//! Runs made from events.

use serde_json::{Value, json};
use taskpawl_model::task::{Event, RunRecord, Task};
use taskpawl_model::value::{CallId, TaskId};
use taskpawl_report::{Detail, Included, LogBuilder, Printed, RunEnd, RunLog, SourceLine};

/// Returns a run of 10 s.
pub(crate) fn run() -> RunRecord {
    serde_json::from_value(json!({
        "id": "0a1b2c3d4e5f", "scope": [], "actor": "user@host", "host": "host",
        "startedAt": "2026-01-02T03:04:05Z", "finishedAt": "2026-01-02T03:04:15Z", "exit": 1,
    }))
    .unwrap()
}

/// Returns an event of the run at a second of it.
pub(crate) fn event(task: &str, second: u32, kind: &Value) -> Event {
    let mut event = json!({
        "revision": 1, "at": format!("2026-01-02T03:04:{:02}Z", 5 + second), "actor": "user@host",
        "run": "0a1b2c3d4e5f", "task": task,
    });
    event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
    serde_json::from_value(event).unwrap()
}

pub(crate) fn status(from: &str, to: &str, text: Option<&str>) -> Value {
    json!({"type": "status", "from": from, "to": to, "cause": "run", "attempt": 1, "text": text})
}

pub(crate) fn started(call: &str) -> Value {
    json!({"type": "call_started", "call": call, "attempt": 1, "start": 1})
}

pub(crate) fn ended(call: &str, status: &str, error: Option<&str>) -> Value {
    json!({"type": "call_ended", "call": call, "attempt": 1, "status": status, "error": error})
}

fn task(id: &str, name: &str, status: &str) -> Task {
    serde_json::from_value(json!({
        "id": id, "name": name, "status": status, "plan": "demo", "attempt": 1, "description": format!("prompt {name}"),
        "createdAt": "2026-01-02T03:04:05Z", "updatedAt": "2026-01-02T03:04:05Z",
        "metadata": {"context": {}, "toolCalls": [{
            "id": "c1", "toolName": "exec", "args": {"argv": ["make", name]}, "status": status_of_call(status),
            "result": {"exitCode": i32::from(status == "failed"), "stdout": name}, "errorClass": class(status),
            "attempts": 1, "origin": "cli",
            "artifacts": [{"name": name, "path": "/keep/file", "bytes": 12, "sha256": "00", "mediaType": name}],
        }]},
    }))
    .unwrap()
}

fn class(status: &str) -> Option<&str> {
    (status == "failed").then_some("exit_code")
}

fn status_of_call(status: &str) -> &str {
    if status == "failed" { "failed" } else { "succeeded" }
}

/// Returns a log with a task that is done, one that failed with `text` everywhere a tool or task puts text, and one
/// that was blocked.
pub(crate) fn log(text: &str, details: &[Detail]) -> RunLog {
    let included = Included::new(details.iter().copied(), Some("/home/me".to_owned()));
    let mut builder = LogBuilder::new(&run(), RunEnd::Exit(1), included);
    let events = [
        event("a", 0, &status("todo", "in_progress", None)),
        event("a", 0, &started("c1")),
        event("a", 2, &ended("c1", "succeeded", None)),
        event("a", 2, &status("in_progress", "done", None)),
        event("b", 2, &status("todo", "in_progress", None)),
        event("b", 2, &started("c1")),
        event("b", 9, &ended("c1", "failed", Some(text))),
        event("b", 9, &status("in_progress", "failed", Some(text))),
        event("c", 9, &status("todo", "blocked", None)),
    ];
    for event in &events {
        builder.take(event);
    }
    builder.describe(&task("a", "First", "done"));
    builder.describe(&task("b", text, "failed"));
    builder.set_line(&TaskId::from("b"), SourceLine { file: "plans/demo.yaml".to_owned(), line: 7 });
    let printed = Printed { stream: "stderr".to_owned(), text: text.to_owned(), is_cut: false };
    builder.add_output(&TaskId::from("b"), &CallId::from("c1"), 1, printed);
    builder.finish()
}
