//! What the writing connection has read and written, so that it need not read it again.
//!
//! SQLite tells whether another connection has committed since ([`DATA_VERSION`]): only if none has is it taken over into the next
//! transaction, and so it is always what the file holds.

use taskpawl_model::{CallRecord, Key, KeyMap, Node, TaskRecord, TaskState};

/// Asks for a number that changes with every commit of another connection, and not with one's own.
pub(super) const DATA_VERSION: &str = "PRAGMA data_version";

/// More nodes than this are not kept.
pub(super) const MOST_NODES: usize = 1 << 16;

/// More tasks than this are not kept from one transaction to the next.
pub(super) const MOST_TASKS: usize = 1 << 10;

/// So few tasks are kept however they stand: who changes one is likely to change it again.
const FEW_TASKS: usize = 1 << 6;

/// Nodes, tasks and calls as the transaction sees them, and of few tasks what they depend on and what is below them.
#[derive(Debug, Default)]
pub(super) struct Known {
    nodes: KeyMap<Node>,
    tasks: KeyMap<TaskRecord>,
    calls: KeyMap<Vec<CallRecord>>,
    dependencies: KeyMap<Vec<Key>>,
    subtasks: KeyMap<Vec<Key>>,
    /// Who was asked for last, with the tasks that they hold.
    leases: Option<(String, Vec<Key>)>,
}

impl Known {
    pub(super) fn node(&self, key: Key) -> Option<Node> {
        self.nodes.get(&key).copied()
    }

    pub(super) fn note_node(&mut self, node: Node) {
        if self.nodes.len() >= MOST_NODES {
            self.nodes.clear();
        }
        self.nodes.insert(node.key, node);
    }

    pub(super) fn task(&self, key: Key) -> Option<&TaskRecord> {
        self.tasks.get(&key)
    }

    /// Returns the task of this id, if it is among few: many are not looked through.
    pub(super) fn key(&self, id: &str) -> Option<Key> {
        if self.tasks.len() > FEW_TASKS {
            return None;
        }
        self.tasks.iter().find(|(_, task)| task.id.as_str() == id).map(|(key, _)| *key)
    }

    pub(super) fn note_task(&mut self, key: Key, record: TaskRecord) {
        if self.tasks.len() >= MOST_NODES {
            self.tasks.clear();
        }
        self.tasks.insert(key, record);
    }

    pub(super) fn calls(&self, key: Key) -> Option<Vec<CallRecord>> {
        self.calls.get(&key).cloned()
    }

    pub(super) fn note_calls(&mut self, key: Key, calls: Vec<CallRecord>) {
        if self.calls.len() >= MOST_NODES {
            self.calls.clear();
        }
        self.calls.insert(key, calls);
    }

    /// Takes in how a call is now that was there before.
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

    /// An edge comes or goes.
    pub(super) fn forget_dependencies(&mut self, key: Key) {
        self.dependencies.swap_remove(&key);
    }

    pub(super) fn subtasks(&self, key: Key) -> Option<Vec<Key>> {
        self.subtasks.get(&key).cloned()
    }

    pub(super) fn note_subtasks(&mut self, key: Key, below: &[Key]) {
        note_few(&mut self.subtasks, key, below);
    }

    /// A task comes, or gets another place.
    pub(super) fn forget_subtasks(&mut self) {
        self.subtasks.clear();
    }

    pub(super) fn leases(&self, holder: &str) -> Option<Vec<Key>> {
        self.leases.as_ref().filter(|(known, _)| known == holder).map(|(_, keys)| keys.clone())
    }

    pub(super) fn note_leases(&mut self, holder: &str, keys: &[Key]) {
        self.leases = Some((holder.to_owned(), keys.to_vec()));
    }

    /// A task gets another holder.
    pub(super) fn forget_leases(&mut self) {
        self.leases = None;
    }

    pub(super) fn forget(&mut self, key: Key) {
        self.nodes.swap_remove(&key);
        self.tasks.swap_remove(&key);
        self.calls.swap_remove(&key);
        // Also those of other tasks named it.
        self.dependencies.clear();
        self.subtasks.clear();
        self.leases = None;
    }

    /// Lets go of what the next transaction hardly asks for: of many tasks those are wanted whose calls will be reported.
    pub(super) fn trim(&mut self) {
        for lists in [&mut self.dependencies, &mut self.subtasks] {
            if lists.len() >= FEW_TASKS {
                lists.clear();
            }
        }
        if self.tasks.len() <= FEW_TASKS && self.calls.len() <= FEW_TASKS {
            return;
        }
        self.tasks.retain(|_, task| matches!(task.body.state, TaskState::InProgress { .. }));
        if self.tasks.len() > MOST_TASKS {
            self.tasks.clear();
        }
        let tasks = &self.tasks;
        self.calls.retain(|key, _| tasks.contains_key(key));
    }
}

/// Whoever asks for many is not likely to ask for the same ones again.
fn note_few(lists: &mut KeyMap<Vec<Key>>, key: Key, list: &[Key]) {
    if lists.len() < FEW_TASKS {
        lists.insert(key, list.to_vec());
    }
}
