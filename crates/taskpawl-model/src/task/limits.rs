//! The decisions before a task starts, and the maximum depth of values.

use serde_json::Value;

use crate::task::record::Progress;
use crate::task::spec::TaskSpec;

/// Returns whether a task needs a decision between the opening of its gate and its start.
pub(crate) fn needs_opening(spec: &TaskSpec, progress: &Progress) -> bool {
    spec.when.is_some()
        || spec.for_each.is_some()
        || spec.approval_before().is_some()
        || spec.not_before.is_some()
        || progress.former_items
}

/// The maximum nesting of values. JSON readers agree on 128 levels, and records of a store add some around a value.
pub const MAX_DEPTH: usize = 64;

/// Returns whether a value is nested deeper than [`MAX_DEPTH`].
pub fn is_too_deep(value: &Value) -> bool {
    // A queue instead of recursion, because the input may be deeper than the stack allows.
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
