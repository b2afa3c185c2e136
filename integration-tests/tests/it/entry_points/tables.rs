//! Fields of tasks and tool calls with valid and invalid values, in the author's form.

use serde_json::{Value, json};

/// A field with a value, and the expected verdict at every entry point.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) field: &'static str,
    pub(super) value: Value,
    pub(super) is_accepted: bool,
}

fn rows(is_accepted: bool, fields: Vec<(&'static str, Value)>) -> impl Iterator<Item = Row> {
    fields.into_iter().map(move |(field, value)| Row { field, value, is_accepted })
}

/// Fields that tasks and calls refuse: unknown or misspelt ones, those of other programs, and those that record the past.
fn strange() -> Vec<(&'static str, Value)> {
    vec![
        ("ticket", json!(1)),
        ("colour", json!({"deep": [1]})),
        ("x", json!(1)),
        ("x-", json!(1)),
        ("retires", json!({"attempts": 2})),
        ("time_out", json!("5s")),
        ("if", json!("true")),
        ("condition", json!("true")),
        ("retries", json!(3)),
        ("maxRetries", json!(3)),
        ("timeoutSeconds", json!(3)),
        ("status", json!("done")),
        ("attempts", json!(2)),
        ("startedAt", json!("2026-05-31T00:00:00Z")),
        ("origin", json!("cli")),
    ]
}

/// Fields with values.
type Fields = Vec<(&'static str, Value)>;

/// Accepted and refused values of the fields that tasks and calls share.
fn shared() -> (Fields, Fields) {
    let question = |more: Value| {
        let mut question = json!({"ask": "Now?"});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        question
    };
    let good = vec![
        ("x-own", json!(1)),
        ("x-own", json!({"deep": [null]})),
        ("retry", json!({"attempts": 2, "delay": "1s", "factor": 2.0, "retryOn": ["timeout", 7]})),
        ("timeout", json!("5s")),
        ("sandbox", json!({"read": ["/opt"]})),
        ("approval", json!("required")),
        ("approval", question(json!({"options": ["yes", "no"], "expires": "1h", "onExpiry": "no"}))),
        ("approval", question(json!({"expires": "1h", "onExpiry": "approve"}))),
        ("approval", question(json!({"options": ["yes"], "onExpiry": "reject"}))),
    ];
    let bad = vec![
        ("retry", json!({"attempts": 0})),
        ("retry", json!({"attempts": -1})),
        ("retry", json!({"attempts": 2, "factor": 0.5})),
        ("retry", json!({"attempts": 2, "retryOn": ["sometimes"]})),
        ("retry", json!({"attempts": 2, "retryOn": [0]})),
        ("retry", json!({"atempts": 2})),
        ("retry", json!({"delay": "1s"})),
        ("retry", json!("often")),
        ("timeout", json!("0s")),
        ("timeout", json!("soon")),
        ("timeout", json!(5)),
        ("sandbox", json!({"nets": true})),
        ("sandbox", json!({"read": [" "]})),
        ("sandbox", json!("strict")),
        ("approval", json!("maybe")),
        ("approval", json!({"options": ["yes"]})),
        ("approval", json!({"ask": " "})),
        ("approval", question(json!({"options": [""]}))),
        ("approval", question(json!({"expires": "0s"}))),
        ("approval", question(json!({"onExpiry": "maybe"}))),
        ("approval", question(json!({"options": ["yes"], "onExpiry": "approve"}))),
        ("approval", question(json!({"answer": "yes"}))),
        ("trustInputs", json!([" "])),
        ("trustInputs", json!(["nowhere"])),
        ("trustInputs", json!({})),
        ("when", json!(" ")),
        ("when", json!("1 +")),
        ("when", json!("params.nowhere")),
        ("when", json!("tasks.nowhere.status")),
    ];
    (good, bad)
}

/// Returns the rows of a task with a call, because a milestone has none.
pub(super) fn of_tasks() -> Vec<Row> {
    let (mut good, mut bad) = shared();
    good.extend([
        ("description", json!("long")),
        ("priority", json!("high")),
        ("dueDate", json!("2026-05-31")),
        ("dueDate", json!("2026-05-31T12:00:00Z")),
        ("assignee", json!("ann")),
        ("labels", json!(["one", "two"])),
        ("links", json!({"relatesTo": ["other"]})),
        ("trigger", json!("all_finished")),
        ("when", json!("attempt > 0")),
        ("forEach", json!({"in": [1, 2], "concurrency": 1})),
        ("forEach", json!({"in": "${{ [1, 2] }}"})),
        ("repeat", json!({"until": "true", "max": 2, "delay": "1s"})),
        ("mode", json!("parallel")),
        ("resources", json!({"gpu": 1})),
        ("writes", json!(["out/file"])),
        ("cache", json!({"inputs": ["src/**"]})),
        ("cache", json!({"key": "attempt"})),
        ("estimate", json!("5m")),
        ("metadata", json!({"own": 1})),
    ]);
    bad.extend(strange());
    bad.extend([
        ("priorty", json!("high")),
        ("dependsOn", json!(["other"])),
        ("cmd", json!("true")),
        ("matrix", json!({"os": ["a"]})),
        ("continue_on_error", json!(true)),
        ("tags", json!(["a"])),
        ("priority", json!("urgent")),
        ("dueDate", json!("soon")),
        ("assignee", json!(" ")),
        ("labels", json!([" "])),
        ("links", json!({"blocks": ["other"]})),
        ("links", json!({"relatesTo": ["a b"]})),
        ("trigger", json!("sometimes")),
        ("trigger", json!("any_done")),
        ("forEach", json!({"in": 5})),
        ("forEach", json!({"in": [1], "concurrency": 0})),
        ("forEach", json!({"list": [1]})),
        ("forEach", json!({"in": "${{ 1 + }}"})),
        ("repeat", json!({"until": "true", "max": 0})),
        ("repeat", json!({"until": " ", "max": 1})),
        ("repeat", json!({"max": 1})),
        ("mode", json!("both")),
        ("resources", json!({"gpu": 0})),
        ("writes", json!(["/etc/passwd"])),
        ("writes", json!(["../out"])),
        ("writes", json!([" "])),
        ("cache", json!({"inputs": ["/etc/*"]})),
        ("cache", json!({"inputs": ["[a"]})),
        ("cache", json!({"key": " "})),
        ("cache", json!({"keys": "attempt"})),
        ("estimate", json!("0s")),
        ("milestone", json!("yes")),
        ("milestone", json!(true)),
        ("metadata", json!({"tool_calls": []})),
        ("metadata", json!([])),
        ("name", json!(" ")),
    ]);
    rows(true, good).chain(rows(false, bad)).collect()
}

/// Returns the rows of a call of the tool `log`.
pub(super) fn of_calls() -> Vec<Row> {
    let (mut good, mut bad) = shared();
    good.extend([
        ("id", json!("own")),
        ("when", json!("attempt > 0")),
        ("saveAs", json!("made")),
        ("keep", json!("4MiB")),
        ("emit", json!(true)),
        ("idempotent", json!(false)),
    ]);
    bad.extend(strange());
    bad.extend([
        ("id", json!("a b")),
        ("toolName", json!(" ")),
        ("arguments", json!({})),
        ("with", json!({})),
        ("saveAs", json!("a-b")),
        ("saveAs", json!("")),
        ("keep", json!("17MiB")),
        ("keep", json!("much")),
        ("emit", json!("yes")),
        ("planAccess", json!("write")),
        ("idempotent", json!("perhaps")),
    ]);
    rows(true, good).chain(rows(false, bad)).collect()
}
