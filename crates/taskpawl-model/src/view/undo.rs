//! Undo snapshots: the state before a command of everything that the command changed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::task::event::EventKind;
use crate::task::record::{CallRecord, PlanRecord, TaskBody, TaskRecord};
use crate::task::spec::TaskSpec;
use crate::value::{Key, SharedText, TaskId};

/// A command of a person or an agent that the store can undo, or could undo earlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Undoable {
    /// Revision of its last event, which identifies the command.
    pub revision: u64,
    /// Revision of its first event.
    pub first: u64,
    /// Name of the actor that gave the command.
    pub actor: String,
    /// Revision of the command that it undoes, if it is an `undo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// Revision of the `undo` that undid it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<u64>,
}

impl Undoable {
    /// Returns whether the command has no effect left: it was undone, or it is itself an `undo`.
    pub fn is_void(&self) -> bool {
        self.undoes.is_some() || self.undone_by.is_some()
    }
}

/// Undo snapshot: everything that a command changed, as it was before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UndoSnapshot {
    /// Tasks that the command created: the first and the last key of each range.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub created: Vec<(Key, Key)>,
    /// Ids of created tasks that deleted tasks had used before.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub reused: BTreeSet<TaskId>,
    /// Tasks that changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskSnapshot>,
    /// Tasks that the command deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<DeletedTask>,
    /// Dependencies added between existing tasks, as `(task, dependency)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<(Key, Key)>,
    /// Dependencies removed between tasks that still exist, as `(task, dependency)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<(Key, Key)>,
    /// Moved tasks with their parent before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<(Key, Option<Key>)>,
    /// Spec that each plan last applied to a task, as JSON text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<(Key, String)>,
    /// Plan records before, by name; `None` if the plan did not exist.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub plans: BTreeMap<String, Option<PlanRecord>>,
}

/// A task as it was before a command changed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskSnapshot {
    /// Key of the task.
    pub key: Key,
    /// Specification, if the command changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<TaskSpec>,
    /// Name of its plan, if the command changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<SharedText>,
    /// Status, results, notes and everything else that changes as the task runs.
    pub body: TaskBody,
    /// Changed calls by position; `None` if the command added the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<(u32, Option<CallRecord>)>,
}

/// A task as it was before a command deleted it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletedTask {
    /// Key of the task; keys are never reused, so undo can restore it.
    pub key: Key,
    /// The task record.
    pub record: TaskRecord,
    /// Its calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallRecord>,
    /// Its dependencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Key>,
    /// Its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Key>,
    /// Spec that its plan last applied, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<String>,
    /// True if the deletion made its id available for new tasks.
    #[serde(default, skip_serializing_if = "crate::task::spec::is_default")]
    pub freed: bool,
}

impl UndoSnapshot {
    /// Returns every task that the snapshot touches, including deleted and created ones.
    pub fn keys(&self) -> BTreeSet<Key> {
        let mut keys: BTreeSet<Key> = self.created_keys().collect();
        keys.extend(self.tasks.iter().map(|task| task.key));
        keys.extend(self.deleted.iter().map(|task| task.key));
        keys.extend(self.added.iter().chain(&self.removed).map(|(task, _)| *task));
        keys.extend(self.parents.iter().map(|(task, _)| *task));
        keys.extend(self.applied.iter().map(|(task, _)| *task));
        keys
    }

    /// Returns the tasks that the command created.
    pub fn created_keys(&self) -> impl Iterator<Item = Key> {
        self.created.iter().flat_map(|(first, last)| (first.0..=last.0).map(Key))
    }
}

/// Returns whether an event conflicts with undoing an earlier command on the same task.
///
/// Renewals do not: leases are renewed all the time. `Stopped` does not either: it only follows from a cancellation.
pub(crate) fn changes_the_task(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Renewed { .. } | EventKind::Stopped { .. })
}
