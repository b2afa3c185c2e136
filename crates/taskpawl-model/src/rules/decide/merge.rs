//! Compares a task in the store with the same task in an imported source, and detects changes on either side.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::plan::CALL_STATE;
use crate::task::status::{BlockedReason, Status};
use crate::task::wire::Task;
use crate::value::Period;
use crate::value::Timestamp;

/// Fields of the status. They are imported together or not at all.
pub(super) const STATE: &[&str] =
    &["status", "blockedReason", "error", "result", "claim", "startedAt", "finishedAt"];

/// Longest text that a report repeats, in characters.
const MAX_SHOWN: usize = 60;

/// Returns the values of these fields; empty ones are `null`.
pub(super) fn said(task: &Task, fields: &[String]) -> BTreeMap<String, Value> {
    let Ok(Value::Object(mut map)) = serde_json::to_value(task) else { return BTreeMap::new() };
    let follows = |reason: &BlockedReason| {
        !matches!(reason, BlockedReason::Manual { .. } | BlockedReason::Interrupted { .. })
    };
    if task.blocked_reason.as_ref().is_some_and(follows) {
        // A block derived from other tasks or from a question does not exist in other programs.
        map.insert("status".to_owned(), json!(Status::Todo));
        map.remove("blockedReason");
    }
    let value = |field: &String| {
        let found = match field.strip_prefix("metadata.") {
            Some(member) => map.get("metadata").and_then(|metadata| metadata.get(member)),
            None => map.get(field),
        };
        (field.clone(), plain(field, found))
    };
    fields.iter().map(value).collect()
}

fn plain(field: &str, value: Option<&Value>) -> Value {
    match (field, value) {
        ("dependencies", Some(Value::Array(ids))) => {
            let sorted: BTreeSet<&str> = ids.iter().filter_map(Value::as_str).collect();
            json!(sorted)
        }
        // Progress of a call is no part of its work, and other programs do not store it.
        ("metadata.toolCalls", Some(Value::Array(calls))) => calls.iter().map(work_of).collect(),
        (_, Some(Value::Array(list))) if list.is_empty() => Value::Null,
        (_, Some(Value::Object(map))) if map.is_empty() => Value::Null,
        (_, Some(Value::String(text))) if text.is_empty() => Value::Null,
        (_, value) => value.cloned().unwrap_or_default(),
    }
}

fn work_of(call: &Value) -> Value {
    let mut call = call.as_object().cloned().unwrap_or_default();
    call.retain(|name, _| !CALL_STATE.contains(&name.as_str()));
    Value::Object(call)
}

/// Returns whether a field is equal in the store and in the source. Of the status only its word is compared.
pub(super) fn is_equal(field: &str, here: Option<&Value>, there: &Value) -> bool {
    let here = here.unwrap_or(&Value::Null);
    match field {
        "dependencies" => list(here) == list(there),
        "status" => here == there,
        _ if STATE.contains(&field) => true,
        _ => here == there,
    }
}

pub(super) fn list(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns whether a stored field still has the value that its source had last, up to the precision of formats.
///
/// Fields that formats store in their own form cannot be compared this way. They count as unchanged.
pub(super) fn is_as_said(
    field: &str,
    here: Option<&Value>,
    before: &Value,
    is_deleted: impl Fn(&str) -> bool,
) -> bool {
    let here = here.unwrap_or(&Value::Null);
    match field {
        // Formats may join lines or trim white space.
        "name" | "description" => words(here).eq(words(before)),
        "priority" | "assignee" | "parent" | "metadata.context" => here == before,
        "dueDate" | "notBefore" => {
            here == before || time(here).zip(time(before)).is_some_and(|(one, other)| one == other)
        }
        "labels" => texts(here).eq(&texts(before)),
        "estimate" => {
            here == before || minutes(here).zip(minutes(before)).is_some_and(|(one, other)| one == other)
        }
        "links" => links(here) == links(before),
        // A task deleted here has lost its dependents, which is no change of theirs.
        "dependencies" => {
            let before: BTreeSet<&str> = texts(before).into_iter().filter(|id| !is_deleted(id)).collect();
            texts(here) == before
        }
        _ => true,
    }
}

/// Returns the reason why a field keeps its value in the store.
pub(super) fn why(here: Option<&Value>, there: &Value) -> String {
    let short = |value: &Value| {
        let text = value.as_str().filter(|text| text.chars().count() <= MAX_SHOWN && !text.contains('\n'));
        text.map(|text| format!("`{text}`"))
    };
    match here.and_then(short).zip(short(there)) {
        Some((here, there)) => format!("changed to {here} in the store and to {there} in the source"),
        None => "changed differently in the store and in the source".to_owned(),
    }
}

fn words(value: &Value) -> impl Iterator<Item = &str> {
    value.as_str().unwrap_or_default().split_whitespace()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// Returns a duration in whole minutes, which is the precision of some formats.
fn minutes(value: &Value) -> Option<u64> {
    let period: Period = value.as_str()?.parse().ok()?;
    Some(period.0.as_secs().div_ceil(60))
}

fn links(value: &Value) -> BTreeMap<&str, BTreeSet<&str>> {
    let kinds = value.as_object().into_iter().flatten();
    let kinds = kinds.map(|(kind, list)| (kind.as_str(), texts(list)));
    kinds.filter(|(_, list)| !list.is_empty()).collect()
}

fn texts(value: &Value) -> BTreeSet<&str> {
    list(value).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_ran_still_has_the_work_of_its_source() {
        let said = json!([{"toolName": "exec", "args": {"argv": ["true"]}}]);
        let mut ran = said.clone();
        for (name, value) in
            [("status", json!("succeeded")), ("result", json!({"exitCode": 0})), ("cut", json!(["stdout"]))]
        {
            ran[0][name] = value;
        }
        let work = |calls: &Value| plain("metadata.toolCalls", Some(calls));
        assert_eq!(work(&ran), work(&said));
        ran[0]["args"]["argv"] = json!(["false"]);
        assert_ne!(work(&ran), work(&said));
    }
}
