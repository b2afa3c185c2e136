//! What a record says beyond what a task has: kept with the task, and given back.

use serde_json::Value;
use taskpawl_model::{Map, Status, Task};

/// Puts what is left of a record into `metadata.<name>`.
pub(crate) fn keep(task: &mut Task, name: &str, kept: Map) {
    if !kept.is_empty() {
        task.metadata.extra.insert(name.to_owned(), Value::Object(kept));
    }
}

/// Returns what was kept of the record of a task.
pub(crate) fn kept(task: &Task, name: &str) -> Map {
    task.metadata.extra.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Keeps links to what is not in the file, as they are: the other program may know where they lead.
pub(crate) fn keep_away(kept: &mut Map, field: &str, links: Vec<Value>) {
    if !links.is_empty() {
        kept.insert(field.to_owned(), Value::Array(links));
    }
}

/// Takes what [`keep_away`] kept.
pub(crate) fn take_away(kept: &mut Map, field: &str) -> Vec<Value> {
    match kept.remove(field) {
        Some(Value::Array(links)) => links,
        _ => Vec::new(),
    }
}

/// Keeps the value of a field where that which would be written for it is another one.
pub(crate) fn keep_if_other(kept: &mut Map, field: &str, value: Value, usual: &Value) {
    if value != *usual {
        kept.insert(field.to_owned(), value);
    }
}

/// Writes a field: what was kept of it as long as it `means` the same, else the `usual` value, unless that is `null`.
pub(crate) fn put(out: &mut Map, kept: &mut Map, field: &str, usual: Value, means: impl Fn(&Value) -> bool) {
    let value = match kept.remove(field) {
        Some(before) if means(&before) => before,
        _ => usual,
    };
    if !value.is_null() {
        out.insert(field.to_owned(), value);
    }
}

/// Keeps the word for a state. That of a task in progress is kept in any case: see [`fits`](crate::states::fits).
pub(crate) fn keep_word(kept: &mut Map, field: &str, word: &str, usual: &str, status: Status) {
    if status == Status::InProgress {
        kept.insert(field.to_owned(), Value::String(word.to_owned()));
    } else {
        keep_if_other(kept, field, Value::String(word.to_owned()), &Value::String(usual.to_owned()));
    }
}

/// Writes what is left of what was kept; what is written already counts.
pub(crate) fn put_rest(out: &mut Map, kept: Map) {
    for (field, value) in kept {
        out.entry(field).or_insert(value);
    }
}
