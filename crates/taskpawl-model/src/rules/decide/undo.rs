//! `undo`: restores everything that a command changed.

use crate::view::ReadGraph;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::command::Undone;
use crate::command::refusal::{ConflictingChange, Refusal};
use crate::rules::cycle::Edge;
use crate::rules::draft::{Decided, Draft};
use crate::task::Task;
use crate::task::event::{Change, Event, EventKind, SignalStep};
use crate::task::gate::Outcome;
use crate::task::record::{CallRecord, Node, StatusKind, Work};
use crate::task::status::{Cause, TaskStatus};
use crate::value::Map;
use crate::value::{Key, TaskId};
use crate::view::EventQuery;
use crate::view::undo::{DeletedTask, TaskSnapshot, UndoSnapshot, Undoable, changes_the_task};

/// Number of events that are read at once.
const PAGE: usize = 1_000;

/// Fields left out of the change event of an undo: they have events of their own, are derived, or only count up.
const LEFT_OUT: &[&str] = &[
    "status",
    "blockedReason",
    "claim",
    "error",
    "errorClass",
    "attempt",
    "generation",
    "version",
    "updatedAt",
    "startedAt",
    "finishedAt",
    "subtasks",
    "took",
    "origins",
];

impl Draft<'_> {
    pub(super) fn undo(&mut self, revision: Option<u64>) -> Decided<()> {
        let command = self.find_undoable(revision)?;
        let Some(undo_snapshot) = self.view.undo_snapshot(command.revision)? else {
            let why = "the undo data is no longer stored";
            return Err(Refusal::NotUndoable { revision: command.revision, why, before: None }.into());
        };
        Undoing { own: undo_snapshot.keys(), command, undo_snapshot }.carry_out(self)
    }

    fn find_undoable(&self, revision: Option<u64>) -> Decided<Undoable> {
        let Some(revision) = revision else {
            let actor = self.context.as_actor();
            let last = self.view.last_undoable(actor)?;
            self.refuse_unrecorded(last.as_ref().map(|last| last.revision))?;
            return Ok(last.ok_or_else(|| Refusal::NothingToUndo { actor: actor.name.to_owned() })?);
        };
        let Some(command) = self.view.undoables(revision, revision)?.into_iter().next() else {
            let why = self.why_not(revision)?;
            return Err(Refusal::NotUndoable { revision, why, before: None }.into());
        };
        match command.undone_by {
            Some(by) => Err(Refusal::AlreadyUndone { revision: command.revision, by }.into()),
            None => Ok(command),
        }
    }

    /// Refuses if this actor gave a command after `before` that is not recorded for undo. To undo the older one instead would revert
    /// something that the caller does not mean.
    fn refuse_unrecorded(&self, before: Option<u64>) -> Decided<()> {
        let mut query = EventQuery {
            after: before.unwrap_or_default(),
            actor: Some(self.context.actor.to_string()),
            limit: PAGE,
            latest: true,
            ..EventQuery::default()
        };
        loop {
            let page = self.view.find_events(&query)?;
            let is_own = |event: &&Event| event.is_of(self.context.as_actor());
            let mut newest_first = page.iter().rev().filter(is_own);
            if let Some((revision, why)) =
                newest_first.find_map(|event| Some((event.revision, Self::why_unrecorded(&event.kind)?)))
            {
                return Err(Refusal::NotUndoable { revision, why, before }.into());
            }
            let Some(first) = page.first().filter(|_| page.len() == PAGE) else { return Ok(()) };
            query.until = Some(first.revision - 1);
        }
    }

    /// Returns why a command is not recorded for undo, if it is not; `None` for the events of others.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other commands by hand are recorded")]
    fn why_unrecorded(kind: &EventKind) -> Option<&'static str> {
        match kind {
            EventKind::Signal(signal) if signal.step == SignalStep::Sent => {
                Some("it sent a signal, which is not taken back")
            }
            EventKind::Signal(signal) if signal.step == SignalStep::Dropped => {
                Some("it dropped a signal, which is not brought back")
            }
            EventKind::RunStopRequested { .. } => Some("it stopped a run, which is not taken back"),
            EventKind::Renewed { .. } => Some("it renewed a lease, which is never shortened"),
            _ => None,
        }
    }

    fn why_not(&self, revision: u64) -> Decided<&'static str> {
        let event = match revision.checked_sub(1) {
            Some(before) => self.view.events(before, None, 1)?.pop(),
            None => None,
        };
        Ok(match event {
            Some(event) if event.revision == revision && event.run.is_some() => "a run made this change",
            Some(event) if event.revision == revision => Self::why_unrecorded(&event.kind)
                .unwrap_or("it was not made by a command of an agent or a person"),
            _ => "it does not exist yet",
        })
    }

    /// Returns the last event of a task after the command, ignoring undone commands and their undos.
    fn last_touch(
        &self,
        key: Key,
        command: &Undoable,
        is_wanted: fn(&EventKind) -> bool,
    ) -> Decided<Option<ConflictingChange>> {
        let mut last = None;
        for event in self.view.events(command.revision, Some(key), 0)? {
            if is_wanted(&event.kind) && !self.is_void(event.revision)? {
                last = Some(event);
            }
        }
        let id = self.view.id(key)?;
        Ok(last.map(|event| touch_of(event, id)))
    }

    /// Returns the undo marks that an undo of an undo toggles: each command in the chain becomes done or undone in
    /// turn.
    fn turned_by(&self, command: &Undoable) -> Decided<Vec<(u64, Option<u64>)>> {
        let (mut turned, mut next, mut by) = (Vec::new(), command.undoes, None);
        while let Some(revision) = next {
            turned.push((revision, by));
            by = if by.is_none() { Some(revision) } else { None };
            next = self.view.undoables(revision, revision)?.first().and_then(|command| command.undoes);
        }
        Ok(turned)
    }

    fn is_void(&self, revision: u64) -> Decided<bool> {
        Ok(self.view.undoables(revision, revision)?.first().is_some_and(Undoable::is_void))
    }
}

fn touch_of(event: Event, id: Option<TaskId>) -> ConflictingChange {
    let kind = &event.kind;
    let what = if let EventKind::Status { to, .. } = kind {
        let place = if event.run.is_some() { " in a run" } else { "" };
        format!("became `{to}`{place}")
    } else if let EventKind::CallStarted { .. } | EventKind::CallEnded { .. } = kind {
        "ran".to_owned()
    } else if let EventKind::ExternalEdit { .. } = kind {
        "was edited in the file".to_owned()
    } else {
        format!("was changed: {}", kind.name().replace('_', " "))
    };
    let task = id.or(event.task).unwrap_or_default();
    ConflictingChange { task, revision: Some(event.revision), actor: Some(event.actor.into()), what }
}

/// An undo in progress.
struct Undoing {
    command: Undoable,
    undo_snapshot: Arc<UndoSnapshot>,
    /// Tasks in the undo snapshot.
    own: BTreeSet<Key>,
}

impl Undoing {
    fn carry_out(self, draft: &mut Draft<'_>) -> Decided<()> {
        self.refuse_touched(draft)?;
        draft.changes.undoes = Some(self.command.revision);
        draft.changes.undone_by = draft.turned_by(&self.command)?;
        draft.emit(None, EventKind::Undone { first: self.command.first, last: self.command.revision })?;
        // Edges go first and come back last: tasks can only be deleted without edges, and edges need both of their
        // ends.
        self.take_edges_away(draft)?;
        let removed = self.remove_created(draft)?;
        let back = self.bring_deleted_back(draft)?;
        for task in &self.undo_snapshot.tasks {
            draft.refuse_taking(task.key)?;
            restore(draft, task)?;
        }
        self.put_edges_back(draft)?;
        self.check_references(draft)?;
        for (key, spec) in &self.undo_snapshot.applied {
            draft.changes.applied.insert(*key, spec.clone());
        }
        for (name, plan) in &self.undo_snapshot.plans {
            match plan {
                Some(plan) => draft.changes.plans.push(plan.clone()),
                None => draft.changes.plans_gone.push(name.clone()),
            }
        }
        self.write_events(draft, &back)?;
        self.answer(draft, removed)
    }

    fn answer(&self, draft: &mut Draft<'_>, removed: Vec<TaskId>) -> Decided<()> {
        let gone: BTreeSet<Key> = self.undo_snapshot.created_keys().collect();
        let restored: Vec<Key> = self.own.difference(&gone).copied().collect();
        let restored = draft.ids_of(&restored)?;
        draft.answer.tasks.clone_from(&restored);
        let Undoable { first, revision, actor, .. } = self.command.clone();
        draft.answer.undone = Some(Undone { first, last: revision, actor, restored, removed });
        Ok(())
    }

    // Conflicting changes.

    fn refuse_touched(&self, draft: &Draft<'_>) -> Decided<()> {
        let mut touches = Vec::new();
        for key in &self.own {
            touches.extend(draft.last_touch(*key, &self.command, changes_the_task)?);
        }
        if touches.is_empty() {
            self.find_gone_and_taken(draft, &mut touches)?;
            self.find_taken_name(draft, &mut touches)?;
        }
        if touches.is_empty() {
            // These checks read the current records, so they need the existence checks above to have passed.
            self.find_running(draft, &mut touches)?;
            self.find_needing(draft, &mut touches)?;
            self.find_ran_after(draft, &mut touches)?;
            self.find_closed_parents(draft, &mut touches)?;
        }
        if touches.is_empty() {
            return Ok(());
        }
        Err(Refusal::TouchedSince { revision: self.command.revision, touches }.into())
    }

    /// Finds tasks that no longer exist, and ids that other tasks have taken.
    fn find_gone_and_taken(&self, draft: &Draft<'_>, touches: &mut Vec<ConflictingChange>) -> Decided<()> {
        let deleted: BTreeMap<Key, &DeletedTask> =
            self.undo_snapshot.deleted.iter().map(|task| (task.key, task)).collect();
        let others = self.undo_snapshot.removed.iter().map(|(_, on)| *on);
        let above = self.undo_snapshot.parents.iter().filter_map(|(_, parent)| *parent);
        let of_deleted =
            deleted.values().flat_map(|task| task.dependencies.iter().copied().chain(task.parent));
        for key in self.own.iter().copied().chain(others).chain(above).chain(of_deleted) {
            if !deleted.contains_key(&key) && draft.find_node(key)?.is_none() {
                let gone = draft.last_touch(key, &self.command, changes_the_task)?;
                touches.push(gone.unwrap_or_else(|| bare(TaskId::from(key.to_string()), "is gone")));
            }
        }
        for task in deleted.values() {
            let id = &task.record.id;
            if draft.find_id(id.as_str())?.is_some() {
                touches.push(bare(id.clone(), "its id now belongs to another task"));
            } else if task.freed && draft.view.deleted_id(id.as_str())?.is_some() {
                touches.push(bare(id.clone(), "its id belonged to another task, which was deleted"));
            }
        }
        Ok(())
    }

    /// Finds another plan that has the previous plan name now. One conflict is enough, because all tasks share it.
    fn find_taken_name(&self, draft: &Draft<'_>, touches: &mut Vec<ConflictingChange>) -> Decided<()> {
        let Some((key, name)) =
            self.undo_snapshot.tasks.iter().find_map(|task| Some((task.key, task.plan.as_deref()?)))
        else {
            return Ok(());
        };
        if draft.view.plan(name)?.is_some() {
            touches.push(bare(
                draft.id(key)?,
                &format!("belonged to the plan `{name}`, which is a different plan now"),
            ));
        }
        Ok(())
    }

    /// Finds tasks that a run held before. The run has released them, so the claim cannot be restored.
    fn find_running(&self, draft: &Draft<'_>, touches: &mut Vec<ConflictingChange>) -> Decided<()> {
        for task in &self.undo_snapshot.tasks {
            let record = draft.task(task.key)?;
            let is_of_run =
                matches!(&task.body.state, TaskStatus::InProgress { claim } if claim.run.is_some());
            if is_of_run && record.body.state != task.body.state {
                touches.push(bare(record.id, "was running, and its run has released it"));
            }
        }
        Ok(())
    }

    /// Finds dependents and subtasks of tasks that the undo would delete.
    fn find_needing(&self, draft: &Draft<'_>, touches: &mut Vec<ConflictingChange>) -> Decided<()> {
        let created: BTreeSet<Key> = self.undo_snapshot.created_keys().collect();
        let moved: BTreeSet<Key> = self.undo_snapshot.parents.iter().map(|(task, _)| *task).collect();
        let added: BTreeSet<&(Key, Key)> = self.undo_snapshot.added.iter().collect();
        for key in &created {
            let id = draft.id(*key)?;
            for task in draft.dependents(*key)? {
                if !created.contains(&task) && !added.contains(&(task, *key)) {
                    touches.push(self.needing(draft, task, &format!("depends on `{id}`"))?);
                }
            }
            for task in draft.subtasks(*key)? {
                if !created.contains(&task) && !moved.contains(&task) {
                    touches.push(self.needing(draft, task, &format!("is a subtask of `{id}`"))?);
                }
            }
        }
        Ok(())
    }

    fn needing(&self, draft: &Draft<'_>, task: Key, what: &str) -> Decided<ConflictingChange> {
        let touch = draft.last_touch(task, &self.command, changes_the_task)?;
        let touch = touch.map(|touch| ConflictingChange { what: what.to_owned(), ..touch });
        Ok(match touch {
            Some(touch) => touch,
            None => bare(draft.id(task)?, what),
        })
    }

    /// Finds tasks that ran because of the current status of a restored task, and would not have run otherwise.
    fn find_ran_after(&self, draft: &Draft<'_>, touches: &mut Vec<ConflictingChange>) -> Decided<()> {
        let (mut seen, mut queue) = (self.own.clone(), Vec::new());
        for task in &self.undo_snapshot.tasks {
            queue.extend(affected(draft, &draft.node(task.key)?, StatusKind::of(&task.body.state))?);
        }
        while let Some(key) = queue.pop() {
            if !seen.insert(key) {
                continue;
            }
            let is_state = |kind: &EventKind| matches!(kind, EventKind::Status { .. });
            match draft.node(key)?.status_kind {
                StatusKind::InProgress | StatusKind::Done | StatusKind::Failed => {
                    touches.extend(draft.last_touch(key, &self.command, is_state)?);
                }
                // A task that did not run passes its entry on, so its subtasks are checked, too.
                StatusKind::Todo
                | StatusKind::BlockedDependency
                | StatusKind::BlockedWaiting
                | StatusKind::BlockedOther
                | StatusKind::Cancelled
                | StatusKind::Skipped => queue.extend(draft.subtasks(key)?),
            }
        }
        Ok(())
    }

    /// Finds parents that ended or run: they take no unfinished subtasks.
    fn find_closed_parents(&self, draft: &Draft<'_>, touches: &mut Vec<ConflictingChange>) -> Decided<()> {
        let mut wanted: Vec<(Key, StatusKind)> = Vec::new();
        for (key, parent) in &self.undo_snapshot.parents {
            wanted.extend(
                parent.map(|parent| {
                    (parent, draft.node(*key).map_or(StatusKind::Todo, |node| node.status_kind))
                }),
            );
        }
        let deleted = self.undo_snapshot.deleted.iter();
        wanted
            .extend(deleted.filter_map(|task| Some((task.parent?, StatusKind::of(&task.record.body.state)))));
        for (parent, status_kind) in wanted {
            if self.own.contains(&parent)
                || matches!(status_kind.outcome_above(), Outcome::Done | Outcome::Skipped)
            {
                continue;
            }
            let status = draft.node(parent)?.status_kind.status();
            if super::fields::takes_subtasks(status) {
                continue;
            }
            let what = format!("is `{status}` and accepts no open subtasks");
            touches.push(self.needing(draft, parent, &what)?);
        }
        Ok(())
    }

    // Restoring.

    fn take_edges_away(&self, draft: &mut Draft<'_>) -> Decided<()> {
        for (task, on) in &self.undo_snapshot.added {
            draft.remove_edge(*task, *on)?;
        }
        self.undo_snapshot.parents.iter().try_for_each(|(task, _)| draft.set_parent(*task, None))
    }

    fn remove_created(&self, draft: &mut Draft<'_>) -> Decided<Vec<TaskId>> {
        let keys: Vec<Key> = self.undo_snapshot.created_keys().collect();
        for key in &keys {
            let task = to_value(&draft.flat_task(*key)?);
            draft.emit(Some(*key), EventKind::Deleted { task })?;
        }
        let ids = draft.ids_of(&keys)?;
        draft.delete_tasks(&keys)?;
        // Ids that no task had used before the command become available again.
        draft.changes.freed.extend(ids.iter().filter(|id| !self.undo_snapshot.reused.contains(*id)).cloned());
        Ok(ids)
    }

    fn bring_deleted_back(&self, draft: &mut Draft<'_>) -> Decided<BTreeSet<Key>> {
        for task in &self.undo_snapshot.deleted {
            let mut record = task.record.clone();
            record.version += 1;
            record.updated_at = draft.now();
            if draft.view.deleted_id(record.id.as_str())?.is_some() {
                draft.undo_notes.reused.insert(record.id.clone());
            }
            let mut node = Node::new(task.key, record.spec.trigger(), Work::Manual);
            node.status_kind = StatusKind::of(&record.body.state);
            draft.insert_task(node, record, task.calls.clone());
            draft.refresh_node(task.key)?;
            draft.changes.applied.extend(task.applied.clone().map(|spec| (task.key, spec)));
        }
        Ok(self.undo_snapshot.deleted.iter().map(|task| task.key).collect())
    }

    fn put_edges_back(&self, draft: &mut Draft<'_>) -> Decided<()> {
        let deleted = &self.undo_snapshot.deleted;
        // A restored task has only the edges restored with it. A cycle needs an edge from outside, so without one no
        // search is made.
        let search = !self.undo_snapshot.removed.is_empty()
            || !self.undo_snapshot.parents.is_empty()
            || deleted.iter().any(|task| task.parent.is_some_and(|parent| !self.own.contains(&parent)));
        let edges = deleted.iter().flat_map(|task| task.dependencies.iter().map(|on| (task.key, *on)));
        for (task, on) in edges.chain(self.undo_snapshot.removed.iter().copied()) {
            if search {
                draft.refuse_cycle(Edge::Dependency { task, on })?;
            }
            draft.add_edge(task, on)?;
        }
        let parents = deleted.iter().map(|task| (task.key, task.parent));
        for (task, parent) in parents.chain(self.undo_snapshot.parents.iter().copied()) {
            let Some(parent) = parent else { continue };
            if search {
                draft.refuse_cycle(Edge::Subtask { task, parent })?;
            }
            draft.set_parent(task, Some(parent))?;
        }
        Ok(())
    }

    /// Checks references in both directions: of tasks written since that lose an edge, and of restored work.
    fn check_references(&self, draft: &Draft<'_>) -> Decided<()> {
        let created: BTreeSet<Key> = self.undo_snapshot.created_keys().collect();
        let cut = self.undo_snapshot.added.iter().map(|(task, _)| task);
        let cut = cut.chain(self.undo_snapshot.parents.iter().map(|(task, _)| task));
        let cut: Vec<Key> = cut.copied().filter(|key| !created.contains(key)).collect();
        draft.check_references_behind(&cut)?;
        for task in &self.undo_snapshot.tasks {
            if task.spec.is_some() || has_other_calls(&draft.view.calls(task.key)?, task) {
                draft.check_task_references(task.key, true)?;
            }
        }
        self.undo_snapshot.deleted.iter().try_for_each(|task| draft.check_task_references(task.key, true))
    }

    fn write_events(&self, draft: &mut Draft<'_>, back: &BTreeSet<Key>) -> Decided<()> {
        let created: BTreeSet<Key> = self.undo_snapshot.created_keys().collect();
        for key in self.own.iter().filter(|key| !created.contains(key)) {
            if back.contains(key) {
                let parent = draft.node(*key)?.parent;
                let dependencies = draft.dependencies(*key)?;
                draft.emit_created(*key, parent, &dependencies)?;
            } else {
                write_changes(draft, *key)?;
            }
        }
        Ok(())
    }
}

fn bare(task: TaskId, what: &str) -> ConflictingChange {
    ConflictingChange { task, revision: None, actor: None, what: what.to_owned() }
}

/// Returns the tasks that a change between two status kinds may open or close: dependents, the parent and subtasks.
fn affected(draft: &Draft<'_>, node: &Node, before: StatusKind) -> Decided<Vec<Key>> {
    let mut keys = Vec::new();
    if node.status_kind == before {
        return Ok(keys);
    }
    if node.status_kind.outcome() != before.outcome() {
        keys.extend(draft.dependents(node.key)?);
    }
    if node.status_kind.outcome_above() != before.outcome_above() {
        keys.extend(node.parent);
    }
    keys.extend(draft.subtasks(node.key)?);
    Ok(keys)
}

fn restore(draft: &mut Draft<'_>, task: &TaskSnapshot) -> Decided<()> {
    let calls = if task.calls.is_empty() { None } else { Some(calls_before(draft.calls(task.key)?, task)) };
    draft.restore_task(task.key, task.spec.clone(), task.body.clone(), calls)?;
    task.plan.iter().try_for_each(|plan| draft.rename_plan_of(task.key, plan.clone()))
}

/// Returns whether the snapshot restores calls that the task does not have now, or has in another form.
fn has_other_calls(now: &[CallRecord], task: &TaskSnapshot) -> bool {
    let before = task.calls.iter().filter_map(|(_, call)| call.as_ref());
    let is_same = |one: &CallRecord, other: &CallRecord| (&one.id, &one.spec) == (&other.id, &other.spec);
    before.into_iter().any(|call| !now.iter().any(|other| is_same(call, other)))
}

/// Returns the calls to restore. Start counters never decrease, because they name the output files of calls.
fn calls_before(now: &[CallRecord], task: &TaskSnapshot) -> Vec<CallRecord> {
    let changed: BTreeMap<u32, &Option<CallRecord>> =
        task.calls.iter().map(|(position, call)| (*position, call)).collect();
    let count = now.len().max(task.calls.len());
    let last = changed.keys().next_back().map_or(0, |last| *last as usize + 1);
    let mut calls = Vec::with_capacity(count);
    for position in 0..now.len().max(last) {
        let old = u32::try_from(position).ok().and_then(|position| changed.get(&position));
        let Some(old) = old else {
            calls.extend(now.get(position).cloned());
            continue;
        };
        let Some(mut call) = (*old).clone() else { continue };
        let same = now.iter().find(|other| other.id == call.id);
        call.body.attempts = call.body.attempts.max(same.map_or(0, |same| same.body.attempts));
        calls.push(call);
    }
    calls
}

/// Writes an event for each difference between a task in the draft and in the store.
fn write_changes(draft: &mut Draft<'_>, key: Key) -> Decided<()> {
    let (Some(before), after) = (crate::view::read_task(draft.view, key)?, draft.flat_task(key)?) else {
        return Ok(());
    };
    let (old, state) =
        (draft.view.task(key)?.map(|task| task.body.state.clone()), draft.task(key)?.body.state.clone());
    let old_reason = old.as_ref().and_then(TaskStatus::blocked_reason);
    if before.status != after.status || old_reason != state.blocked_reason() {
        let lease_until = after.claim.as_ref().and_then(|claim| claim.lease_until);
        let reason = state.blocked_reason().cloned().map(Box::new);
        let (from, to, cause, attempt) = (before.status, after.status, Cause::Undo, after.attempt);
        let text = after.error.clone();
        draft.emit(Some(key), EventKind::Status { from, to, cause, reason, text, attempt, lease_until })?;
    }
    let (before, after) = (fields(&before), fields(&after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |name: &String| {
        let of = |map: &Map| map.get(name).cloned().unwrap_or_default();
        (name.clone(), Change { from: of(&before), to: of(&after) })
    };
    let changed = names.into_iter().map(change).filter(|(_, change)| change.from != change.to);
    let changed: BTreeMap<String, Change> = changed.collect();
    if changed.is_empty() { Ok(()) } else { draft.emit(Some(key), EventKind::Updated { fields: changed }) }
}

/// Returns the fields whose changes are recorded. Results of calls may be large, and the snapshot keeps them.
fn fields(task: &Task) -> Map {
    let mut map = if let Value::Object(map) = to_value(task) { map } else { Map::new() };
    map.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    if !task.metadata.tool_calls.is_empty() {
        map.remove("result");
    }
    let calls = map.get_mut("metadata").and_then(|metadata| metadata.get_mut("toolCalls"));
    for call in calls.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut) {
        call.retain(|name, _| !matches!(name.as_str(), "result" | "usage" | "startedAt" | "finishedAt"));
    }
    map
}

fn to_value(task: &Task) -> Value {
    serde_json::to_value(task).expect("BUG: a task is always valid JSON")
}
