//! A draft: the view that a command reads, plus everything that the command has changed so far.
//!
//! Only the methods here change tasks, nodes, calls and edges, so that statuses, counts and events stay consistent.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::command::{Answer, Context, DecideError, Decision, Grant, Round, RunRules};
use crate::decide::Holder;
use crate::draft_edges::EdgeOverlay;
use crate::event::EventKind;
use crate::record::{CallBody, CallRecord, Node, StatusKind, TaskBody, TaskRecord, Work};
use crate::refusal::{ChangesSince, Refusal};
use crate::spec::{Origin, TaskSpec};
use crate::status::{BlockedReason, Cause, Status, TaskStatus, allowed_by_hand, check_transition};
use crate::view::{CallChange, Changes, EdgeChange, NewEvent, TaskChange, View, ViewError};
use crate::{Key, KeyMap, Period, RunId, Shared, SharedText, TaskId, Timestamp, key_map, undo};

pub(crate) type Decided<T> = Result<T, DecideError>;

#[derive(Clone)]
pub(crate) struct Draft<'a> {
    pub(crate) view: &'a dyn View,
    pub(crate) context: &'a Context,
    pub(crate) changes: Changes,
    pub(crate) answer: Answer,
    calls: KeyMap<Vec<CallRecord>>,
    ids: HashMap<TaskId, Key>,
    edges: EdgeOverlay,
    next_key: Option<Key>,
    was_ready: KeyMap<Option<Work>>,
    /// Empty bodies of new tasks and calls. All new ones share them, so that a large plan allocates them once.
    pub(crate) fresh: (Shared<TaskBody>, Shared<CallBody>),
    /// Origin recorded on calls that the command adds.
    pub(crate) origin: Origin,
    /// Origin recorded on values that the command writes.
    pub(crate) writer: Origin,
    /// True if the command records an undo snapshot.
    pub(crate) is_undoable: bool,
    /// Ids of new tasks that deleted tasks had used before.
    pub(crate) reused: BTreeSet<TaskId>,
    /// Tasks whose lease was renewed as a side effect and that the command did not change otherwise.
    pub(crate) renewed: BTreeSet<Key>,
    pub(crate) queue: VecDeque<Key>,
    /// Tasks added by calls that start over. They are withdrawn before gates are applied.
    pub(crate) to_withdraw: VecDeque<Key>,
    /// Cancelled tasks with calls that still run, and the run that ends each; read from the store at most once.
    pub(crate) ending: Option<BTreeMap<TaskId, RunId>>,
    /// Capacity left for starting calls in this round; unlimited outside a round.
    pub(crate) room: RoundCapacity,
    /// Tasks that hold resources or paths; read from the store at most once.
    pub(crate) holders: Option<Vec<Holder>>,
}

/// Capacity and settings of a round of a run, reduced by each call that starts.
#[derive(Debug, Clone)]
pub(crate) struct RoundCapacity {
    /// Number of calls that may still start.
    pub(crate) places: usize,
    /// Number of calls of each tool that may still start; other tools are unlimited.
    pub(crate) tool_places: BTreeMap<String, usize>,
    /// Resources and paths granted to claims that have limits.
    pub(crate) grants: BTreeMap<Key, Grant>,
    /// Settings for all tasks of the run.
    pub(crate) rules: Arc<RunRules>,
    /// Tools that the run has.
    pub(crate) tools: Arc<BTreeSet<String>>,
    /// Plans whose tasks no longer start in this run.
    pub(crate) ended_plans: Arc<BTreeSet<String>>,
}

impl Default for RoundCapacity {
    fn default() -> Self {
        let (tool_places, grants, rules, tools, ended_plans) = Default::default();
        Self { places: usize::MAX, tool_places, grants, rules, tools, ended_plans }
    }
}

impl RoundCapacity {
    pub(crate) fn of(round: &Round) -> Self {
        Self {
            places: round.places,
            tool_places: round.tool_places.clone(),
            grants: round.grants.clone(),
            rules: Arc::clone(&round.rules),
            tools: Arc::clone(&round.tools),
            ended_plans: Arc::clone(&round.ended_plans),
        }
    }

    /// Reserves capacity for one call of a tool.
    pub(crate) fn take(&mut self, tool: &str) {
        self.places = self.places.saturating_sub(1);
        if let Some(places) = self.tool_places.get_mut(tool) {
            *places = places.saturating_sub(1);
        }
    }
}

impl<'a> Draft<'a> {
    pub(crate) fn new(view: &'a dyn View, context: &'a Context) -> Self {
        Self {
            view,
            context,
            changes: Changes::default(),
            answer: Answer::default(),
            calls: KeyMap::default(),
            ids: HashMap::new(),
            edges: EdgeOverlay::default(),
            next_key: None,
            was_ready: KeyMap::default(),
            fresh: Default::default(),
            origin: context.origin,
            writer: context.kind.origin_by_hand(context.origin),
            is_undoable: false,
            reused: BTreeSet::new(),
            renewed: BTreeSet::new(),
            queue: VecDeque::new(),
            to_withdraw: VecDeque::new(),
            ending: None,
            room: RoundCapacity::default(),
            holders: None,
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
        if self.is_undoable && self.changes.events.iter().any(|event| undo::changes_the_task(&event.kind)) {
            let mut undo_snapshot =
                undo::UndoSnapshot::of(self.view, &self.changes, std::mem::take(&mut self.reused))?;
            // Lease renewals are not recorded: undoing a command must not shorten a lease.
            undo_snapshot.tasks.retain(|task| !self.renewed.contains(&task.key));
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

    // Reads.

    pub(crate) fn now(&self) -> Timestamp {
        self.context.now
    }

    /// Resolves a reference to a task: an exact id, or the only id with this prefix.
    pub(crate) fn resolve(&self, text: &str) -> Decided<Key> {
        match self.ids.get(text) {
            Some(key) => Ok(*key),
            None => crate::read::resolve(self.view, text),
        }
    }

    /// Resolves a reference to a task other than `asker`. A refusal does not suggest `asker` itself.
    pub(crate) fn resolve_beside(&self, asker: Key, text: &str) -> Decided<Key> {
        let asker = self.id(asker)?;
        self.resolve(text).map_err(|error| match error {
            DecideError::Refused(mut refusal) => {
                if let Refusal::UnknownTask { similar, .. } = &mut *refusal {
                    similar.retain(|id| *id != asker);
                }
                DecideError::Refused(refusal)
            }
            other @ DecideError::View(_) => other,
        })
    }

    pub(crate) fn resolve_all(&self, ids: &[String]) -> Decided<Vec<Key>> {
        let (mut keys, mut seen) = (Vec::with_capacity(ids.len()), BTreeSet::new());
        for id in ids {
            let key = self.resolve(id)?;
            if seen.insert(key) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Returns whether the command has created a task with this id.
    pub(crate) fn has_made(&self, id: &TaskId) -> bool {
        self.ids.contains_key(id)
    }

    pub(crate) fn find_id(&self, id: &str) -> Decided<Option<Key>> {
        match self.ids.get(id) {
            Some(key) => Ok(Some(*key)),
            None => Ok(self.view.key(id)?),
        }
    }

    pub(crate) fn id(&self, key: Key) -> Decided<TaskId> {
        match self.changes.tasks.get(&key) {
            Some(change) => Ok(change.record.id.clone()),
            None => Ok(self.view.id(key)?.ok_or_else(|| missing(key))?),
        }
    }

    pub(crate) fn ids_of(&self, keys: &[Key]) -> Decided<Vec<TaskId>> {
        keys.iter().map(|key| self.id(*key)).collect()
    }

    pub(crate) fn node(&self, key: Key) -> Decided<Node> {
        match self.changes.nodes.get(&key) {
            Some(node) => Ok(*node),
            None => Ok(self.view.node(key)?.ok_or_else(|| missing(key))?),
        }
    }

    pub(crate) fn find_node(&self, key: Key) -> Decided<Option<Node>> {
        match self.changes.nodes.get(&key) {
            Some(node) => Ok(Some(*node)),
            None => Ok(self.view.node(key)?),
        }
    }

    pub(crate) fn task(&self, key: Key) -> Decided<TaskRecord> {
        self.look_at(key).map(Cow::into_owned)
    }

    /// Returns a task for reading. A task that the command changed is borrowed instead of cloned.
    pub(crate) fn look_at(&self, key: Key) -> Decided<Cow<'_, TaskRecord>> {
        match self.changes.tasks.get(&key) {
            Some(change) => Ok(Cow::Borrowed(&change.record)),
            None => Ok(Cow::Owned(self.view.task(key)?.ok_or_else(|| missing(key))?)),
        }
    }

    pub(crate) fn calls(&mut self, key: Key) -> Decided<&mut Vec<CallRecord>> {
        let view = self.view;
        Ok(match self.calls.entry(key) {
            indexmap::map::Entry::Occupied(entry) => entry.into_mut(),
            indexmap::map::Entry::Vacant(entry) => entry.insert(view.calls(key)?),
        })
    }

    /// Returns the calls of a task without caching them in the draft.
    pub(crate) fn known_calls(&self, key: Key) -> Decided<Vec<CallRecord>> {
        self.look_at_calls(key).map(Cow::into_owned)
    }

    /// Returns the calls of a task for reading. Cached calls are borrowed instead of cloned.
    pub(crate) fn look_at_calls(&self, key: Key) -> Decided<Cow<'_, [CallRecord]>> {
        match self.calls.get(&key) {
            Some(calls) => Ok(Cow::Borrowed(calls)),
            None => Ok(Cow::Owned(self.view.calls(key)?)),
        }
    }

    pub(crate) fn dependencies(&self, key: Key) -> Decided<Vec<Key>> {
        let mut keys = if self.is_new(key) { Vec::new() } else { self.view.dependencies(key)? };
        keys.retain(|on| !self.edges.removed.contains(key, *on));
        keys.extend(self.edges.dependencies.of(key));
        Ok(keys)
    }

    /// Returns whether the task depends directly on another one.
    ///
    /// For a new task this looks up one edge and does not collect its other dependencies.
    pub(crate) fn depends_on(&self, key: Key, on: Key) -> Decided<bool> {
        let is_added = self.edges.dependencies.contains(key, on);
        Ok(is_added || (!self.is_new(key) && self.dependencies(key)?.contains(&on)))
    }

    pub(crate) fn dependents(&self, key: Key) -> Decided<Vec<Key>> {
        let mut keys = if self.is_new(key) { Vec::new() } else { self.view.dependents(key)? };
        keys.retain(|task| !self.edges.removed.contains(*task, key));
        keys.extend(self.edges.dependents.of(key));
        Ok(keys)
    }

    pub(crate) fn subtasks(&self, key: Key) -> Decided<Vec<Key>> {
        let mut keys = if self.is_new(key) { Vec::new() } else { self.view.subtasks(key)? };
        keys.retain(|task| !self.edges.moved_away.contains(key, *task));
        keys.extend(self.edges.subtasks.of(key));
        Ok(keys)
    }

    /// Returns all descendants of a task, each after its parent.
    pub(crate) fn subtree(&self, key: Key) -> Decided<Vec<Key>> {
        let mut below = self.subtasks(key)?;
        let mut next = 0;
        while let Some(key) = below.get(next).copied() {
            below.extend(self.subtasks(key)?);
            next += 1;
        }
        Ok(below)
    }

    pub(crate) fn is_new(&self, key: Key) -> bool {
        self.changes.tasks.get(&key).is_some_and(|change| change.is_new)
    }

    // Writes.

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
        let key = match self.next_key {
            Some(key) => key,
            None => self.view.next_key()?,
        };
        self.next_key = Some(Key(key.0 + 1));
        Ok(key)
    }

    pub(crate) fn insert_task(&mut self, node: Node, record: TaskRecord, calls: Vec<CallRecord>) {
        let key = node.key;
        self.ids.insert(record.id.clone(), key);
        self.was_ready.insert(key, None);
        self.changes.nodes.insert(key, node);
        self.changes.tasks.insert(key, TaskChange { record, is_new: true, spec_changed: true });
        for (position, call) in (0..).zip(&calls) {
            let change = CallChange { record: Some(call.clone()), spec_changed: true };
            self.changes.calls.insert((key, position), change);
        }
        self.calls.insert(key, calls);
        self.queue(key);
    }

    /// Reserves capacity for this number of new tasks.
    pub(crate) fn expect_new(&mut self, tasks: usize) {
        self.ids.reserve(tasks);
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
        // Consecutive duplicates are common and cheap to detect here. Other duplicates are harmless, because settling
        // is idempotent.
        if self.queue.back() != Some(&key) {
            self.queue.push_back(key);
        }
    }

    /// Deletes tasks. The caller has checked that no remaining task depends on them or is below them.
    pub(crate) fn delete_tasks(&mut self, keys: &[Key]) -> Decided<()> {
        let mut deleted = Vec::with_capacity(keys.len());
        for key in keys {
            let record = self.task(*key)?;
            deleted.push((*key, record.id, record.plan.map(String::from)));
            for on in self.dependencies(*key)? {
                self.remove_edge(*key, on)?;
            }
            self.set_parent(*key, None)?;
        }
        for (key, ..) in &deleted {
            self.was_ready.swap_remove(key);
            self.changes.nodes.swap_remove(key);
            self.changes.tasks.swap_remove(key);
        }
        let gone: BTreeSet<&Key> = keys.iter().collect();
        self.queue.retain(|queued| !gone.contains(queued));
        self.changes.deleted.extend(deleted);
        Ok(())
    }

    pub(crate) fn update_node(&mut self, key: Key, change: impl FnOnce(&mut Node)) -> Decided<Node> {
        let node = match self.changes.nodes.entry(key) {
            indexmap::map::Entry::Occupied(entry) => entry.into_mut(),
            indexmap::map::Entry::Vacant(entry) => {
                let node = self.view.node(key)?.ok_or_else(|| missing(key))?;
                self.was_ready.insert(key, node.is_ready().then_some(node.work));
                entry.insert(node)
            }
        };
        change(node);
        Ok(*node)
    }

    /// Changes a task, and updates its version and its time of change.
    pub(crate) fn update_task(&mut self, key: Key, change: impl FnOnce(&mut TaskRecord)) -> Decided<()> {
        self.write_task(key, false, change)
    }

    /// Changes the specification of a task, and everything derived from it.
    pub(crate) fn update_spec(&mut self, key: Key, change: impl FnOnce(&mut TaskRecord)) -> Decided<()> {
        let before = self.task(key)?.spec;
        self.write_task(key, true, change)?;
        self.note_former_items(key, before.for_each.is_some())?;
        if before.approval.is_some() && self.task(key)?.spec.approval.is_none() {
            self.forget_decision(key)?;
        }
        self.close_unstarted(key)?;
        self.refresh_node(key)
    }

    /// Moves a task to a renamed plan. Unlike a change of the specification, this keeps its conditions and approvals
    /// decided.
    pub(crate) fn rename_plan_of(&mut self, key: Key, plan: SharedText) -> Decided<()> {
        self.write_task(key, true, |record| record.plan = Some(plan))
    }

    fn note_former_items(&mut self, key: Key, had_items: bool) -> Decided<()> {
        let record = self.task(key)?;
        let is_loop = record.spec.for_each.is_some();
        let has_former =
            !is_loop && (record.body.progress.former_items || had_items && !self.subtasks(key)?.is_empty());
        if has_former == record.body.progress.former_items {
            return Ok(());
        }
        self.write_task(key, false, |record| record.body.progress.former_items = has_former)
    }

    /// Discards the decided conditions and approvals of a task that has not started: they were made for its previous
    /// work.
    fn close_unstarted(&mut self, key: Key) -> Decided<()> {
        match self.node(key)?.status_kind.status() {
            Status::Todo | Status::Blocked => self.close(key)?,
            Status::InProgress | Status::Done | Status::Failed | Status::Cancelled | Status::Skipped => {}
        }
        self.close_approved_above(key)
    }

    /// Discards approvals of the parents, which covered all work below them and not the changed work.
    fn close_approved_above(&mut self, key: Key) -> Decided<()> {
        let mut above = self.node(key)?.parent;
        // A new parent has no approval yet. Its own parents were checked when it was put below them.
        while let Some(parent) = above.filter(|parent| !self.is_new(*parent)) {
            let node = self.node(parent)?;
            let is_open = node.status_kind == StatusKind::Todo && !node.gate.undecided;
            let record = self.task(parent)?;
            // If only the policy asks about a list, each of its calls carries an approval of its own, so changed work
            // cannot use it.
            let is_asked_alone = record.spec.for_each.is_some() && record.spec.approval.is_none();
            if is_open && record.body.progress.approval.is_some() && !is_asked_alone {
                self.close(parent)?;
            }
            above = node.parent;
        }
        Ok(())
    }

    fn write_task(
        &mut self,
        key: Key,
        spec_changed: bool,
        change: impl FnOnce(&mut TaskRecord),
    ) -> Decided<()> {
        let now = self.now();
        let entry = match self.changes.tasks.entry(key) {
            indexmap::map::Entry::Occupied(entry) => entry.into_mut(),
            indexmap::map::Entry::Vacant(entry) => {
                let mut record = self.view.task(key)?.ok_or_else(|| missing(key))?;
                // Only the first change within a command counts: the version counts commits, not calls of this method.
                record.version += 1;
                entry.insert(TaskChange { record, is_new: false, spec_changed: false })
            }
        };
        entry.spec_changed |= spec_changed;
        entry.record.updated_at = now;
        change(&mut entry.record);
        Ok(())
    }

    /// Derives the node again from the specification, the calls and the subtasks.
    pub(crate) fn refresh_node(&mut self, key: Key) -> Decided<()> {
        let record = self.task(key)?;
        let calls = self.calls(key)?.clone();
        self.update_node(key, |node| {
            let has_subtasks = node.gate.subtasks.total() > 0;
            node.describe(&record.spec, &record.body.progress, &calls, has_subtasks);
        })?;
        self.queue(key);
        Ok(())
    }

    pub(crate) fn update_call(
        &mut self,
        key: Key,
        position: usize,
        change: impl FnOnce(&mut CallRecord),
    ) -> Decided<CallRecord> {
        let call = &mut self.calls(key)?[position];
        change(call);
        let call = call.clone();
        let at = (key, u32::try_from(position).expect("BUG: a task has fewer than 2^32 calls"));
        let spec_changed = self.changes.calls.get(&at).is_some_and(|before| before.spec_changed);
        self.changes.calls.insert(at, CallChange { record: Some(call.clone()), spec_changed });
        Ok(call)
    }

    pub(crate) fn add_call(&mut self, key: Key, call: CallRecord) -> Decided<()> {
        let calls = self.calls(key)?;
        calls.push(call.clone());
        let position = u32::try_from(calls.len() - 1).expect("BUG: a task has fewer than 2^32 calls");
        self.changes.calls.insert((key, position), CallChange { record: Some(call), spec_changed: true });
        self.close_unstarted(key)?;
        self.refresh_node(key)
    }

    /// Replaces the calls of a task that did not run.
    pub(crate) fn replace_calls(&mut self, key: Key, calls: Vec<CallRecord>) -> Decided<()> {
        let before = self.calls(key)?.len();
        for position in 0..before.max(calls.len()) {
            let at = (key, u32::try_from(position).expect("BUG: a task has fewer than 2^32 calls"));
            let change = CallChange { record: calls.get(position).cloned(), spec_changed: true };
            self.changes.calls.insert(at, change);
        }
        self.calls.insert(key, calls);
        self.close_unstarted(key)?;
        self.refresh_node(key)
    }

    /// Adds an edge that the store does not have. Adding one that the draft already added does nothing.
    pub(crate) fn add_edge(&mut self, task: Key, on: Key) -> Decided<()> {
        let outcome = self.node(on)?.status_kind.outcome();
        // An edge that this command removed earlier is still in the view. Dropping the removal restores it.
        if !self.edges.removed.remove(task, on) {
            if !self.edges.dependencies.insert(task, on) {
                return Ok(());
            }
            self.edges.dependents.insert(on, task);
        }
        self.changes.edges.push(EdgeChange { task, on, add: true });
        self.update_node(task, |node| *node.gate.dependencies.of(outcome) += 1)?;
        self.queue(task);
        Ok(())
    }

    pub(crate) fn remove_edge(&mut self, task: Key, on: Key) -> Decided<()> {
        let outcome = self.node(on)?.status_kind.outcome();
        if self.edges.dependencies.remove(task, on) {
            self.edges.dependents.remove(on, task);
        } else {
            self.edges.removed.insert(task, on);
        }
        self.changes.edges.push(EdgeChange { task, on, add: false });
        self.update_node(task, |node| *node.gate.dependencies.of(outcome) -= 1)?;
        self.queue(task);
        Ok(())
    }

    /// Moves a task under a parent, or to the top level, and updates the counts of both parents.
    pub(crate) fn set_parent(&mut self, key: Key, parent: Option<Key>) -> Decided<()> {
        let node = self.node(key)?;
        if node.parent == parent {
            return Ok(());
        }
        if let Some(old) = node.parent {
            if !self.edges.subtasks.remove(old, key) {
                self.edges.moved_away.insert(old, key);
            }
            self.count_subtask(old, node.status_kind, -1)?;
            self.refresh_node(old)?;
        }
        let mut entry = crate::Entry::Open;
        if let Some(new) = parent {
            if !self.edges.moved_away.remove(new, key) {
                self.edges.subtasks.insert(new, key);
            }
            self.count_subtask(new, node.status_kind, 1)?;
            self.refresh_node(new)?;
            entry = self.node(new)?.opens;
        }
        self.update_node(key, |node| {
            node.parent = parent;
            node.gate.entry = entry;
        })?;
        self.queue(key);
        self.close_approved_above(key)
    }

    /// Moves new top-level tasks under a parent.
    pub(crate) fn put_items_below(&mut self, parent: Key, keys: &[Key]) -> Decided<()> {
        for key in keys {
            self.edges.subtasks.insert(parent, *key);
            self.count_subtask(parent, StatusKind::Todo, 1)?;
            self.update_node(*key, |node| node.parent = Some(parent))?;
        }
        self.refresh_node(parent)?;
        let entry = self.node(parent)?.opens;
        for key in keys {
            self.update_node(*key, |node| node.gate.entry = entry)?;
            self.queue(*key);
        }
        Ok(())
    }

    fn count_subtask(&mut self, parent: Key, status_kind: StatusKind, by: i32) -> Decided<()> {
        self.update_node(parent, |node| {
            let count = subtask_count(node, status_kind);
            *count = count.checked_add_signed(by).expect("BUG: a subtask was not counted");
        })?;
        self.queue(parent);
        Ok(())
    }

    /// Changes the status of a task by the transition table, and writes its times, event and counts.
    pub(crate) fn set_state(
        &mut self,
        key: Key,
        to: TaskStatus,
        cause: Cause,
        text: Option<String>,
    ) -> Decided<()> {
        let record = self.task(key)?;
        let from = record.body.state.status();
        let reason = record.body.state.blocked_reason();
        if check_transition(from, reason, to.status(), cause).is_err() {
            return Err(self.transition_refusal(key, &record, to.status(), cause.as_str())?.into());
        }
        let (status_kind, now) = (StatusKind::of(&to), self.now());
        let event = status_event(&record, &to, cause, text);
        let took = self.running_time(key, &record, &to, cause)?;
        let is_by_hand = to.status().is_finished() && self.context.run.is_none();
        let end = self.writer.noted().filter(|_| is_by_hand);
        self.update_task(key, |record| {
            enter(record, to, now);
            record.change_origins(|origins| origins.end = end);
            if took.is_some() {
                record.body.progress.took = took;
            }
        })?;
        self.emit(Some(key), event)?;
        self.change_status_kind(key, status_kind)
    }

    /// Returns the running time of a task that finished because its work is done; `None` for every other transition.
    fn running_time(
        &mut self,
        key: Key,
        record: &TaskRecord,
        to: &TaskStatus,
        cause: Cause,
    ) -> Decided<Option<Period>> {
        if *to != TaskStatus::Done || !matches!(cause, Cause::Report | Cause::Done) {
            return Ok(None);
        }
        let started = record.body.started_at.unwrap_or(self.now());
        let whole = (self.now() - started).to_std().ok();
        let mode = record.spec.mode();
        Ok(crate::durations::running_time(self.calls(key)?, mode).or(whole).map(Period))
    }

    pub(crate) fn transition_refusal(
        &self,
        key: Key,
        record: &TaskRecord,
        to: Status,
        by: &'static str,
    ) -> Decided<Refusal> {
        let state = &record.body.state;
        let mut allowed = allowed_by_hand(state.status(), state.blocked_reason());
        if let TaskStatus::InProgress { claim } = state {
            // The caller must not be advised to do something to another holder's task that would be refused.
            let actor = self.context.as_actor();
            let (ends, takes) = (claim.may_be_ended_by(actor), claim.may_be_taken_by(actor, self.now()));
            allowed.retain(|verb| match *verb {
                "done" | "fail" | "release" => ends,
                "cancel" => takes,
                _ => true,
            });
        }
        if self.is_for_other_kind(key, record)? {
            allowed.retain(|verb| !matches!(*verb, "claim" | "done" | "fail" | "skip" | "cancel"));
        }
        let reason = state.blocked_reason().map(|reason| self.full_reason(key, reason)).transpose()?;
        let (id, from, since) = (record.id.clone(), state.status(), ChangesSince::default());
        Ok(Refusal::Transition { id, from, reason, to, by, allowed, since })
    }

    /// Restores an earlier status outside the transition table. Counters keep growing: version, attempt and starts of
    /// calls.
    pub(crate) fn restore_task(
        &mut self,
        key: Key,
        spec: Option<TaskSpec>,
        mut body: TaskBody,
        calls: Option<Vec<CallRecord>>,
    ) -> Decided<()> {
        body.attempt = body.attempt.max(self.task(key)?.body.attempt);
        let status_kind = StatusKind::of(&body.state);
        if let Some(calls) = calls {
            self.replace_calls(key, calls)?;
        }
        let spec_changed = spec.is_some();
        self.write_task(key, spec_changed, |record| {
            if let Some(spec) = spec {
                record.spec = spec.into();
            }
            record.body = body.into();
        })?;
        self.refresh_node(key)?;
        if self.node(key)?.status_kind == status_kind {
            Ok(())
        } else {
            self.change_status_kind(key, status_kind)
        }
    }

    fn full_reason(&self, key: Key, reason: &BlockedReason) -> Decided<BlockedReason> {
        crate::read::full_reason(&DraftEdges(self), key, reason)
    }

    fn change_status_kind(&mut self, key: Key, status_kind: StatusKind) -> Decided<()> {
        let before = self.node(key)?;
        self.update_node(key, |node| node.status_kind = status_kind)?;
        let (old, new) = (before.status_kind.outcome(), status_kind.outcome());
        if old != new {
            for dependent in self.dependents(key)? {
                self.update_node(dependent, |node| {
                    *node.gate.dependencies.of(old) -= 1;
                    *node.gate.dependencies.of(new) += 1;
                })?;
                self.queue(dependent);
            }
        }
        if let Some(parent) = before.parent.filter(|_| before.status_kind == StatusKind::InProgress) {
            // The task may be an item of a list that had to end before the list could replace it.
            self.queue(parent);
        }
        if let Some(parent) = before.parent
            && before.status_kind.outcome_above() != status_kind.outcome_above()
        {
            self.count_subtask(parent, before.status_kind, -1)?;
            self.count_subtask(parent, status_kind, 1)?;
        }
        self.queue(key);
        if status_kind.outcome() != crate::Outcome::Open || status_kind == StatusKind::Cancelled {
            self.note_end(key, status_kind);
        }
        Ok(())
    }

    fn note_end(&mut self, key: Key, status_kind: StatusKind) {
        let status = match status_kind {
            StatusKind::Done => Status::Done,
            StatusKind::Failed => Status::Failed,
            StatusKind::Cancelled => Status::Cancelled,
            StatusKind::Skipped => Status::Skipped,
            StatusKind::BlockedDependency => Status::Blocked,
            StatusKind::Todo
            | StatusKind::InProgress
            | StatusKind::BlockedWaiting
            | StatusKind::BlockedOther => return,
        };
        self.answer.ended.push((key, status));
    }
}

/// The edges of a draft, for rules that also work on a plain view.
pub(crate) struct DraftEdges<'d, 'a>(&'d Draft<'a>);

impl crate::read::Edges for DraftEdges<'_, '_> {
    type Error = DecideError;

    fn node(&self, key: Key) -> Decided<Node> {
        self.0.node(key)
    }

    fn dependencies(&self, key: Key) -> Decided<Vec<Key>> {
        self.0.dependencies(key)
    }

    fn subtasks(&self, key: Key) -> Decided<Vec<Key>> {
        self.0.subtasks(key)
    }

    fn id(&self, key: Key) -> Decided<TaskId> {
        self.0.id(key)
    }
}

impl Draft<'_> {
    /// Returns at most five unfinished and at most five failed tasks that keep a task from being ready.
    pub(crate) fn obstacles(&self, key: Key) -> Decided<(Vec<TaskId>, Vec<TaskId>)> {
        let edges = DraftEdges(self);
        let open = crate::read::waiting_for(&edges, key)?;
        let failed = crate::read::failed_before(&edges, key)?;
        Ok((open.into_iter().take(5).collect(), failed.into_iter().take(5).collect()))
    }
}

fn status_event(record: &TaskRecord, to: &TaskStatus, cause: Cause, text: Option<String>) -> EventKind {
    let lease_until = if let TaskStatus::InProgress { claim } = to { claim.lease_until } else { None };
    EventKind::Status {
        from: record.body.state.status(),
        to: to.status(),
        cause,
        reason: to.blocked_reason().cloned().map(Box::new),
        text,
        attempt: record.body.attempt + u32::from(cause == Cause::Claim),
        lease_until,
    }
}

fn enter(record: &mut TaskRecord, to: TaskStatus, now: Timestamp) {
    let body = &mut record.body;
    match &to {
        TaskStatus::InProgress { .. } => {
            body.attempt += 1;
            body.started_at.get_or_insert(now);
            body.finished_at = None;
        }
        TaskStatus::Todo | TaskStatus::Blocked { .. } => {
            body.finished_at = None;
            body.progress.deadline = None;
        }
        TaskStatus::Done
        | TaskStatus::Failed { .. }
        | TaskStatus::Cancelled { .. }
        | TaskStatus::Skipped { .. } => {
            body.finished_at = Some(now);
            body.progress.deadline = None;
        }
    }
    body.state = to;
}

pub(crate) fn subtask_count(node: &mut Node, status_kind: StatusKind) -> &mut u32 {
    let counts = &mut node.gate.subtasks;
    match status_kind.outcome_above() {
        crate::Outcome::Open => &mut counts.open,
        crate::Outcome::Done | crate::Outcome::Skipped => &mut counts.finished,
        crate::Outcome::Failed => &mut counts.failed,
    }
}

fn missing(key: impl std::fmt::Display) -> ViewError {
    ViewError(format!("the store has no task {key}, though something refers to it").into())
}
