//! Node fields that follow from a task alone.

use taskpawl_model::task::{CallRecord, Node, StatusKind, TaskRecord, Work};
use taskpawl_model::value::Key;

/// Creates the node of a task as if it had no parent and no dependencies. The caller adds those.
pub(crate) fn node_of(key: Key, record: &TaskRecord, calls: &[CallRecord], has_subtasks: bool) -> Node {
    let mut node = Node::new(key, record.spec.trigger(), Work::Manual);
    node.status_kind = StatusKind::of(&record.body.state);
    node.describe(&record.spec, &record.body.progress, calls, has_subtasks);
    node
}
