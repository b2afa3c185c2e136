//! Fields of a task that a format cannot express.

use std::collections::BTreeMap;

use serde_json::Value;
use taskpawl_model::task::{BlockedReason, Task};
use taskpawl_model::value::Map;

use crate::reading::LeftOut;
use crate::states::IMPORTED;

/// Fields that are not reported. They follow from the status or from events, say who wrote a value, or, like the priority, are in every format or in
/// [the text of own fields](crate::own_fields).
const NOT_MISSED: &[&str] = &[
    "priority",
    "blockedReason",
    "errorClass",
    "origins",
    "createdAt",
    "updatedAt",
    "startedAt",
    "finishedAt",
];

/// Fields that are not imported as they are: those that only the store sets (claims, decisions, counters), and those with a reader of
/// their own.
pub(crate) const NOT_TAKEN: &[&str] = &[
    "subtasks",
    "metadata",
    "id",
    "plan",
    "claim",
    "claimEnded",
    "questionOver",
    "waitOver",
    "endedBy",
    "attempt",
    "generation",
    "version",
    "names",
    "ready",
    "opened",
    "formerItems",
    "item",
    "round",
    "deadline",
    "took",
    "granted",
    "cached",
    "fingerprint",
    "cachedFrom",
    "changedBeyond",
    "changesUnknown",
];

/// Reports the fields of tasks that the format does not have.
pub(crate) fn say(tasks: &[Task], fields: &[&str], why: &str, left_out: &mut Vec<LeftOut>) {
    for task in tasks {
        let Ok(Value::Object(map)) = serde_json::to_value(task) else { continue };
        let mut said = said(&map);
        if is_reason_missed(task, fields) {
            said.push("blockedReason".to_owned());
        }
        let lost = said.into_iter().filter(|field| !fields.contains(&field.as_str()));
        left_out.extend(lost.map(|field| LeftOut::new(format!("{}: {field}", task.id), why)));
    }
    say_plans(tasks, why, left_out);
}

/// Reports the plans of the tasks, each once and not with every task.
pub(crate) fn say_plans(tasks: &[Task], why: &str, left_out: &mut Vec<LeftOut>) {
    let mut plans: BTreeMap<&str, u64> = BTreeMap::new();
    for plan in tasks.iter().filter_map(|task| task.plan.as_deref()) {
        *plans.entry(plan).or_default() += 1;
    }
    let said = |(plan, count): (&str, u64)| {
        let noun = if count == 1 { "task" } else { "tasks" };
        LeftOut::new(format!("plan: {plan}"), format!("{why}: {count} {noun} came with it"))
    };
    left_out.extend(plans.into_iter().map(said));
}

/// Returns the names of a task's fields that are not empty.
fn said(map: &Map) -> Vec<String> {
    let is_missed = |field: &str| !NOT_TAKEN.contains(&field) && !NOT_MISSED.contains(&field);
    let fields = map.iter().filter(|(field, value)| is_missed(field) && !is_empty(value));
    let mut said: Vec<String> = fields.map(|(field, _)| field.clone()).collect();
    let metadata = map.get("metadata").and_then(Value::as_object);
    // Preserved fields of other formats are among them: this format cannot express those either.
    let members = metadata.into_iter().flatten().filter(|(_, value)| !is_empty(value));
    said.extend(members.map(|(name, _)| format!("metadata.{name}")));
    said
}

/// Returns true if the task has a manual block whose reason would be lost. A preserved status word or time restores its reason.
fn is_reason_missed(task: &Task, fields: &[&str]) -> bool {
    let Some(BlockedReason::Manual { text }) = &task.blocked_reason else { return false };
    let mut kept =
        fields.iter().filter_map(|field| task.metadata.extra.get(field.strip_prefix("metadata.")?));
    text != IMPORTED && !kept.any(|kept| kept.get("status").or(kept.get("wait")).is_some())
}

/// Returns true for `null` and for empty strings, lists and objects.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
