//! The writes of a command.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::command::RequestRecord;
use crate::task::event::EventKind;
use crate::task::key_space::KeySpace;
use crate::task::record::{CallRecord, Node, PlanRecord, RunRecord, TaskRecord};
use crate::task::wait::SignalRecord;
use crate::value::Timestamp;
use crate::value::{Key, KeyMap, RunId, SharedText, TaskId};
use crate::view::undo::UndoSnapshot;

/// All writes of one command. The store applies all of them or none.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Created or changed tasks.
    pub tasks: KeyMap<TaskChange>,
    /// Created or changed nodes; every new task has one.
    pub nodes: KeyMap<Node>,
    /// Created or changed calls, by task and position from 0. Positions are not reused within a task.
    pub calls: BTreeMap<(Key, u32), CallChange>,
    /// Deleted tasks, with their edges, calls and applied specification. Their ids stay reserved.
    pub deleted: Vec<(Key, TaskId, Option<String>)>,
    /// Dependencies added and removed, in order.
    pub edges: Vec<EdgeChange>,
    /// Specifications that plans applied, by task, as JSON text.
    pub applied: BTreeMap<Key, String>,
    /// Created or changed plans.
    pub plans: Vec<PlanRecord>,
    /// Created or changed runs.
    pub runs: BTreeMap<RunId, RunRecord>,
    /// Deleted plans.
    pub plans_gone: Vec<String>,
    /// Ids of deleted tasks that become available again.
    pub freed: BTreeSet<TaskId>,
    /// Runs to prune, with the time. Only their ids are kept.
    pub runs_gone: Vec<(RunId, Timestamp)>,
    /// Undo snapshots up to this revision are deleted.
    pub images_gone: Option<u64>,
    /// Requests before this time are deleted.
    pub requests_gone: Option<Timestamp>,
    /// New events, in order; the store numbers them.
    pub events: Vec<NewEvent>,
    /// The undo snapshot, if the command can be undone. It is stored under the revision of the last event.
    pub undo_snapshot: Option<Arc<UndoSnapshot>>,
    /// The command that this one undoes, to be marked as undone by this one.
    pub undoes: Option<u64>,
    /// The new first part of idempotency keys, if it changes.
    pub key_space: Option<KeySpace>,
    /// The idempotent request that caused the command, stored so that a repetition does not run it again.
    pub request: Option<RequestRecord>,
    /// Signals to keep and to remove, in order.
    pub signals: Vec<SignalChange>,
    /// Commands whose undone mark changes with this one: each with the undo that now undoes it, or `None`.
    pub undone_by: Vec<(u64, Option<u64>)>,
}

impl Changes {
    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.tasks.is_empty()
            && self.nodes.is_empty()
            && self.applied.is_empty()
            && self.runs.is_empty()
            && self.key_space.is_none()
    }
}

/// A task to write.
#[derive(Debug, Clone)]
pub struct TaskChange {
    /// The new task.
    pub record: TaskRecord,
    /// True if it is new.
    pub is_new: bool,
    /// True if `spec` or `plan` changed. Otherwise only the body, the version and the time did.
    pub spec_changed: bool,
}

/// A call to write.
#[derive(Debug, Clone)]
pub struct CallChange {
    /// The new call; `None` removes it.
    pub record: Option<CallRecord>,
    /// True if `spec` changed or the call is new. Otherwise only the body did.
    pub spec_changed: bool,
}

/// A dependency to add or remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeChange {
    /// The task.
    pub task: Key,
    /// The dependency.
    pub on: Key,
    /// True if the edge is added; otherwise it is removed.
    pub add: bool,
}

/// A signal to keep or to remove.
#[derive(Debug, Clone, PartialEq)]
pub enum SignalChange {
    /// Keep it until a task takes it.
    Keep(Box<SignalRecord>),
    /// A task took the signal with this id, or it was dropped.
    Remove(String),
}

/// An event before the store numbers it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// The time.
    pub at: Timestamp,
    /// The actor.
    pub actor: SharedText,
    /// The kind of the actor, as the event records it.
    pub actor_kind: crate::task::ActorKind,
    /// The run, if a run caused it.
    pub run: Option<RunId>,
    /// The task, if it concerns one.
    pub task: Option<(Key, TaskId)>,
    /// The change.
    pub kind: EventKind,
    /// Tasks that became ready because of it.
    pub ready: Box<[Key]>,
}
