//! What follows from a task alone.

use taskpawl_model::{CallRecord, Key, Node, Phase, TaskRecord, Work};

/// Returns the node of a task at the top, without what follows from its edges.
pub(crate) fn node_of(key: Key, record: &TaskRecord, calls: &[CallRecord], has_subtasks: bool) -> Node {
    let mut node = Node::new(key, record.spec.trigger(), Work::Manual);
    node.phase = Phase::of(&record.body.state);
    node.describe(&record.spec, &record.body.progress, calls, has_subtasks);
    node
}
