//! What a task says and a format has no place for.

use serde_json::Value;
use taskpawl_model::{Map, Task};

use crate::format::LeftOut;
use crate::tasks::NOT_TAKEN;

/// Fields that are not missed: a state says or implies them, they follow from what happened, or, as a priority, they have a word in
/// every format or stand in [our own text](crate::ours).
const NOT_MISSED: &[&str] =
    &["priority", "blockedReason", "errorClass", "createdAt", "updatedAt", "startedAt", "finishedAt"];

/// Members of `metadata` that belong to a task; the others are what is kept of formats.
const MEMBERS: &[&str] = &["toolCalls", "context"];

/// Lists what tasks say beyond the fields that a format has.
pub(crate) fn say(tasks: &[Task], fields: &[&str], why: &str, left_out: &mut Vec<LeftOut>) {
    for task in tasks {
        let Ok(Value::Object(map)) = serde_json::to_value(task) else { continue };
        let lost = said(&map).into_iter().filter(|field| !fields.contains(&field.as_str()));
        left_out.extend(lost.map(|field| LeftOut::new(format!("{}: {field}", task.id), why)));
    }
}

/// Returns the names of the fields of a task that say something.
fn said(map: &Map) -> Vec<String> {
    let is_missed = |field: &str| !NOT_TAKEN.contains(&field) && !NOT_MISSED.contains(&field);
    let fields = map.iter().filter(|(field, value)| is_missed(field) && !is_empty(value));
    let mut said: Vec<String> = fields.map(|(field, _)| field.clone()).collect();
    let metadata = map.get("metadata").and_then(Value::as_object);
    let members = metadata.into_iter().flatten();
    let members = members.filter(|(name, value)| MEMBERS.contains(&name.as_str()) && !is_empty(value));
    said.extend(members.map(|(name, _)| format!("metadata.{name}")));
    said
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
