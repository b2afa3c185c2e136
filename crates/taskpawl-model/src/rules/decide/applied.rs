//! A task and the header of a plan as they were applied, and how a file differs from them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::follow::WHOLE;
use crate::rules::draft::{Decided, Draft};
use crate::task::event::Change;
use crate::task::interpreter::with_interpreter;
use crate::task::record::PlanRecord;
use crate::task::spec::{CallSpec, Origin, TaskSpec, to_map};
use crate::value::{CallId, Key, Map, Shared, TaskId};

/// Fields that may change after a task ran.
const OPEN_FIELDS: &[&str] = &["name", "description", "labels", "priority", "dueDate", "trustInputs"];

/// A task as it was applied: the next apply compares with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Applied<'p> {
    /// True if the author gave the id; otherwise the name identifies the task.
    pub(super) has_id: bool,
    pub(super) spec: Shared<TaskSpec>,
    #[serde(default, skip_serializing_if = "has_none")]
    pub(super) context: Cow<'p, Map>,
    pub(super) calls: Vec<(Option<CallId>, Shared<CallSpec>)>,
    pub(super) needs: BTreeSet<TaskId>,
    pub(super) parent: Option<TaskId>,
}

pub(super) fn has_none(map: &Map) -> bool {
    map.is_empty()
}

/// A task of the plan that differs from what was applied last.
pub(super) struct Difference<'p> {
    pub(super) position: usize,
    pub(super) key: Key,
    pub(super) before: Option<Applied<'static>>,
    pub(super) after: Applied<'p>,
    /// The changed fields; none for a task without a record of what was applied.
    pub(super) changed: BTreeMap<String, Change>,
}

impl Difference<'_> {
    /// Returns the first changed field that is part of the work; `None` if only fields changed that may change at any
    /// time.
    pub(super) fn work(&self) -> Option<&String> {
        self.changed.keys().find(|field| !OPEN_FIELDS.contains(&field.as_str()))
    }

    /// Returns the calls of the file, if they changed.
    pub(super) fn calls(&self) -> Option<&Vec<(Option<CallId>, Shared<CallSpec>)>> {
        self.before
            .as_ref()
            .is_none_or(|before| before.calls != self.after.calls)
            .then_some(&self.after.calls)
    }

    /// Returns whether the change affects every call.
    pub(super) fn is_whole(&self) -> bool {
        WHOLE.iter().any(|field| self.changed.contains_key(*field))
    }
}

pub(super) fn applied(draft: &Draft<'_>, key: Key) -> Decided<Option<Applied<'static>>> {
    let text = draft.view.applied(key)?;
    // A record of an older version that cannot be parsed counts as different, so the task follows the file.
    let mut applied: Option<Applied<'static>> = text.and_then(|text| serde_json::from_str(&text).ok());
    for (_, call) in applied.iter_mut().flat_map(|applied| &mut applied.calls) {
        *call = with_interpreter(call);
    }
    Ok(applied)
}

pub(super) fn fields(applied: &Applied<'_>) -> Map {
    let mut map = to_map(&applied.spec);
    map.insert("context".to_owned(), Value::Object(applied.context.clone().into_owned()));
    map.insert("toolCalls".to_owned(), serde_json::json!(applied.calls));
    map.insert("dependencies".to_owned(), serde_json::json!(applied.needs));
    map.insert("parent".to_owned(), serde_json::json!(applied.parent));
    map
}

pub(super) fn changed_fields(before: &Applied<'_>, after: &Applied<'_>) -> BTreeMap<String, Change> {
    diff(&fields(before), &fields(after))
}

pub(super) fn diff(before: &Map, after: &Map) -> BTreeMap<String, Change> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changes = names.into_iter().map(|name| {
        let (from, to) =
            (before.get(name).cloned().unwrap_or_default(), after.get(name).cloned().unwrap_or_default());
        (name.clone(), Change { from, to })
    });
    changes.filter(|(_, change)| change.from != change.to).collect()
}

/// Returns `now` with the fields that differ between `before` and `after`.
pub(super) fn merge_spec(before: Option<&TaskSpec>, after: &TaskSpec, now: &TaskSpec) -> Decided<TaskSpec> {
    let Some(before) = before else { return Ok(after.clone()) };
    let mut merged = to_map(now);
    for (name, change) in diff(&to_map(before), &to_map(after)) {
        if change.to.is_null() {
            merged.remove(&name);
        } else {
            merged.insert(name, change.to);
        }
    }
    let merged = serde_json::from_value(Value::Object(merged));
    Ok(merged.map_err(|error| super::fields::invalid("plan", error.to_string()))?)
}

/// Returns the plan's own fields, with the origin of `notify`. A model that leaves `notify` unchanged did not write it.
pub(super) fn header_by(origin: Origin, plan: &crate::plan::Plan, stored: Option<&PlanRecord>) -> Map {
    let mut header = header(plan);
    header.remove(PlanRecord::NOTIFY_ORIGIN);
    if !plan.notify.is_empty() {
        let is_model = matches!(origin, Origin::Mcp | Origin::Agent);
        let before = stored.and_then(PlanRecord::notify).filter(|before| before.argv == plan.notify);
        let origin = before.filter(|_| is_model).map_or(origin, |before| before.origin);
        header.insert(PlanRecord::NOTIFY_ORIGIN.to_owned(), serde_json::json!(origin));
    }
    header
}

/// Returns the changed fields of the plan itself. For a new plan only `notify` is listed, because it names a program to
/// run.
pub(super) fn changed_header(stored: Option<&PlanRecord>, header: &Map) -> Vec<String> {
    let is_told = |name: &String| match stored {
        Some(_) => name != PlanRecord::NOTIFY_ORIGIN,
        None => name == "notify",
    };
    let before = stored.map(|stored| stored.header.clone()).unwrap_or_default();
    diff(&before, header).into_keys().filter(is_told).collect()
}

/// Returns the plan's own fields, without its tasks.
pub(super) fn header(plan: &crate::plan::Plan) -> Map {
    let mut header = plan.extra.clone();
    let mut set = |name: &str, value: Value| {
        if !value.is_null() && value != serde_json::json!({}) && value != serde_json::json!([]) {
            header.insert(name.to_owned(), value);
        }
    };
    set("version", serde_json::json!(plan.version));
    set("params", serde_json::json!(plan.params));
    set("defaults", serde_json::json!(plan.defaults));
    set("resources", serde_json::json!(plan.resources));
    set("timeout", serde_json::json!(plan.timeout));
    set("budget", serde_json::json!(plan.budget));
    set("maxFailures", serde_json::json!(plan.max_failures));
    set("schedule", serde_json::json!(plan.schedule));
    set("notify", serde_json::json!(plan.notify));
    set("tools", serde_json::json!(plan.tools));
    set("requires", serde_json::json!(plan.all_required()));
    header
}
