//! What has to be decided about a task before it starts, and how deep values may be.

use serde_json::Value;

use crate::record::Progress;
use crate::spec::TaskSpec;

/// Returns whether something is decided about a task once its gate lets it start, before it does.
pub(crate) fn needs_opening(spec: &TaskSpec, progress: &Progress) -> bool {
    spec.when.is_some() || spec.for_each.is_some() || spec.approval.is_some() || progress.former_items
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
