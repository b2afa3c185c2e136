//! Cache of the writing connection, kept from one transaction to the next.
//!
//! `PRAGMA data_version` of SQLite changes if another connection commits ([`DATA_VERSION`]). The cache is
//! reused only if it has not changed, and therefore always matches the file.

use taskpawl_model::task::{CallRecord, Node, TaskRecord, TaskStatus};
use taskpawl_model::value::{Key, KeyMap};

/// Returns a number that changes with every commit of another connection, but not with commits of this one.
pub(super) const DATA_VERSION: &str = "PRAGMA data_version";

/// Limit for cached nodes, and for the tasks and calls of one transaction.
pub(super) const MAX_NODES: usize = 1 << 16;

/// Limit for the tasks that are kept for the next transaction.
pub(super) const MAX_TASKS: usize = 1 << 10;

/// Up to this many tasks are kept in any status, because a task that was just changed is likely to change
/// again.
const FEW_TASKS: usize = 1 << 6;

/// Nodes, tasks and calls as the transaction sees them, and the dependencies and subtasks of a few tasks.
#[derive(Debug, Default)]
pub(super) struct TransactionCache {
    nodes: KeyMap<Node>,
    tasks: KeyMap<TaskRecord>,
    calls: KeyMap<Vec<CallRecord>>,
    dependencies: KeyMap<Vec<Key>>,
    subtasks: KeyMap<Vec<Key>>,
    /// The holder of the last lease query, with its result.
    leases: Option<(String, Vec<Key>)>,
}

impl TransactionCache {
    pub(super) fn node(&self, key: Key) -> Option<Node> {
        self.nodes.get(&key).copied()
    }

    pub(super) fn note_node(&mut self, node: Node) {
        if self.nodes.len() >= MAX_NODES {
            self.nodes.clear();
        }
        self.nodes.insert(node.key, node);
    }

    pub(super) fn task(&self, key: Key) -> Option<&TaskRecord> {
        self.tasks.get(&key)
    }

    /// Returns the key of a cached id. Searches only a small cache, because a linear search of a large one
    /// costs more than the query.
    pub(super) fn key(&self, id: &str) -> Option<Key> {
        if self.tasks.len() > FEW_TASKS {
            return None;
        }
        self.tasks.iter().find(|(_, task)| task.id.as_str() == id).map(|(key, _)| *key)
    }

    pub(super) fn note_task(&mut self, key: Key, record: TaskRecord) {
        if self.tasks.len() >= MAX_NODES {
            self.tasks.clear();
        }
        self.tasks.insert(key, record);
    }

    pub(super) fn calls(&self, key: Key) -> Option<Vec<CallRecord>> {
        self.calls.get(&key).cloned()
    }

    pub(super) fn note_calls(&mut self, key: Key, calls: Vec<CallRecord>) {
        if self.calls.len() >= MAX_NODES {
            self.calls.clear();
        }
        self.calls.insert(key, calls);
    }

    /// Updates a cached call.
    pub(super) fn note_call(&mut self, key: Key, call: &CallRecord) {
        let known =
            self.calls.get_mut(&key).and_then(|calls| calls.iter_mut().find(|known| known.id == call.id));
        if let Some(known) = known {
            known.clone_from(call);
        }
    }

    pub(super) fn forget_calls(&mut self, key: Key) {
        self.calls.swap_remove(&key);
    }

    pub(super) fn dependencies(&self, key: Key) -> Option<Vec<Key>> {
        self.dependencies.get(&key).cloned()
    }

    pub(super) fn note_dependencies(&mut self, key: Key, on: &[Key]) {
        note_few(&mut self.dependencies, key, on);
    }

    /// Must be called when an edge of the task is added or removed.
    pub(super) fn forget_dependencies(&mut self, key: Key) {
        self.dependencies.swap_remove(&key);
    }

    pub(super) fn subtasks(&self, key: Key) -> Option<Vec<Key>> {
        self.subtasks.get(&key).cloned()
    }

    pub(super) fn note_subtasks(&mut self, key: Key, below: &[Key]) {
        note_few(&mut self.subtasks, key, below);
    }

    /// Must be called when a task is created or gets another parent.
    pub(super) fn forget_subtasks(&mut self) {
        self.subtasks.clear();
    }

    pub(super) fn leases(&self, holder: &str) -> Option<Vec<Key>> {
        self.leases.as_ref().filter(|(known, _)| known == holder).map(|(_, keys)| keys.clone())
    }

    pub(super) fn note_leases(&mut self, holder: &str, keys: &[Key]) {
        self.leases = Some((holder.to_owned(), keys.to_vec()));
    }

    /// Must be called when the holder of a task may have changed.
    pub(super) fn forget_leases(&mut self) {
        self.leases = None;
    }

    pub(super) fn forget(&mut self, key: Key) {
        self.nodes.swap_remove(&key);
        self.tasks.swap_remove(&key);
        self.calls.swap_remove(&key);
        // The lists of other tasks may contain the removed key.
        self.dependencies.clear();
        self.subtasks.clear();
        self.leases = None;
    }

    /// Drops entries that the next transaction is unlikely to need. In a large cache only tasks in progress
    /// are kept, because the results of their calls will be reported.
    pub(super) fn trim(&mut self) {
        for lists in [&mut self.dependencies, &mut self.subtasks] {
            if lists.len() >= FEW_TASKS {
                lists.clear();
            }
        }
        if self.tasks.len() <= FEW_TASKS && self.calls.len() <= FEW_TASKS {
            return;
        }
        self.tasks.retain(|_, task| matches!(task.body.state, TaskStatus::InProgress { .. }));
        if self.tasks.len() > MAX_TASKS {
            self.tasks.clear();
        }
        let tasks = &self.tasks;
        self.calls.retain(|key, _| tasks.contains_key(key));
    }
}

/// Caches a list unless the cache is large: a caller that reads many lists is unlikely to read the same ones
/// again.
fn note_few(lists: &mut KeyMap<Vec<Key>>, key: Key, list: &[Key]) {
    if lists.len() < FEW_TASKS {
        lists.insert(key, list.to_vec());
    }
}
