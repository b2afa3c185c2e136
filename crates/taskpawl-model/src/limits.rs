//! What has to be decided about a task before it starts, and what this version keeps but does not act on.

use serde_json::Value;

use crate::record::Progress;
use crate::spec::{CallSpec, TaskSpec};

/// Returns whether something is decided about a task once its gate lets it start, before it does.
pub(crate) fn needs_opening(spec: &TaskSpec, progress: &Progress) -> bool {
    spec.when.is_some() || spec.for_each.is_some() || spec.approval.is_some() || progress.former_items
}

/// Returns the fields of a task that this version keeps but does not act on; the task runs all the same.
pub fn unheeded<'a>(
    spec: &TaskSpec,
    calls: impl IntoIterator<Item = &'a CallSpec>,
) -> impl Iterator<Item = &'static str> {
    let is_used = spec.sandbox.is_some() || calls.into_iter().any(|call| call.sandbox.is_some());
    is_used.then_some("sandbox").into_iter()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SandboxRequest;

    #[test]
    fn only_what_is_not_acted_on_is_told() {
        let text =
            "{name: a, estimate: 1h, cache: {key: '1'}, writes: [x], resources: db, approval: required}";
        let heeded = crate::parse_task(text).expect("a task").spec;
        assert_eq!(unheeded(&heeded, []).count(), 0);
        let call = CallSpec { sandbox: Some(SandboxRequest::default()), ..CallSpec::default() };
        assert_eq!(unheeded(&heeded, [&call]).collect::<Vec<_>>(), ["sandbox"]);
    }
}
