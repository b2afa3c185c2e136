//! What this version keeps but does not evaluate: a task that uses it does not start, and says why.

use serde_json::Value;

use crate::record::Progress;
use crate::spec::{CallSpec, TaskSpec};

/// Returns the first field of a task that has to be evaluated or decided before it starts and that this version cannot.
pub fn undecided<'a>(calls: impl IntoIterator<Item = &'a CallSpec>) -> Option<&'static str> {
    calls.into_iter().find_map(|call| call.plan_access.is_some().then_some("planAccess"))
}

/// Returns whether something is decided about a task once its gate lets it start, before it does.
pub(crate) fn needs_opening(spec: &TaskSpec, progress: &Progress) -> bool {
    spec.when.is_some() || spec.for_each.is_some() || spec.approval.is_some() || progress.former_items
}

/// Returns the fields of a task that this version keeps but does not act on; the task runs all the same.
pub fn unheeded<'a>(
    spec: &TaskSpec,
    calls: impl IntoIterator<Item = &'a CallSpec>,
) -> impl Iterator<Item = &'static str> {
    let mut fields = [(spec.sandbox.is_some(), "sandbox"), (spec.estimate.is_some(), "estimate")];
    for call in calls {
        fields[0].0 |= call.sandbox.is_some();
    }
    fields.into_iter().filter_map(|(used, field)| used.then_some(field))
}

/// How deep values may be nested: what readers of JSON agree on, less what stores put around them.
pub const MAX_DEPTH: usize = 64;

/// Returns whether a value is nested deeper than [`MAX_DEPTH`].
pub fn is_too_deep(value: &Value) -> bool {
    let mut queue = vec![(value, 1)];
    while let Some((value, depth)) = queue.pop() {
        if depth > MAX_DEPTH {
            return true;
        }
        match value {
            Value::Array(items) => queue.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => queue.extend(map.values().map(|item| (item, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}
