//! The state of a store as ordered maps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use taskpawl_model::command::RequestRecord;
use taskpawl_model::task::Event;
use taskpawl_model::task::{
    ActorKind, CallRecord, CallStatus, KeySpace, Node, PlanRecord, Priority, RunRecord, SignalRecord, Status,
    TaskRecord, WaitingFor, Work,
};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{Key, RunId, SharedText, TaskId};
use taskpawl_model::view::{
    CallChange, Changes, EdgeChange, NewEvent, SignalChange, TaskChange, UndoSnapshot, Undoable,
};

use super::pages::Pages;

/// A task with its node, its calls and its applied definition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) record: TaskRecord,
    pub(crate) node: Node,
    /// The calls by position. A vector, because most tasks have one call; positions of removed calls stay
    /// empty.
    pub(crate) calls: Vec<Option<CallRecord>>,
    pub(crate) applied: Option<String>,
}

/// A command that can be undone, with its undo snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct UndoEntry {
    #[serde(flatten)]
    pub(crate) command: Undoable,
    /// The undo snapshot. Pruning removes it, but keeps the command.
    #[serde(default, rename = "image", skip_serializing_if = "Option::is_none")]
    pub(crate) undo_snapshot: Option<Arc<UndoSnapshot>>,
}

/// The sort key of a ready task: kind of work, priority, due date, age.
pub(crate) type ReadyPosition = (Work, Priority, i64, Key);

/// The whole content of a store.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct State {
    pub(crate) entries: Pages<Entry>,
    pub(crate) ids: BTreeMap<TaskId, Key>,
    /// Ids of deleted tasks, with the plan of each. They stay reserved.
    pub(crate) deleted: BTreeMap<TaskId, Option<String>>,
    /// Pairs of a task and its dependency; `dependents` has the same pairs reversed.
    pub(crate) dependencies: BTreeSet<(Key, Key)>,
    pub(crate) dependents: BTreeSet<(Key, Key)>,
    /// Pairs of a parent and its subtask.
    pub(crate) subtasks: BTreeSet<(Key, Key)>,
    pub(crate) ready: BTreeSet<ReadyPosition>,
    /// Tasks that agents and people hold by a lease, with the holder.
    pub(crate) leases: BTreeMap<Key, SharedText>,
    /// Tasks with a running call.
    pub(crate) running: BTreeSet<Key>,
    pub(crate) plans: BTreeMap<String, PlanRecord>,
    /// Runs, in the order of their start.
    pub(crate) runs: Vec<RunRecord>,
    /// Ids of pruned runs, with the time of the pruning.
    pub(crate) pruned_runs: BTreeMap<RunId, Timestamp>,
    pub(crate) events: Vec<Event>,
    /// Positions in `events`, by task.
    pub(crate) history: Pages<Vec<usize>>,
    /// Undo snapshots by the revision of the last event of their command.
    pub(crate) undo: BTreeMap<u64, UndoEntry>,
    /// Results of idempotent requests, by actor and request name.
    pub(crate) requests: BTreeMap<(String, String), RequestRecord>,
    /// The durable waits of tasks.
    pub(crate) waits: BTreeMap<Key, WaitingFor>,
    /// Signals that no task has taken, the oldest first.
    pub(crate) signals: Vec<SignalRecord>,
    /// The random prefix of idempotency keys.
    pub(crate) key_space: Option<KeySpace>,
    pub(crate) counts: BTreeMap<Status, u64>,
    pub(crate) next_key: u32,
    pub(crate) revision: u64,
}

impl State {
    /// Applies `changes` and returns the revision of the last event.
    pub(crate) fn apply(&mut self, changes: Changes) -> u64 {
        // Before the events are added, because it derives their revisions from the current one.
        self.put_undo_snapshot(&changes);
        for (key, change) in changes.tasks {
            self.put_task(key, change, changes.nodes.get(&key));
        }
        for node in changes.nodes.values() {
            self.put_node(*node);
        }
        for ((key, position), change) in changes.calls {
            self.put_call(key, position, change);
        }
        for edge in changes.edges {
            self.put_edge(edge);
        }
        for (key, spec) in changes.applied {
            if let Some(entry) = self.entries.get_mut(key) {
                entry.applied = Some(spec);
            }
        }
        for (key, id, plan) in &changes.deleted {
            self.delete(*key, id, plan.as_ref());
        }
        for id in &changes.freed {
            self.deleted.remove(id);
        }
        for plan in changes.plans {
            self.plans.insert(plan.name.clone(), plan);
        }
        for name in &changes.plans_gone {
            self.plans.remove(name);
        }
        for run in changes.runs.into_values() {
            self.put_run(run);
        }
        for (id, at) in changes.runs_gone {
            self.runs.retain(|run| run.id != id);
            self.pruned_runs.insert(id, at);
        }
        if let Some(last) = changes.images_gone {
            self.undo.range_mut(..=last).for_each(|(_, kept)| kept.undo_snapshot = None);
        }
        if let Some(before) = changes.requests_gone {
            self.requests.retain(|_, done| done.at >= before);
        }
        for change in changes.signals {
            match change {
                SignalChange::Keep(signal) => self.signals.push(*signal),
                SignalChange::Remove(id) => self.signals.retain(|signal| signal.id != id),
            }
        }
        if changes.key_space.is_some() {
            self.key_space = changes.key_space;
        }
        for event in changes.events {
            self.put_event(event);
        }
        if let Some(done) = changes.request {
            self.requests.insert((done.actor_key(), done.request.clone()), done);
        }
        self.revision
    }

    fn put_task(&mut self, key: Key, change: TaskChange, node: Option<&Node>) {
        let record = change.record;
        self.note_lease(key, &record);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.record = record;
            return;
        }
        let node = *node.expect("BUG: a new task comes with its node");
        self.insert(Entry { record, node, calls: Vec::new(), applied: None });
    }

    /// Adds a new task and indexes it.
    pub(crate) fn insert(&mut self, entry: Entry) {
        let key = entry.node.key;
        self.ids.insert(entry.record.id.clone(), key);
        self.deleted.remove(&entry.record.id);
        self.note_lease(key, &entry.record);
        self.next_key = self.next_key.max(key.0 + 1);
        self.link(&entry.node);
        self.entries.insert(key, entry);
        self.note_running(key);
    }

    fn note_running(&mut self, key: Key) {
        let is_running = |call: &CallRecord| call.body.status == CallStatus::Running;
        if self.entries.get(key).is_some_and(|entry| entry.calls.iter().flatten().any(is_running)) {
            self.running.insert(key);
        } else {
            self.running.remove(&key);
        }
    }

    /// Indexes the lease and the durable wait of a task.
    fn note_lease(&mut self, key: Key, record: &TaskRecord) {
        self.waits.remove(&key);
        if let Some(wait) = record.body.progress.waiting_for.as_deref() {
            self.waits.insert(key, wait.clone());
        }
        self.leases.remove(&key);
        if let Some(holder) = record.body.state.lease_holder() {
            self.leases.insert(key, holder.clone());
        }
    }

    fn put_node(&mut self, node: Node) {
        let Some(entry) = self.entries.get_mut(node.key) else { return };
        let old = std::mem::replace(&mut entry.node, node);
        self.unlink(&old);
        self.link(&node);
    }

    fn link(&mut self, node: &Node) {
        if node.is_ready() {
            self.ready.insert(ready_place(node));
        }
        if let Some(parent) = node.parent {
            self.subtasks.insert((parent, node.key));
        }
        *self.counts.entry(node.status_kind.status()).or_default() += 1;
    }

    fn unlink(&mut self, node: &Node) {
        self.ready.remove(&ready_place(node));
        if let Some(parent) = node.parent {
            self.subtasks.remove(&(parent, node.key));
        }
        if let Some(count) = self.counts.get_mut(&node.status_kind.status()) {
            *count = count.saturating_sub(1);
        }
    }

    fn put_call(&mut self, key: Key, position: u32, change: CallChange) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let position = usize::try_from(position).expect("BUG: a position is a place in a list");
        if entry.calls.len() <= position {
            entry.calls.resize(position + 1, None);
        }
        entry.calls[position] = change.record;
        let last = entry.calls.iter().rposition(Option::is_some);
        entry.calls.truncate(last.map_or(0, |last| last + 1));
        self.note_running(key);
    }

    pub(crate) fn put_edge(&mut self, edge: EdgeChange) {
        if edge.add {
            self.dependencies.insert((edge.task, edge.on));
            self.dependents.insert((edge.on, edge.task));
        } else {
            self.dependencies.remove(&(edge.task, edge.on));
            self.dependents.remove(&(edge.on, edge.task));
        }
    }

    fn delete(&mut self, key: Key, id: &TaskId, plan: Option<&String>) {
        if let Some(entry) = self.entries.remove(key) {
            self.unlink(&entry.node);
            self.ids.remove(id);
            self.leases.remove(&key);
            self.waits.remove(&key);
            self.running.remove(&key);
        }
        for (task, on) in self.edges_of(key) {
            self.put_edge(EdgeChange { task, on, add: false });
        }
        self.deleted.insert(id.clone(), plan.cloned());
    }

    fn edges_of(&self, key: Key) -> Vec<(Key, Key)> {
        let own = pairs_of(&self.dependencies, key).map(|on| (key, on));
        own.chain(pairs_of(&self.dependents, key).map(|task| (task, key))).collect()
    }

    fn put_run(&mut self, run: RunRecord) {
        match self.runs.iter_mut().rev().find(|known| known.id == run.id) {
            Some(known) => *known = run,
            None => self.runs.push(run),
        }
    }

    /// Returns the kind of the actor of an event.
    pub(crate) fn kind_at(&self, revision: u64) -> ActorKind {
        let found = self.events.binary_search_by_key(&revision, |event| event.revision);
        found.map_or(ActorKind::Unknown, |position| self.events[position].actor_kind)
    }

    /// Stores the undo snapshot of the command.
    fn put_undo_snapshot(&mut self, changes: &Changes) {
        let (Some(undo_snapshot), Some(event)) = (&changes.undo_snapshot, changes.events.first()) else {
            return;
        };
        let (first, undoes) = (self.revision + 1, changes.undoes);
        let revision = self.revision + changes.events.len() as u64;
        let command = Undoable { revision, first, actor: event.actor.to_string(), undoes, undone_by: None };
        self.undo.insert(revision, UndoEntry { command, undo_snapshot: Some(Arc::clone(undo_snapshot)) });
        let undone = undoes.map(|undone| (undone, Some(revision)));
        for (undone, by) in undone.into_iter().chain(changes.undone_by.iter().copied()) {
            if let Some(kept) = self.undo.get_mut(&undone) {
                kept.command.undone_by = by;
            }
        }
    }

    pub(crate) fn put_event(&mut self, event: NewEvent) {
        self.revision += 1;
        if let Some((key, _)) = event.task {
            self.history.push(key, self.events.len());
        }
        self.events.push(Event {
            revision: self.revision,
            at: event.at,
            actor: event.actor,
            actor_kind: event.actor_kind,
            run: event.run,
            task: event.task.map(|(_, id)| id),
            kind: event.kind,
            ready: event.ready,
        });
    }
}

fn ready_place(node: &Node) -> ReadyPosition {
    (node.work, node.priority, node.due, node.key)
}

/// Returns the second elements of the pairs that start with `key`, in order.
pub(crate) fn pairs_of(pairs: &BTreeSet<(Key, Key)>, key: Key) -> impl Iterator<Item = Key> + '_ {
    pairs.range((key, Key(0))..=(key, Key(u32::MAX))).map(|(_, other)| *other)
}
