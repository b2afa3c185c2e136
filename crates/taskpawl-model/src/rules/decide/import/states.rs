//! Statuses set by an import, adapted to the statuses that are possible in the store.

use crate::view::ReadGraph;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Importing;
use crate::command::import::{ImportMode, PreservedField};
use crate::rules::decide::fields::takes_subtasks;
use crate::rules::draft::{Decided, Draft};
use crate::task::event::EventKind;
use crate::task::record::{CallRecord, TaskBody, Work};
use crate::task::status::{BlockedReason, CallStatus, Cause, Claim, Status, TaskStatus};
use crate::task::trust::ValueOrigins;
use crate::task::wire::TaskParts;
use crate::task::{ActorKind, Outcome};
use crate::value::{Key, TaskId};

/// Returns whether a run or a person holds the task, so that this import must not take it.
fn is_kept_by_holder(draft: &Draft<'_>, state: &TaskStatus) -> bool {
    let TaskStatus::InProgress { claim } = state else { return false };
    claim.run.is_some() || !claim.may_be_taken_by(draft.context.as_actor(), draft.now())
}

impl<'i> Importing<'i> {
    /// Notes the status of the source, unless the task's status changed in the store since.
    pub(super) fn take_state(
        &mut self,
        draft: &Draft<'_>,
        position: usize,
        here: &BTreeMap<String, Value>,
    ) -> Decided<bool> {
        let key = self.key(position);
        let record = draft.task(key)?;
        let there = self.found[position].task.status;
        if draft.node(key)?.work == Work::Automatic
            && matches!(there, Status::Todo | Status::InProgress | Status::Done)
        {
            // The status is derived from the subtasks.
            return Ok(false);
        }
        let before = self.found[position].before.as_ref().and_then(|before| before.get("status"));
        let was_worked_on = match before {
            // No run here executes work of the other program: such a task was imported as `todo`.
            Some(Value::String(before)) if before == "in_progress" && record.body.attempt == 0 => {
                !matches!(record.body.state.status(), Status::InProgress | Status::Todo)
            }
            // A status that an earlier import set in place of the source's is no work of this store.
            Some(_) if self.found[position].adapted == Some(record.body.state.status()) => false,
            Some(before) => here.get("status") != Some(before),
            None => self.import.mode != ImportMode::Adopt,
        };
        if was_worked_on || is_kept_by_holder(draft, &record.body.state) {
            let here = record.body.state.status();
            let why = format!("changed to `{here}` in the store and to `{there}` in the source");
            self.keep_back(position, "status", &why);
            return Ok(false);
        }
        let state = self.parts(position)?.record.body.state.clone();
        self.found[position].state = Some(state);
        self.found[position].adapted = None;
        Ok(true)
    }

    /// Puts a new task below one that is in the store. Work of a file is never refused because of the status of its parent:
    /// a parent that only follows from its subtasks is reopened, and below another finished one the task is skipped.
    pub(super) fn put_below_present(
        &mut self,
        draft: &mut Draft<'_>,
        position: usize,
        above: usize,
    ) -> Decided<()> {
        let (key, parent) = (self.key(position), self.key(above));
        let record = draft.task(parent)?;
        let (state, there) = (record.body.state.clone(), self.found[above].task.status);
        if takes_subtasks(state.status()) {
            return draft.put_below(key, parent);
        }
        if is_kept_by_holder(draft, &state) {
            let why = format!("`{}` is in progress in the store", record.id);
            self.keep_back(position, "parent", &why);
            return Ok(());
        }
        let is_derived = state == TaskStatus::Done && draft.node(parent)?.work == Work::Automatic;
        let is_open = !state.status().is_finished() || (is_derived && !there.is_finished());
        if is_open || self.import.reopen {
            let body = TaskBody { state: TaskStatus::Todo, finished_at: None, ..record.body.into_inner() };
            self.set_state(draft, parent, body, None)?;
        } else {
            self.closed.insert(above);
        }
        draft.set_parent(key, Some(parent))
    }

    /// Skips the open subtasks of tasks that became done in the source, and new ones of tasks that are finished here. Its author forgot them: nothing below a task that is
    /// done is still to be done. Subtasks that were worked on here stay, and so does their parent.
    pub(super) fn skip_below_done(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        let below = self.below();
        let mut changed: BTreeSet<TaskId> = self.report.changed.iter().cloned().collect();
        for position in 0..self.found.len() {
            let found = &self.found[position];
            let is_news = found.is_new || found.has_news("status", self.import.mode == ImportMode::Adopt);
            let is_done_there = found.task.status == Status::Done && (is_news || self.import.reopen);
            if !is_done_there && !self.closed.contains(&position) {
                continue;
            }
            let mut open = below.get(&found.task.id).cloned().unwrap_or_default();
            let mut all_below = BTreeSet::new();
            while let Some(position_below) = open.pop() {
                open.extend(below.get(&self.found[position_below].task.id).into_iter().flatten());
                all_below.insert(position_below);
            }
            let mut is_reopened = false;
            for position_below in &all_below {
                is_reopened |= self.skip_or_reopen(draft, *position_below, position, &mut changed)?;
            }
            if is_reopened {
                self.reopen_above(draft, all_below.into_iter().chain([position]))?;
            }
        }
        Ok(())
    }

    fn below(&self) -> BTreeMap<&'i TaskId, Vec<usize>> {
        let mut below: BTreeMap<&TaskId, Vec<usize>> = BTreeMap::new();
        for (position, found) in self.found.iter().enumerate() {
            if let Some(parent) = &found.task.parent {
                below.entry(parent).or_default().push(position);
            }
        }
        below
    }

    /// Lets parents above reopened subtasks follow from these again.
    fn reopen_above(&mut self, draft: &Draft<'_>, positions: impl Iterator<Item = usize>) -> Decided<()> {
        for position in positions {
            let key = self.key(position);
            if draft.node(key)?.work == Work::Automatic && draft.task(key)?.body.state == TaskStatus::Done {
                self.found[position].state = Some(TaskStatus::Done);
            }
        }
        Ok(())
    }

    /// Skips an open subtask, or reopens one that an earlier import skipped. Returns whether it was reopened.
    fn skip_or_reopen(
        &mut self,
        draft: &mut Draft<'_>,
        position: usize,
        above: usize,
        changed: &mut BTreeSet<TaskId>,
    ) -> Decided<bool> {
        let found = &self.found[position];
        if found.task.status.is_finished() || draft.node(found.key())?.work == Work::Automatic {
            return Ok(false);
        }
        let record = draft.task(found.key())?;
        let here = record.body.state.status();
        if self.import.reopen {
            if found.adapted == Some(Status::Skipped) && here == Status::Skipped {
                self.found[position].state = Some(TaskStatus::Todo);
                self.found[position].adapted = None;
                let id = self.found[position].task.id.clone();
                self.report.changed.push(id);
                return Ok(true);
            }
            return Ok(false);
        }
        let was_worked_on = !found.is_new
            && (is_kept_by_holder(draft, &record.body.state)
                || found.before.as_ref().is_none_or(|before| before.get("status") != Some(&json!(here))));
        if here.is_finished() || was_worked_on {
            return Ok(false);
        }
        let done = if self.found[above].task.status == Status::Done { "done there" } else { "finished here" };
        let why = format!("`{}` above it is {done}", self.found[above].task.id);
        self.found[position].state = Some(TaskStatus::Skipped { reason: Some(why.clone()) });
        let task = self.found[position].task.id.clone();
        if !self.found[position].is_new && changed.insert(task.clone()) {
            self.report.unchanged = self.report.unchanged.saturating_sub(1);
            self.report.changed.push(task.clone());
        }
        self.report.skipped.push(PreservedField { task, field: "status".to_owned(), why });
        Ok(false)
    }

    /// Returns whether the status still is the last one of the source, or is only derived from other tasks.
    pub(super) fn is_state_as_said(
        draft: &Draft<'_>,
        key: Key,
        here: Option<&Value>,
        before: &Value,
    ) -> Decided<bool> {
        let record = draft.task(key)?;
        let status = record.body.state.status();
        // No run here executes work of the other program: such a task was imported as `todo`.
        let was_running = before == "in_progress" && record.body.attempt == 0 && status == Status::Todo;
        let is_derived =
            draft.node(key)?.work == Work::Automatic && matches!(status, Status::Todo | Status::Done);
        Ok(here == Some(before) || was_running || is_derived)
    }

    /// Sets the status of every task from the source, subtasks before their parents.
    pub(super) fn set_states(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        for position in self.positions(true) {
            if self.found[position].state.is_none() {
                self.found[position].state = Some(self.parts(position)?.record.body.state.clone());
            }
        }
        // A parent can only become done after its subtasks, so these come first.
        for position in self.lowest_first(draft)? {
            let Some(state) = self.found[position].state.take() else { continue };
            let parts = self.parts(position)?;
            let key = self.key(position);
            let calls = self.calls_to_set(draft, position, &parts)?;
            let state = self.fitting(draft, position, state, calls.as_deref())?;
            let is_derived = draft.node(key)?.work == Work::Automatic;
            if state.status() != self.found[position].task.status && !is_derived {
                self.found[position].adapted = Some(state.status());
            }
            let body = self.body(draft, position, &parts, state)?;
            self.set_state(draft, key, body, calls)?;
            if self.found[position].is_new {
                let (created_at, updated_at) = (parts.record.created_at, parts.record.updated_at);
                draft.update_task(key, |record| {
                    record.created_at = created_at;
                    record.updated_at = updated_at;
                })?;
            }
        }
        Ok(())
    }

    fn set_state(
        &self,
        draft: &mut Draft<'_>,
        key: Key,
        body: TaskBody,
        calls: Option<Vec<CallRecord>>,
    ) -> Decided<()> {
        let before = draft.task(key)?.body.state.clone();
        let (from, to) = (before.status(), body.state.status());
        let event = EventKind::Status {
            from,
            to,
            cause: Cause::Import,
            reason: body.state.blocked_reason().cloned().map(Box::new),
            text: Some(format!("imported from {}", self.import.source)),
            attempt: body.attempt,
            lease_until: None,
        };
        let is_news = before != body.state;
        draft.restore_task(key, None, body, calls)?;
        if is_news { draft.emit(Some(key), event) } else { Ok(()) }
    }

    /// Returns the positions of the tasks, each before its parent.
    fn lowest_first(&self, draft: &Draft<'_>) -> Decided<Vec<usize>> {
        let positions: BTreeMap<Key, usize> = self
            .found
            .iter()
            .enumerate()
            .filter_map(|(position, found)| Some((found.key?, position)))
            .collect();
        let (mut order, mut above) = (Vec::with_capacity(self.found.len()), Vec::new());
        for key in positions.keys() {
            let parent = draft.node(*key)?.parent;
            if parent.is_none_or(|parent| !positions.contains_key(&parent)) {
                above.push(*key);
            }
        }
        while let Some(key) = above.pop() {
            if let Some(position) = positions.get(&key) {
                order.push(*position);
                above.extend(draft.subtasks(key)?);
            }
        }
        order.reverse();
        Ok(order)
    }

    /// Returns the calls of a new task with their progress. Approvals and due times are not imported.
    fn calls_to_set(
        &self,
        draft: &mut Draft<'_>,
        position: usize,
        parts: &TaskParts,
    ) -> Decided<Option<Vec<CallRecord>>> {
        if !self.found[position].is_new || parts.calls.is_empty() {
            return Ok(None);
        }
        let mut calls = draft.calls(self.key(position))?.clone();
        for (call, there) in calls.iter_mut().zip(&parts.calls) {
            call.body = there.body.clone();
            call.body.approval = None;
            call.body.asked = None;
            call.body.due = None;
            call.body.emitted.clear();
            if call.body.status == CallStatus::Running {
                call.body.status = CallStatus::Interrupted;
            }
        }
        Ok(Some(calls))
    }

    /// Adapts a status to this store: derived statuses are computed again, and no run executes work of the other
    /// program.
    fn fitting(
        &mut self,
        draft: &mut Draft<'_>,
        position: usize,
        state: TaskStatus,
        calls: Option<&[CallRecord]>,
    ) -> Decided<TaskStatus> {
        let key = self.key(position);
        let interrupted =
            calls.into_iter().flatten().find(|call| call.body.status == CallStatus::Interrupted);
        let interrupted = interrupted.map(|call| BlockedReason::Interrupted { call: call.id.clone() });
        let work = draft.node(key)?.work;
        Ok(match (state, interrupted) {
            (TaskStatus::InProgress { .. } | TaskStatus::Blocked { .. }, Some(reason)) => {
                TaskStatus::blocked(reason)
            }
            (TaskStatus::Blocked { reason }, None) if matches!(*reason, BlockedReason::Manual { .. }) => {
                TaskStatus::Blocked { reason }
            }
            (TaskStatus::InProgress { claim }, None) if work == Work::Manual => {
                let actor = if claim.actor.is_empty() { draft.context.actor.clone() } else { claim.actor };
                TaskStatus::InProgress {
                    claim: Claim {
                        run: None,
                        actor,
                        kind: ActorKind::Unknown,
                        lease_until: None,
                        lease: None,
                    },
                }
            }
            (TaskStatus::InProgress { .. } | TaskStatus::Blocked { .. }, None) => TaskStatus::Todo,
            (TaskStatus::Done, _) if has_open_subtask(draft, key)? => {
                let why = "`done` in the source; in the store it becomes `done` when all its subtasks are";
                self.keep_back(position, "status", why);
                TaskStatus::Todo
            }
            (state, _) => state,
        })
    }

    fn body(
        &self,
        draft: &Draft<'_>,
        position: usize,
        parts: &TaskParts,
        state: TaskStatus,
    ) -> Decided<TaskBody> {
        let record = draft.task(self.key(position))?;
        let there = &parts.record.body;
        let (ended, begun) = (state.status().is_finished(), state.status() == Status::InProgress);
        let at = parts.record.updated_at;
        let finished_at = ended.then(|| there.finished_at.unwrap_or(at));
        let started_at = there.started_at.or(begun.then_some(at)).or(record.body.started_at);
        let mut body = record.body.into_inner();
        body.result = there.result.clone().or(body.result);
        let mut origins = body.origins.as_deref().cloned().unwrap_or_default();
        origins.end = draft.writer.noted().filter(|_| ended);
        body.origins = (origins != ValueOrigins::default()).then(|| Box::new(origins));
        if self.found[position].is_new {
            body.notes.clone_from(&there.notes);
        }
        Ok(TaskBody { state, started_at, finished_at, ..body })
    }
}

fn has_open_subtask(draft: &Draft<'_>, key: Key) -> Decided<bool> {
    for subtask in draft.subtasks(key)? {
        if matches!(draft.node(subtask)?.status_kind.outcome_above(), Outcome::Open | Outcome::Failed) {
            return Ok(true);
        }
    }
    Ok(false)
}
