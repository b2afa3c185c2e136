//! Changing the status of a task.

use super::{Decided, Draft};
use crate::command::refusal::{ChangesSince, Refusal};
use crate::task::event::EventKind;
use crate::task::record::{StatusKind, TaskRecord};
use crate::task::status::{Cause, Status, TaskStatus, allowed_by_hand, check_transition};
use crate::value::Timestamp;
use crate::value::{Key, Period, TaskId};

impl Draft<'_> {
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
            enter(record, to, cause, now);
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
        if *to != TaskStatus::Done || !matches!(cause, Cause::Report | Cause::Done | Cause::Approve) {
            return Ok(None);
        }
        let started = record.body.started_at.unwrap_or(self.now());
        let whole = (self.now() - started).to_std().ok();
        let mode = record.spec.mode();
        Ok(crate::view::durations::running_time(self.calls(key)?, mode).or(whole).map(Period))
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
        if record.body.attempt == 0 && *state == TaskStatus::Todo {
            allowed.retain(|verb| !matches!(*verb, "retry" | "reopen"));
        }
        if let TaskStatus::InProgress { claim } = state {
            // The caller must not be advised to do something to another holder's task that would be refused.
            let actor = self.context.as_actor();
            let (ends, takes) = (claim.may_be_ended_by(actor), claim.may_be_taken_by(actor, self.now()));
            allowed.retain(|verb| match *verb {
                "release" => ends || claim.is_of_store(),
                "done" | "fail" => ends && !claim.is_of_store(),
                "cancel" => takes,
                _ => true,
            });
        }
        if self.is_for_other_kind(key, record)? {
            allowed.retain(|verb| !matches!(*verb, "claim" | "done" | "fail" | "skip" | "cancel"));
        }
        let reason = state
            .blocked_reason()
            .map(|reason| crate::view::read::full_reason(self, key, reason))
            .transpose()?;
        let (id, from, since) = (record.id.clone(), state.status(), ChangesSince::default());
        Ok(Refusal::Transition { id, from, reason, to, by, allowed, since })
    }

    /// Returns at most five unfinished and at most five failed tasks that keep a task from being ready.
    pub(crate) fn obstacles(&self, key: Key) -> Decided<(Vec<TaskId>, Vec<TaskId>)> {
        let open = crate::view::read::waiting_for(self, key)?;
        let failed = crate::view::read::failed_before(self, key)?;
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

fn enter(record: &mut TaskRecord, to: TaskStatus, cause: Cause, now: Timestamp) {
    let body = &mut record.body;
    body.progress.waiting_for = None;
    match &to {
        // The time of a wait does not count against the deadline, which begins again with the next claim.
        TaskStatus::InProgress { .. } if cause == Cause::Wait => body.progress.deadline = None,
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
