//! Applies changed work to a task that has started, which continues at the first difference.

use std::collections::BTreeSet;

use crate::command::refusal::{Conflict, Remedy};
use crate::rules::draft::{Decided, Draft};
use crate::task::record::{CallBody, CallRecord, StatusKind, TaskRecord};
use crate::task::spec::{CallSpec, Mode, NewCall};
use crate::task::status::{BlockedReason, CallStatus, Cause, TaskStatus};
use crate::value::{CallId, Key, Shared, TaskId};

use super::again::How;

/// Fields that affect every call of a task. If one of them changes, all calls run again.
pub(super) const WHOLE: &[&str] = &["forEach", "when", "mode", "repeat", "context"];

/// The reason of a change of status that follows from changed work.
const CHANGED: &str = "its definition changed";

/// Effect of changed work on a task, depending on its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The task has not started: it follows the file.
    Unstarted,
    /// The task takes the work and continues with it.
    GoesOn,
    /// The task takes the work and keeps its status, which a command set.
    Keeps,
    /// The task takes the work and stays blocked until its interrupted call is settled.
    Interrupted,
    /// The work cannot change any more.
    Fixed,
}

/// Calls of a task after its work changed, and the parts of the previous calls that are lost.
struct Continuation {
    calls: Vec<CallRecord>,
    /// Succeeded calls whose results are discarded although they, or equal calls, run again.
    repeated: Vec<CallRecord>,
    /// An interrupted call that has no counterpart in the new work.
    lost: Option<CallId>,
}

impl Draft<'_> {
    /// Returns how a task may take changed work. Expired claims are released first.
    pub(super) fn standing(&mut self, key: Key) -> Decided<Standing> {
        let status_kind = self.free(key)?;
        let record = self.task(key)?;
        if status_kind == StatusKind::Skipped {
            return Ok(Standing::Fixed);
        }
        // Its new calls may need another tool. No run would look for the one of the old calls, so that the block would stay.
        let lacks_tool =
            matches!(record.body.state.blocked_reason(), Some(BlockedReason::MissingTool { .. }));
        if !lacks_tool && !self.is_started(key, &record)? {
            return Ok(Standing::Unstarted);
        }
        Ok(match status_kind {
            // It waits for a time or a signal: no run and no actor works on it.
            StatusKind::InProgress if is_of_store(&record) => Standing::GoesOn,
            StatusKind::InProgress | StatusKind::Done | StatusKind::Skipped => Standing::Fixed,
            StatusKind::Cancelled if self.ending_in(key)?.is_some() => Standing::Fixed,
            StatusKind::Cancelled => Standing::Keeps,
            StatusKind::BlockedOther => match record.body.state.blocked_reason() {
                Some(BlockedReason::Interrupted { .. }) => Standing::Interrupted,
                Some(BlockedReason::Manual { .. }) => Standing::Keeps,
                _ => Standing::GoesOn,
            },
            StatusKind::Todo
            | StatusKind::BlockedDependency
            | StatusKind::BlockedWaiting
            | StatusKind::Failed => Standing::GoesOn,
        })
    }

    /// Returns whether a task was started. Items do the work of a list, so a started item counts.
    pub(super) fn is_started(&self, key: Key, record: &TaskRecord) -> Decided<bool> {
        if record.spec.for_each.is_some() {
            for item in self.items(key)?.into_values() {
                if self.is_started(item, &self.task(item)?)? {
                    return Ok(true);
                }
            }
        }
        let ran = matches!(
            self.node(key)?.status_kind,
            StatusKind::InProgress | StatusKind::Done | StatusKind::Failed
        );
        Ok(record.body.attempt > 0 && record.body.started_at.is_some() || ran)
    }

    /// Returns unstarted call records for the given calls, or for the existing ones. Their start counters are kept.
    pub(super) fn continued_calls(
        &mut self,
        key: Key,
        given: Option<&Vec<(Option<CallId>, Shared<CallSpec>)>>,
    ) -> Decided<Vec<CallRecord>> {
        let old = self.known_calls(key)?;
        let Some(given) = given else {
            return Ok(old.iter().map(|call| begun_before(call.clone(), call)).collect());
        };
        let new = given.iter().map(|(id, spec)| NewCall { id: id.clone(), spec: spec.clone() });
        let new = self.new_calls(&[], &new.collect::<Vec<_>>())?;
        let with_starts = |mut call: CallRecord| match old.iter().find(|old| old.id == call.id) {
            Some(old) => {
                // A model that repeats a call as it is has not written it.
                if call.origin.is_of_model() && old.spec.is_same_work(&call.spec) {
                    call.origin = old.origin;
                }
                begun_before(call, old)
            }
            None => call,
        };
        Ok(new.into_iter().map(with_starts).collect())
    }

    /// Replaces the calls of a started task, and lets it continue at the first call that changed or did not succeed.
    ///
    /// Returns a conflict if that is not possible; the draft must not be used then.
    pub(super) fn take_work(
        &mut self,
        key: Key,
        standing: Standing,
        calls: &[CallRecord],
        is_whole: bool,
    ) -> Decided<Result<(), Conflict>> {
        let record = self.task(key)?;
        let next = self.continuation(key, &record, calls, is_whole)?;
        if let Some(problem) = self.against(key, &record, standing, &next)? {
            return Ok(Err(problem));
        }
        let given_up = self.emitted_by_calls(key, &next.repeated)?;
        self.pending.withdrawals.extend(given_up);
        if is_whole {
            self.update_task(key, |record| {
                record.body.generation += 1;
                record.body.result = None;
                record.body.started_at = None;
                record.body.progress.round = 0;
            })?;
        }
        self.replace_calls(key, next.calls)?;
        self.go_on_with_work(key, standing)?;
        Ok(Ok(()))
    }

    /// Returns whether new work would run succeeded calls again that must not run twice.
    pub(super) fn repeats(&mut self, key: Key, calls: &[CallRecord], is_whole: bool) -> Decided<bool> {
        let record = self.task(key)?;
        let next = self.continuation(key, &record, calls, is_whole)?;
        let conflict = self.against(key, &record, Standing::GoesOn, &next)?;
        Ok(conflict.is_some_and(|conflict| conflict.remedy == Remedy::Redo))
    }

    /// Takes a waiting task from the store, because its work changes. Its wait goes on where it stays part of the work.
    pub(super) fn take_from_store(&mut self, key: Key) -> Decided<()> {
        if !is_of_store(&self.task(key)?) {
            return Ok(());
        }
        self.set_state(key, TaskStatus::Todo, Cause::Release, Some(CHANGED.to_owned()))
    }

    fn go_on_with_work(&mut self, key: Key, standing: Standing) -> Decided<()> {
        if standing != Standing::GoesOn {
            return Ok(());
        }
        // The list itself did not fail. Items that changed start from the beginning when it opens again.
        for item in self.failed_items(key)? {
            self.start_one_again(item, How::Retry)?;
        }
        let state = self.task(key)?.body.state.clone();
        let cause = match state.blocked_reason() {
            Some(BlockedReason::Approval { .. }) => Cause::Withdraw,
            Some(BlockedReason::MissingTool { .. }) => Cause::Gate,
            _ if matches!(state, TaskStatus::Failed { .. }) => return self.start_one_again(key, How::Retry),
            _ if matches!(state, TaskStatus::InProgress { .. }) => Cause::Release,
            _ => return self.forget_decision(key),
        };
        self.forget_decision(key)?;
        self.set_state(key, TaskStatus::Todo, cause, Some(CHANGED.to_owned()))
    }

    /// Returns the failed items of a list; none for other tasks.
    pub(super) fn failed_items(&self, key: Key) -> Decided<Vec<Key>> {
        let mut failed = Vec::new();
        if self.task(key)?.spec.for_each.is_some() {
            for item in self.items(key)?.into_values() {
                if self.node(item)?.status_kind == StatusKind::Failed {
                    failed.push(item);
                }
            }
        }
        Ok(failed)
    }

    fn continuation(
        &mut self,
        key: Key,
        record: &TaskRecord,
        new: &[CallRecord],
        is_whole: bool,
    ) -> Decided<Continuation> {
        let old = self.known_calls(key)?;
        // Calls start in the order of their parts, so that those which prepare a worktree are the first, although others precede them.
        let by_part = |calls: &[CallRecord]| {
            let mut calls: Vec<CallRecord> = calls.to_vec();
            calls.sort_by_key(|call| call.spec.part());
            calls
        };
        let (old_order, new_order) = (by_part(&old), by_part(new));
        // Sequential calls may build on the effects of earlier ones, so only an unchanged prefix is kept. Parallel
        // calls are independent.
        let is_kept = |old: &CallRecord, new: &CallRecord| {
            let has_begun = old.body.status.is_settled() || super::wait::is_waiting(old);
            !is_whole && has_begun && old.id == new.id && old.spec.is_same_work(&new.spec)
        };
        let kept: BTreeSet<CallId> = match record.spec.mode() {
            Mode::Sequential => {
                let pairs = old_order.iter().zip(&new_order).take_while(|(old, new)| is_kept(old, new));
                pairs.map(|(old, _)| old.id.clone()).collect()
            }
            Mode::Parallel => {
                let is_kept = |call: &&CallRecord| new.iter().any(|new| is_kept(call, new));
                old.iter().filter(is_kept).map(|call| call.id.clone()).collect()
            }
        };
        let repeated = old.iter().filter(|call| {
            call.body.status == CallStatus::Succeeded
                && !kept.contains(&call.id)
                && new.iter().any(|new| new.id == call.id || new.spec.is_same_work(&call.spec))
        });
        let repeated = repeated.cloned().collect();
        let interrupted = || old.iter().filter(|call| call.body.status == CallStatus::Interrupted);
        let keeps_place = |call: &CallRecord| {
            let before = new_order.iter().take_while(|new| new.id != call.id);
            let is_next =
                record.spec.mode() == Mode::Parallel || before.clone().all(|new| kept.contains(&new.id));
            !is_whole && is_next && before.count() < new.len()
        };
        let lost = interrupted().find(|call| !keeps_place(call)).map(|call| call.id.clone());
        let calls = new.iter().cloned().map(|call| match old.iter().find(|old| old.id == call.id) {
            Some(old) if kept.contains(&old.id) => old.clone(),
            Some(old) if old.body.status == CallStatus::Interrupted => {
                CallRecord { body: old.body.clone(), ..call }
            }
            _ => call,
        });
        Ok(Continuation { calls: calls.collect(), repeated, lost })
    }

    /// Returns a conflict if the new work would lose a result or repeat a call that must not run twice.
    fn against(
        &mut self,
        key: Key,
        record: &TaskRecord,
        standing: Standing,
        next: &Continuation,
    ) -> Decided<Option<Conflict>> {
        let id = &record.id;
        if let Some(call) = next.lost.as_ref().filter(|_| standing == Standing::Interrupted) {
            let why = format!("was interrupted in its call `{call}`, which the file changes");
            return Ok(Some(Conflict::new(id, why, Remedy::Settle)));
        }
        if let Some(call) = next.repeated.iter().find(|call| !self.is_repeatable(call, &next.calls)) {
            let conflict = done_twice(id, call);
            // Starting over would forget the interrupted call.
            let is_open = standing == Standing::Interrupted;
            return Ok(Some(if is_open {
                Conflict { remedy: Remedy::Settle, ..conflict }
            } else {
                conflict
            }));
        }
        for emitted in self.emitted_by_calls(key, &next.repeated)? {
            if matches!(self.free(emitted)?, StatusKind::InProgress | StatusKind::Done | StatusKind::Failed) {
                let emitted = self.id(emitted)?;
                let why = format!("would run again and has added `{emitted}`, which ran");
                return Ok(Some(Conflict::new(id, why, Remedy::Redo)));
            }
        }
        self.against_in_items(key, &next.calls)
    }

    /// Returns a conflict if an item would restart that still runs or whose calls must not run twice.
    fn against_in_items(&mut self, key: Key, calls: &[CallRecord]) -> Decided<Option<Conflict>> {
        if self.task(key)?.spec.for_each.is_none() {
            return Ok(None);
        }
        for item in self.items_to_begin_anew(key, calls)? {
            let id = self.id(item)?;
            let is_held = self.free(item)? == StatusKind::InProgress && !is_of_store(&self.task(item)?);
            if is_held || self.ending_in(item)?.is_some() {
                return Ok(Some(Conflict::new(&id, "is still running", Remedy::Wait)));
            }
            if self.is_interrupted(item)? {
                let why = "was interrupted in its call, which the file changes";
                return Ok(Some(Conflict::new(&id, why, Remedy::Settle)));
            }
            let before = self.known_calls(item)?;
            let mut succeeded = before.iter().filter(|call| call.body.status == CallStatus::Succeeded);
            if let Some(call) = succeeded.find(|call| !self.is_repeatable(call, calls)) {
                let why = format!(
                    "would run call `{}` of its item `{id}` again, which succeeded and is not idempotent",
                    call.id
                );
                return Ok(Some(Conflict::new(&self.id(key)?, why, Remedy::Redo)));
            }
        }
        Ok(None)
    }

    /// Returns whether a call may run twice, according to its author or else to its tool.
    fn is_repeatable(&self, call: &CallRecord, calls: &[CallRecord]) -> bool {
        let by_author = calls.iter().find(|new| new.id == call.id).unwrap_or(call).spec.idempotent;
        by_author.or(call.spec.idempotent).unwrap_or_else(|| {
            let args = call.body.args.as_ref().unwrap_or(&call.spec.args);
            let policy_hook = self.context.policy_hook.as_deref();
            policy_hook.is_some_and(|policy_hook| policy_hook.is_repeatable(&call.spec.tool_name, args))
        })
    }
}

pub(super) fn is_of_store(record: &TaskRecord) -> bool {
    matches!(&record.body.state, TaskStatus::InProgress { claim } if claim.is_of_store())
}

fn done_twice(id: &TaskId, call: &CallRecord) -> Conflict {
    let why = format!("would run its call `{}` again, which succeeded and is not idempotent", call.id);
    Conflict::new(id, why, Remedy::Redo)
}

/// Returns a call that starts over. It keeps its start counter, which tells late reports from current ones.
fn begun_before(call: CallRecord, old: &CallRecord) -> CallRecord {
    let has_succeeded = old.body.status == CallStatus::Succeeded;
    let emitted = if has_succeeded { Vec::new() } else { old.body.emitted.clone() };
    let body = CallBody { attempts: old.body.attempts, emitted, ..CallBody::default() };
    CallRecord { body: body.into(), ..call }
}
