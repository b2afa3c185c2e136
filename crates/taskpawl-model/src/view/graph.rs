//! Reading the graph: nodes, dependencies and subtasks.

use std::collections::BTreeMap;

use super::ViewResult;
use crate::task::record::Node;
use crate::task::status::Status;
use crate::value::Key;

/// The nodes and edges of a snapshot.
pub trait ReadGraph {
    /// Returns the node of a task.
    fn node(&self, key: Key) -> ViewResult<Option<Node>>;

    /// Returns the dependencies of a task, by key.
    fn dependencies(&self, key: Key) -> ViewResult<Vec<Key>>;

    /// Returns the dependents of a task, by key.
    fn dependents(&self, key: Key) -> ViewResult<Vec<Key>>;

    /// Returns the direct subtasks of a task, by key.
    fn subtasks(&self, key: Key) -> ViewResult<Vec<Key>>;

    /// Calls `each` with every node, by key. Runs load their graph with it.
    fn each_node(&self, each: &mut dyn FnMut(Node)) -> ViewResult<()>;

    /// Calls `each` with every dependency as (task, dependency), by task.
    fn each_dependency(&self, each: &mut dyn FnMut(Key, Key)) -> ViewResult<()>;

    /// Returns the number of tasks in each status. The committer maintains it, so reading it is cheap.
    fn counts(&self) -> ViewResult<BTreeMap<Status, u64>>;
}
