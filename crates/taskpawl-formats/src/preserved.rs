//! Fields of a record that a task cannot express. They are preserved with the task and written back.

use serde_json::Value;
use taskpawl_model::task::{Status, Task};
use taskpawl_model::value::Map;

/// Stores the remaining fields of a record in `metadata.<name>`.
pub(crate) fn keep(task: &mut Task, name: &str, kept: Map) {
    if !kept.is_empty() {
        task.metadata.extra.insert(name.to_owned(), Value::Object(kept));
    }
}

/// Returns the preserved fields of a task.
pub(crate) fn kept(task: &Task, name: &str) -> Map {
    task.metadata.extra.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Preserves links to records outside the file: the other program may know their targets.
pub(crate) fn keep_away(kept: &mut Map, field: &str, links: Vec<Value>) {
    if !links.is_empty() {
        kept.insert(field.to_owned(), Value::Array(links));
    }
}

/// Preserves one more such link of a task.
pub(crate) fn add_away(task: &mut Task, name: &str, field: &str, link: Value) {
    let mut kept = kept(task, name);
    let mut links = take_away(&mut kept, field);
    links.push(link);
    keep_away(&mut kept, field, links);
    keep(task, name, kept);
}

/// Removes and returns the links that [`keep_away`] preserved.
pub(crate) fn take_away(kept: &mut Map, field: &str) -> Vec<Value> {
    match kept.remove(field) {
        Some(Value::Array(links)) => links,
        _ => Vec::new(),
    }
}

/// Preserves the value of a field if an export would write another value.
pub(crate) fn keep_if_other(kept: &mut Map, field: &str, value: Value, usual: &Value) {
    if value != *usual {
        kept.insert(field.to_owned(), value);
    }
}

/// Writes a field: the preserved value if it still has the task's meaning, else `usual`. `null` is not written.
pub(crate) fn put(out: &mut Map, kept: &mut Map, field: &str, usual: Value, means: impl Fn(&Value) -> bool) {
    let value = match kept.remove(field) {
        Some(before) if means(&before) => before,
        _ => usual,
    };
    if !value.is_null() {
        out.insert(field.to_owned(), value);
    }
}

/// Preserves a status word. That of a task in progress is always preserved: see [`fits`](crate::states::fits).
pub(crate) fn keep_word(kept: &mut Map, field: &str, word: &str, usual: &str, status: Status) {
    if status == Status::InProgress {
        kept.insert(field.to_owned(), Value::String(word.to_owned()));
    } else {
        keep_if_other(kept, field, Value::String(word.to_owned()), &Value::String(usual.to_owned()));
    }
}

/// Writes the remaining preserved fields. Fields that were written before take precedence.
pub(crate) fn put_rest(out: &mut Map, kept: Map) {
    for (field, value) in kept {
        out.entry(field).or_insert(value);
    }
}
