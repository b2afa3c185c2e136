//! Commands of agents and people: report, skip, block and cancel.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::command::refusal::Refusal;
use crate::rules::draft::{Decided, Draft};
use crate::task::ActorKind;
use crate::task::record::{CallError, StatusKind, TaskRecord, Work};
use crate::task::status::{BlockedReason, CallStatus, Cause, FailureClass, TaskStatus};
use crate::task::trust::UntrustedValue;
use crate::value::{CallId, Key};

/// End of a task as reported by an agent or a person.
pub(super) struct End<'a> {
    pub(super) good: bool,
    pub(super) result: &'a Option<Value>,
    pub(super) note: &'a Option<String>,
    pub(super) attempt: Option<u32>,
}

impl End<'_> {
    fn command(&self) -> &'static str {
        if self.good { "done" } else { "fail" }
    }

    fn state(&self) -> TaskStatus {
        if self.good {
            return TaskStatus::Done;
        }
        TaskStatus::Failed { error: self.error_text(), class: Some(FailureClass::Reported) }
    }

    fn error_text(&self) -> String {
        self.note.clone().unwrap_or_else(|| "reported as failed".to_owned())
    }
}

impl Draft<'_> {
    pub(super) fn refuse_unless_manual(
        &mut self,
        key: Key,
        record: &TaskRecord,
        by: &'static str,
    ) -> Decided<()> {
        let what = match self.node(key)?.work {
            Work::Manual => return Ok(()),
            Work::Calls => "has tool calls",
            Work::Automatic if record.spec.milestone => "is a milestone",
            Work::Automatic => "ends with its subtasks",
        };
        Err(Refusal::NotManual { id: record.id.clone(), what, by, ends: Vec::new() }.into())
    }

    /// Refuses to finish or reassign a task that is assigned to `person`, unless the caller is a person.
    pub(super) fn refuse_for_person(&self, key: Key, by: &'static str) -> Decided<()> {
        let record = self.look_at(key)?;
        if self.is_for_other_kind(key, &record)? {
            return Err(Refusal::PersonOnly { id: record.id.clone(), by }.into());
        }
        Ok(())
    }

    /// Returns whether a manual task is assigned to `person` and the caller is not a person.
    pub(crate) fn is_for_other_kind(&self, key: Key, record: &TaskRecord) -> Decided<bool> {
        let is_held_back = record.spec.is_for_person() && self.context.kind != ActorKind::Person;
        Ok(is_held_back && self.node(key)?.work == Work::Manual)
    }

    /// Like [`refuse_for_person`](Self::refuse_for_person), for a task and all its unfinished descendants.
    fn refuse_tree_for_person(&self, key: Key, by: &'static str) -> Decided<()> {
        for key in [vec![key], self.subtree(key)?].concat() {
            if !self.task(key)?.body.state.status().is_finished() {
                self.refuse_for_person(key, by)?;
            }
        }
        Ok(())
    }

    pub(super) fn end_by_hand(&mut self, ids: &[String], end: &End<'_>) -> Decided<()> {
        super::fields::check_depth("result", end.result)?;
        for key in self.resolve_all(ids)? {
            let record = self.task(key)?;
            self.refuse_for_person(key, end.command())?;
            if let Some(text) = end.note {
                self.add_note(key, text)?;
            }
            if let TaskStatus::Blocked { reason } = &record.body.state
                && let BlockedReason::Interrupted { call } = &**reason
            {
                self.check_attempt(key, &record, end.attempt)?;
                self.resolve_interrupted(key, call.as_str(), end)?;
            } else if let TaskStatus::InProgress { claim } = &record.body.state {
                if claim.is_of_store() {
                    return Err(self.held_by_other(key, &record, claim, end.attempt)?.into());
                }
                self.check_holder(key, &record, claim, end.attempt)?;
                self.check_attempt(key, &record, end.attempt)?;
                self.end_manual(key, end, Cause::Report)?;
            } else {
                self.end_unclaimed(key, &record, end)?;
            }
            // The next named task may become ready only by the end of this one.
            self.settle()?;
            self.answer.tasks.push(record.id);
        }
        Ok(())
    }

    /// Claims and finishes a task in one commit. Also accepts the late report of a holder whose task was released and
    /// not claimed since.
    fn end_unclaimed(&mut self, key: Key, record: &TaskRecord, end: &End<'_>) -> Decided<()> {
        self.check_attempt(key, record, end.attempt)?;
        if record.body.state == TaskStatus::Todo {
            self.refuse_unless_manual(key, record, end.command())?;
            self.check_past_attempt(key, record, end.attempt)?;
            // The lease has no length, because the task is finished in the same commit.
            self.take(key, record, Duration::ZERO, end.command())?;
            return self.end_manual(key, end, Cause::Report);
        }
        let refusal = self.transition_refusal(key, record, end.state().status(), end.command())?;
        Err(refusal.with_since(self.since(key, end.attempt)?).into())
    }

    fn end_manual(&mut self, key: Key, end: &End<'_>, cause: Cause) -> Decided<()> {
        self.update_task(key, |record| record.body.result.clone_from(end.result))?;
        self.set_state(key, end.state(), cause, end.note.clone())
    }

    /// Settles an interrupted call as reported by a person or an agent that has checked its outcome.
    fn resolve_interrupted(&mut self, key: Key, call: &str, end: &End<'_>) -> Decided<()> {
        let now = self.now();
        let reported = self.writer.noted().map(|origin| Box::new(vec![UntrustedValue::reported(origin)]));
        let position = self.calls(key)?.iter().position(|other| other.id.as_str() == call);
        if let Some(position) = position {
            self.update_call(key, position, |call| {
                call.body.finished_at = Some(now);
                call.body.result.clone_from(end.result);
                call.body.inserted.clone_from(&reported);
                call.body.status = if end.good { CallStatus::Succeeded } else { CallStatus::Failed };
                let error = || CallError::new("reported", end.error_text());
                call.body.error = (!end.good).then(|| Box::new(error()));
            })?;
        }
        let cause = if end.good { Cause::Done } else { Cause::Fail };
        let to = if end.good { self.after_interrupted(key)? } else { end.state() };
        self.set_state(key, to, cause, end.note.clone())
    }

    /// Returns the state of a task whose interrupted call succeeded. Parallel calls may have failed or been
    /// interrupted.
    fn after_interrupted(&mut self, key: Key) -> Decided<TaskStatus> {
        let spec = self.task(key)?.spec;
        let goes_on = spec.repeat.is_some() || spec.approval_after().is_some();
        let calls = self.calls(key)?;
        let find = |status| calls.iter().find(|call| call.body.status == status);
        Ok(match (find(CallStatus::Interrupted), find(CallStatus::Failed)) {
            (Some(call), _) => TaskStatus::blocked(BlockedReason::Interrupted { call: call.id.clone() }),
            (None, Some(call)) => TaskStatus::Failed { error: super::step::failure_text(call), class: None },
            // Only a run can evaluate whether the loop continues, and asks about the result.
            (None, None) if goes_on => TaskStatus::Todo,
            (None, None) if calls.iter().all(|call| call.body.status.is_settled()) => TaskStatus::Done,
            (None, None) => TaskStatus::Todo,
        })
    }

    pub(super) fn skip(&mut self, ids: &[String], reason: Option<&String>) -> Decided<()> {
        let keys = self.resolve_all(ids)?;
        let named: BTreeSet<Key> = keys.iter().copied().collect();
        for key in keys {
            self.refuse_tree_for_person(key, "skip")?;
            if !self.is_below_one_of(key, &named)? {
                self.skip_tree(key, Cause::Skip, reason)?;
            }
            self.answer.tasks.push(self.id(key)?);
        }
        Ok(())
    }

    /// Returns whether an ancestor of the task is named as well, so that the command covers the task already.
    fn is_below_one_of(&self, key: Key, named: &BTreeSet<Key>) -> Decided<bool> {
        let mut above = self.node(key)?.parent.filter(|_| named.len() > 1);
        while let Some(key) = above {
            if named.contains(&key) {
                return Ok(true);
            }
            above = self.node(key)?.parent;
        }
        Ok(false)
    }

    /// Skips a task and its descendants that are not done, cancelled or skipped.
    pub(crate) fn skip_tree(&mut self, key: Key, cause: Cause, reason: Option<&String>) -> Decided<()> {
        let state = TaskStatus::Skipped { reason: reason.cloned() };
        self.set_state(key, state.clone(), cause, reason.cloned())?;
        for below in self.subtree(key)? {
            match self.free(below)? {
                // A consequence of a gate must not be refused: that would discard the end of another task. The running
                // task continues.
                StatusKind::InProgress if cause == Cause::Gate => {}
                StatusKind::InProgress => {
                    return Err(Refusal::InProgress { tasks: vec![self.id(below)?] }.into());
                }
                StatusKind::Done | StatusKind::Cancelled | StatusKind::Skipped => {}
                StatusKind::Todo
                | StatusKind::BlockedDependency
                | StatusKind::BlockedWaiting
                | StatusKind::BlockedOther
                | StatusKind::Failed => {
                    self.set_state(below, state.clone(), Cause::Skip, reason.cloned())?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn cancel(&mut self, ids: &[String], reason: Option<&String>) -> Decided<()> {
        let keys = self.resolve_all(ids)?;
        let named: BTreeSet<Key> = keys.iter().copied().collect();
        for key in keys {
            self.refuse_tree_for_person(key, "cancel")?;
            if !self.is_below_one_of(key, &named)? {
                self.cancel_tree(key, reason)?;
            }
            self.answer.tasks.push(self.id(key)?);
        }
        Ok(())
    }

    /// Cancels a task and its unfinished descendants. Refused if a person holds one of them, unless the caller is a
    /// person.
    pub(super) fn cancel_tree(&mut self, key: Key, reason: Option<&String>) -> Decided<()> {
        self.refuse_taking(key)?;
        for below in self.subtree(key)? {
            self.refuse_taking(below)?;
        }
        self.cancel_whole_tree(key, reason)
    }

    /// Cancels a task and its unfinished descendants regardless of their holders, for consequences that cannot be
    /// refused.
    pub(super) fn cancel_whole_tree(&mut self, key: Key, reason: Option<&String>) -> Decided<()> {
        self.cancel_one(key, reason)?;
        for below in self.subtree(key)? {
            match self.node(below)?.status_kind {
                StatusKind::Done | StatusKind::Cancelled | StatusKind::Skipped => {}
                StatusKind::Todo
                | StatusKind::InProgress
                | StatusKind::BlockedDependency
                | StatusKind::BlockedWaiting
                | StatusKind::BlockedOther
                | StatusKind::Failed => self.cancel_one(below, reason)?,
            }
        }
        Ok(())
    }

    fn cancel_one(&mut self, key: Key, reason: Option<&String>) -> Decided<()> {
        let (before, state) = (self.task(key)?, TaskStatus::Cancelled { reason: reason.cloned() });
        self.set_state(key, state, Cause::Cancel, reason.cloned())?;
        let calls = self.stop_running_calls(key, CallStatus::Cancelled)?;
        self.note_ending(before, calls)
    }

    /// Marks running calls as ended and returns them.
    fn stop_running_calls(&mut self, key: Key, status: CallStatus) -> Decided<BTreeSet<CallId>> {
        let (now, mut stopped) = (self.now(), BTreeSet::new());
        for position in 0..self.calls(key)?.len() {
            if self.calls(key)?[position].body.status == CallStatus::Running {
                let call = self.update_call(key, position, |call| {
                    call.body.status = status;
                    call.body.finished_at = Some(now);
                })?;
                stopped.insert(call.id);
            }
        }
        Ok(stopped)
    }

    pub(super) fn block(&mut self, ids: &[String], text: &str) -> Decided<()> {
        for key in self.resolve_all(ids)? {
            let reason = BlockedReason::Manual { text: text.to_owned() };
            self.set_state(key, TaskStatus::blocked(reason), Cause::Block, None)?;
            self.answer.tasks.push(self.id(key)?);
        }
        Ok(())
    }

    pub(super) fn unblock_by_hand(&mut self, ids: &[String]) -> Decided<()> {
        for key in self.resolve_all(ids)? {
            self.set_state(key, TaskStatus::Todo, Cause::Unblock, None)?;
            self.clear_unfinished_calls(key)?;
            self.answer.tasks.push(self.id(key)?);
        }
        Ok(())
    }
}
