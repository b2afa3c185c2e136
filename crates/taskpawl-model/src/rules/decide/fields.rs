//! Fields of tasks that authors write: reading, checking and changing them.

use crate::command::refusal::Refusal;
use crate::plan::{
    change_spec, is_state_field, refused_call_field, refused_metadata_field, refused_task_field, spec_fields,
    work_field,
};
use crate::rules::draft::Decided;
use crate::task::event::Change;
use crate::task::limits::{MAX_DEPTH, is_too_deep};
use crate::task::record::TaskRecord;
use crate::task::spec::{CallPart, CallSpec, NewCall, TASK_FIELDS, TaskSpec, Trigger, WORKTREE_TOOL, to_map};
use crate::task::status::Status;
use crate::task::{ValueFault, fault};
use crate::value::Map;
use crate::value::TaskId;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn is_work_fixed(status: Status) -> bool {
    matches!(status, Status::InProgress | Status::Done)
}

pub(super) fn invalid(field: &str, problem: impl Into<String>) -> Refusal {
    Refusal::InvalidField { field: field.to_owned(), problem: problem.into() }
}

pub(super) fn meaningless(field: &str, fault: &ValueFault) -> Refusal {
    with_hint(field, fault, &fault.hint())
}

pub(super) fn with_hint(field: &str, problem: &dyn std::fmt::Display, hint: &str) -> Refusal {
    let end = if hint.is_empty() { String::new() } else { format!("; {hint}") };
    invalid(field, format!("{problem}{end}"))
}

/// Refuses blank texts. Other programs may store them, but authors may not write them.
pub(super) fn check_filled(spec: &TaskSpec) -> Decided<()> {
    match fault::blank_in_task(spec) {
        Some((field, fault)) => Err(meaningless(field, &fault).into()),
        None => Ok(()),
    }
}

/// Refuses unknown fields by the rules for plan files.
pub(super) fn check_own_fields(spec: &TaskSpec, calls: &[NewCall]) -> Decided<()> {
    let of_metadata = spec.metadata.keys().filter_map(|field| Some((field, refused_metadata_field(field)?)));
    let of_task = spec.extra.keys().filter_map(|field| Some((field, refused_task_field(field)?)));
    let of_task = of_task.chain(of_metadata);
    let of_calls = calls.iter().flat_map(|call| call.spec.extra.keys());
    let mut of_calls = of_calls.filter_map(|field| Some((field, refused_call_field(field)?)));
    match of_task.chain(of_calls.by_ref()).next() {
        Some((field, (problem, hint))) => Err(with_hint(field, &problem, &hint).into()),
        None => Ok(()),
    }
}

/// Returns the dependencies in an update, and its other fields in the long form of plan files.
pub(super) fn read_fields(spec: &TaskSpec, fields: &Map) -> Decided<(Option<Value>, Map)> {
    let (mut kept, mut read) = (Map::new(), Map::new());
    for (field, value) in fields {
        // `metadata` and `context` are merged into the stored values later. Unknown fields that the store already has
        // may change.
        let is_kept = ["dependencies", "needs", "metadata", "context"].contains(&field.as_str())
            || spec.extra.contains_key(field);
        let into = if is_kept { &mut kept } else { &mut read };
        into.insert(field.clone(), value.clone());
    }
    // The parser of plan files requires a name. It is dropped again unless the update has one.
    let some = TaskSpec { name: "some".to_owned(), ..TaskSpec::default() };
    let changed = change_spec(&some, &read).map_err(Refusal::from)?;
    let mut long = spec_fields(&changed);
    for (field, value) in read {
        let value = if TASK_FIELDS.contains(&field.as_str()) {
            long.remove(&field).unwrap_or_default()
        } else {
            value
        };
        kept.insert(field, value);
    }
    let needs = match (kept.remove("dependencies"), kept.remove("needs")) {
        (Some(_), Some(_)) => {
            return Err(invalid("needs", "`dependencies` means the same; keep one").into());
        }
        (one, other) => one.or(other),
    };
    Ok((needs, kept))
}

pub(super) fn taken(id: &TaskId) -> Refusal {
    Refusal::DuplicateId { id: id.clone(), deleted: false }
}

/// Refuses values without a meaning.
pub(super) fn check_values(spec: &TaskSpec) -> Decided<()> {
    match fault::of_task(spec) {
        Some((field, fault)) => Err(meaningless(field, &fault).into()),
        None => Ok(()),
    }
}

/// Returns whether unfinished subtasks may be added to a parent with this status.
pub(super) fn takes_subtasks(status: Status) -> bool {
    matches!(status, Status::Todo | Status::Blocked | Status::Failed)
}

pub(super) fn check_trigger(id: &TaskId, spec: &TaskSpec, has_dependencies: bool) -> Decided<()> {
    let trigger = spec.trigger();
    if !has_dependencies && matches!(trigger, Trigger::AnyDone | Trigger::AnyFailed) {
        return Err(Refusal::TriggerWithoutDependencies { id: id.clone(), trigger: trigger.as_str() }.into());
    }
    Ok(())
}

/// Refuses nesting that could be written to the store but not parsed again.
pub(super) fn check_depth<'a>(field: &str, values: impl IntoIterator<Item = &'a Value>) -> Decided<()> {
    if values.into_iter().any(is_too_deep) {
        let problem = format!("it is nested deeper than {MAX_DEPTH} levels");
        return Err(invalid(field, problem).into());
    }
    Ok(())
}

pub(super) fn check_milestone(spec: &TaskSpec, has_calls: bool) -> Decided<()> {
    if spec.milestone && has_calls {
        return Err(invalid("milestone", "a milestone has no tool calls").into());
    }
    Ok(())
}

/// Refuses `rework` without something to verify and an agent that corrects it.
pub(super) fn check_rework<'c>(
    spec: &TaskSpec,
    calls: impl Iterator<Item = &'c CallSpec> + Clone,
) -> Decided<()> {
    match fault::rework(spec, calls) {
        Some((missing, hint)) => {
            Err(invalid("rework", format!("the task has no {}; {hint}", missing.trim_start_matches("a ")))
                .into())
        }
        None => Ok(()),
    }
}

/// Refuses a question about the result of a task that has none.
pub(super) fn check_approval_after<'c>(
    spec: &TaskSpec,
    calls: impl Iterator<Item = &'c CallSpec>,
) -> Decided<()> {
    match fault::against_approval_after(spec, calls) {
        Some((with, hint)) => Err(invalid("approval", format!("no `after` with {with}; {hint}")).into()),
        None => Ok(()),
    }
}

/// Refuses a worktree without the call that commits its work, and such a call without a worktree.
pub(super) fn check_worktree<'c>(
    spec: &TaskSpec,
    calls: impl Iterator<Item = &'c CallSpec> + Clone,
) -> Decided<()> {
    let has_commit = calls.clone().any(|call| call.part() == CallPart::Commit);
    if spec.worktree.is_none() && has_commit {
        return Err(invalid("worktree", format!("a call of `{WORKTREE_TOOL}` needs `worktree: true`")).into());
    }
    if spec.worktree.is_none() {
        if calls.clone().any(|call| call.part() == CallPart::Setup) {
            return Err(invalid("worktree", "a call with `setup` needs `worktree: true`").into());
        }
        return Ok(());
    }
    if let Some((with, hint)) = fault::against_worktree(spec, calls) {
        return Err(invalid("worktree", format!("not with {with}; {hint}")).into());
    }
    if !has_commit {
        let problem = format!(
            "its work is not committed: give `run` or `calls` beside it, or add a call of `{WORKTREE_TOOL}`"
        );
        return Err(invalid("worktree", problem).into());
    }
    Ok(())
}

/// Changes one field of a task and records its previous value.
pub(super) fn change_field(
    record: &mut TaskRecord,
    field: &str,
    value: &Value,
    changed: &mut BTreeMap<String, Change>,
) -> Decided<()> {
    let status = record.body.state.status();
    if work_field(field).is_some() && is_work_fixed(status) {
        return Err(Refusal::WorkStarted {
            id: record.id.clone(),
            status,
            what: work_field_name(field),
            reopen: None,
        }
        .into());
    }
    check_depth(field, [value])?;
    let before = field_value(record, field);
    match field {
        "context" => merge(&mut record.body.context, field, value)?,
        "metadata" => merge_metadata(record, value)?,
        _ if is_state_field(field) => {
            return Err(invalid(field, "it is set by execution; use its own command to change it").into());
        }
        _ if TASK_FIELDS.contains(&field) => {
            set_spec_field(&mut record.spec, field, value)?;
            if ["writes", "runsOn", "sends", "cache", "retry", "rework", "worktree", "approval"]
                .contains(&field)
            {
                check_values(&record.spec)?;
            }
        }
        _ => set_or_remove(&mut record.spec.extra, field, value),
    }
    let after = field_value(record, field);
    if before != after {
        changed.insert(field.to_owned(), Change { from: before, to: after });
    }
    Ok(())
}

/// Returns the context values that an update writes, including unchanged ones: rewriting a value changes its origin.
pub(super) fn written_context(fields: &Map) -> Map {
    let of = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut written = of(fields.get("context"));
    written.extend(of(fields.get("metadata").and_then(|metadata| metadata.get("context"))));
    written
}

pub(super) fn work_field_name(field: &str) -> &'static str {
    work_field(field).unwrap_or("the work")
}

pub(super) fn field_value(record: &TaskRecord, field: &str) -> Value {
    match field {
        "context" => Value::Object(record.body.context.clone()),
        "metadata" => {
            let mut map = record.spec.metadata.clone();
            map.insert("context".to_owned(), Value::Object(record.body.context.clone()));
            Value::Object(map)
        }
        _ => to_map(&record.spec)
            .remove(field)
            .or_else(|| record.spec.extra.get(field).cloned())
            .unwrap_or_default(),
    }
}

pub(super) fn set_spec_field(spec: &mut TaskSpec, field: &str, value: &Value) -> Decided<()> {
    let value = match (field, value) {
        ("dueDate" | "notBefore", Value::String(text)) => Value::String(full_date(text)),
        ("name", Value::String(text)) if text.trim().is_empty() => {
            return Err(invalid("name", "it is empty").into());
        }
        ("name", Value::Null) => return Err(invalid("name", "a task needs a name").into()),
        _ => value.clone(),
    };
    let mut map = to_map(spec);
    set_or_remove(&mut map, field, &value);
    *spec = serde_json::from_value(Value::Object(map)).map_err(|error| match field {
        "dueDate" | "notBefore" => {
            invalid(field, "expected a date such as `2030-01-31` or `2030-01-31T09:00:00Z`")
        }
        _ => invalid(field, error.to_string()),
    })?;
    Ok(())
}

/// Expands a date without a time to its first moment in UTC.
pub(super) fn full_date(text: &str) -> String {
    let is_bare = text.len() == 10 && text.chars().all(|c| c.is_ascii_digit() || c == '-');
    if is_bare { format!("{text}T00:00:00Z") } else { text.to_owned() }
}

pub(super) fn set_or_remove(map: &mut Map, field: &str, value: &Value) {
    if value.is_null() {
        map.remove(field);
    } else {
        map.insert(field.to_owned(), value.clone());
    }
}

pub(super) fn merge(map: &mut Map, field: &str, value: &Value) -> Decided<()> {
    if value.is_null() {
        map.clear();
        return Ok(());
    }
    let Value::Object(new) = value else { return Err(invalid(field, "expected an object").into()) };
    for (name, value) in new {
        set_or_remove(map, name, value);
    }
    Ok(())
}

pub(super) fn merge_metadata(record: &mut TaskRecord, value: &Value) -> Decided<()> {
    if value.is_null() {
        record.spec.metadata.clear();
        return Ok(());
    }
    let Value::Object(new) = value else { return Err(invalid("metadata", "expected an object").into()) };
    for (name, value) in new {
        match name.as_str() {
            "context" => merge(&mut record.body.context, "metadata.context", value)?,
            "toolCalls" => {
                return Err(invalid(
                    "metadata.toolCalls",
                    "`add-tool-call` adds a call; existing calls are unchanged",
                )
                .into());
            }
            _ => {
                if let Some((problem, hint)) = refused_metadata_field(name)
                    && !record.spec.metadata.contains_key(name)
                {
                    return Err(with_hint("metadata", &problem, &hint).into());
                }
                set_or_remove(&mut record.spec.metadata, name, value);
            }
        }
    }
    Ok(())
}
