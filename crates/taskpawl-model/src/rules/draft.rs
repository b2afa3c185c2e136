//! A draft: the view that a command reads, plus everything that the command has changed so far.
//!
//! Only the methods here change tasks, nodes, calls and edges, so that statuses, counts and events stay consistent.

mod capacity;
mod edges;
mod graph;
mod reads;
mod status;
mod tasks;
mod view;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::command::{Answer, Context};
use crate::rules::decide::Holder;
use crate::rules::settle::Board;
use crate::rules::{DecideError, Decision};
use crate::task::event::EventKind;
use crate::task::record::{CallBody, CallRecord, Node, TaskBody, Work};
use crate::task::spec::Origin;
use crate::value::Timestamp;
use crate::value::{Key, KeyMap, RunId, Shared, TaskId, key_map};
use crate::view::undo;
use crate::view::{Changes, NewEvent, View};

pub(crate) use capacity::RoundCapacity;
use edges::EdgeOverlay;

pub(crate) type Decided<T> = Result<T, DecideError>;

#[derive(Clone)]
pub(crate) struct Draft<'a> {
    /// The store before the command.
    pub(crate) view: &'a dyn View,
    pub(crate) context: &'a Context,
    pub(crate) changes: Changes,
    pub(crate) answer: Answer,
    /// Current calls of the tasks whose calls were read.
    calls: KeyMap<Vec<CallRecord>>,
    edges: EdgeOverlay,
    /// The work that each changed task was ready for before the command.
    was_ready: KeyMap<Option<Work>>,
    pub(crate) new_tasks: NewTasks,
    /// Origin recorded on calls that the command adds.
    pub(crate) origin: Origin,
    /// Origin recorded on values that the command writes.
    pub(crate) writer: Origin,
    pub(crate) undo_notes: UndoNotes,
    pub(crate) pending: Pending,
    pub(crate) read_once: ReadOnce,
    /// Capacity left for starting calls in this round; unlimited outside a round.
    pub(crate) room: RoundCapacity,
}

/// Ids and keys of new tasks.
#[derive(Clone, Default)]
pub(crate) struct NewTasks {
    ids: HashMap<TaskId, Key>,
    next_key: Option<Key>,
    /// Empty bodies of new tasks and calls. All new ones share them, so that a large plan allocates them once.
    pub(crate) bodies: (Shared<TaskBody>, Shared<CallBody>),
}

/// Notes for the undo snapshot.
#[derive(Clone, Default)]
pub(crate) struct UndoNotes {
    /// True if the command records an undo snapshot.
    pub(crate) is_undoable: bool,
    /// Ids of new tasks that deleted tasks had used before.
    pub(crate) reused: BTreeSet<TaskId>,
    /// Tasks whose lease was renewed as a side effect and that the command did not change otherwise.
    pub(crate) renewed: BTreeSet<Key>,
}

/// Consequences that [`Draft::settle`] has yet to apply.
#[derive(Clone, Default)]
pub(crate) struct Pending {
    /// Tasks whose gate may have changed.
    pub(crate) gates: VecDeque<Key>,
    /// Tasks added by calls that start over. They are withdrawn before gates are applied.
    pub(crate) withdrawals: VecDeque<Key>,
}

/// Facts that are read from the store at most once.
#[derive(Clone, Default)]
pub(crate) struct ReadOnce {
    /// Cancelled tasks with calls that still run, and the run that ends each.
    pub(crate) ending: Option<BTreeMap<TaskId, RunId>>,
    /// Tasks that hold resources or paths.
    pub(crate) holders: Option<Vec<Holder>>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(view: &'a dyn View, context: &'a Context) -> Self {
        Self {
            view,
            context,
            changes: Changes::default(),
            answer: Answer::default(),
            calls: KeyMap::default(),
            edges: EdgeOverlay::default(),
            was_ready: KeyMap::default(),
            new_tasks: NewTasks::default(),
            origin: context.origin,
            writer: context.kind.origin_by_hand(context.origin),
            undo_notes: UndoNotes::default(),
            pending: Pending::default(),
            read_once: ReadOnce::default(),
            room: RoundCapacity::default(),
        }
    }

    /// Sets the origin of everything added from now on; returns the previous origin of calls.
    pub(crate) fn write_as(&mut self, origin: Origin) -> Origin {
        self.writer = origin;
        std::mem::replace(&mut self.origin, origin)
    }

    /// Applies every queued gate and completes the decision.
    pub(crate) fn finish(mut self) -> Decided<Decision> {
        self.settle()?;
        key_map::sort(&mut self.changes.nodes);
        key_map::sort(&mut self.changes.tasks);
        self.answer.ready = self.newly_ready().collect();
        self.answer.ready.sort_unstable_by_key(|node| node.key);
        if let Some(event) = self.changes.events.last_mut() {
            event.ready = self.answer.ready.iter().map(|node| node.key).collect();
        }
        self.answer.events = self.changes.events.len() as u64;
        if self.undo_notes.is_undoable
            && self.changes.events.iter().any(|event| undo::changes_the_task(&event.kind))
        {
            let mut undo_snapshot = undo::UndoSnapshot::of(
                self.view,
                &self.changes,
                std::mem::take(&mut self.undo_notes.reused),
            )?;
            // Lease renewals are not recorded: undoing a command must not shorten a lease.
            undo_snapshot.tasks.retain(|task| !self.undo_notes.renewed.contains(&task.key));
            self.changes.undo_snapshot = Some(Arc::new(undo_snapshot));
        }
        Ok(Decision { changes: self.changes, answer: self.answer })
    }

    /// Returns the tasks that are ready now and were not before the command.
    pub(crate) fn newly_ready(&self) -> impl Iterator<Item = Node> {
        self.was_ready.iter().filter_map(|(key, was_ready_for)| {
            // The kind of work may have changed, too: a ready manual task that gets calls becomes ready for runs.
            let node = self.changes.nodes.get(key)?;
            (node.is_ready() && *was_ready_for != Some(node.work)).then_some(*node)
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.context.now
    }

    pub(crate) fn emit(&mut self, key: Option<Key>, kind: EventKind) -> Decided<()> {
        let task = key.map(|key| self.id(key).map(|id| (key, id))).transpose()?;
        self.changes.events.push(NewEvent {
            at: self.context.now,
            actor: self.context.actor.clone(),
            actor_kind: self.context.recorded_kind(),
            run: self.context.run.clone(),
            task,
            kind,
            ready: Box::default(),
        });
        Ok(())
    }

    /// Allocates the key of a new task.
    pub(crate) fn new_key(&mut self) -> Decided<Key> {
        let key = match self.new_tasks.next_key {
            Some(key) => key,
            None => self.view.next_key()?,
        };
        self.new_tasks.next_key = Some(Key(key.0 + 1));
        Ok(key)
    }

    /// Reserves capacity for this number of new tasks.
    pub(crate) fn expect_new(&mut self, tasks: usize) {
        self.new_tasks.ids.reserve(tasks);
        self.was_ready.reserve(tasks);
        self.calls.reserve(tasks);
        self.edges.dependencies.reserve(tasks);
        self.edges.dependents.reserve(tasks);
        self.changes.nodes.reserve(tasks);
        self.changes.tasks.reserve(tasks);
        // One event more, for the plan itself.
        self.changes.events.reserve(tasks + 1);
    }

    /// Reserves capacity for calls that end and start: one task and two events for each.
    pub(crate) fn expect_steps(&mut self, ends: usize, starts: usize) {
        let steps = ends + starts;
        self.was_ready.reserve(steps);
        self.calls.reserve(steps);
        self.changes.nodes.reserve(steps);
        self.changes.tasks.reserve(steps);
        self.changes.events.reserve(2 * steps);
        self.answer.started.reserve(starts);
        self.answer.tasks.reserve(starts);
    }

    /// Queues the gate of a task, to be applied when the draft settles.
    pub(crate) fn queue(&mut self, key: Key) {
        Board::queue(self, key);
    }
}
