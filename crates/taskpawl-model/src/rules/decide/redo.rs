//! What an apply starts over before it changes tasks, and what it keeps although its definition changed.

use std::collections::BTreeSet;

use super::again::How;
use super::applied::{Difference, applied};
use super::apply::{Work, is_over};
use super::follow::Standing;
use crate::command::refusal::{Conflict, Refusal, Remedy};
use crate::command::{KeptStatus, OnChanged};
use crate::rules::draft::{Decided, Draft};
use crate::task::record::{CallRecord, StatusKind};
use crate::task::spec::CallSpec;
use crate::task::status::CallStatus;
use crate::value::{CallId, Key, Shared};

impl Work<'_> {
    /// Starts over what has to be before tasks change, because a task that was started over may change freely: with
    /// `redo` what changed and cannot take its new work otherwise, and the clean-ups that ran because changed tasks
    /// failed. With `retry_failed` unchanged failures start again.
    pub(super) fn start_over(
        &mut self,
        draft: &mut Draft<'_>,
        differences: &[Difference<'_>],
    ) -> Decided<()> {
        let changed = differences.iter().filter(|difference| difference.work().is_some());
        if self.apply.on_changed == OnChanged::Redo {
            let mut to_redo = Vec::new();
            for difference in changed.clone() {
                match draft.standing(difference.key)? {
                    Standing::Fixed => to_redo.push(difference.key),
                    Standing::GoesOn | Standing::Keeps if draft.would_repeat(difference)? => {
                        // Only a failed task has to become `todo` again. A task that a person stopped loses its
                        // results, and stays stopped.
                        if draft.node(difference.key)?.status_kind == StatusKind::Failed {
                            to_redo.push(difference.key);
                        } else {
                            draft.clear_all(difference.key)?;
                        }
                    }
                    Standing::GoesOn | Standing::Keeps | Standing::Unstarted | Standing::Interrupted => {}
                }
            }
            self.redo_over(draft, to_redo)?;
        }
        let mut failed = Vec::new();
        for difference in changed {
            if draft.node(difference.key)?.status_kind == StatusKind::Failed {
                failed.push(difference.key);
            }
            if draft.standing(difference.key)? == Standing::GoesOn {
                failed.extend(draft.failed_items(difference.key)?);
            }
        }
        let clean_ups = draft.clean_ups_behind(&failed)?;
        draft.rearm(&clean_ups)?;
        self.report.reopened += clean_ups.len() as u64;
        if self.apply.retry_failed {
            self.retry_unchanged(draft, &failed.into_iter().collect())?;
        }
        Ok(())
    }

    /// Takes new subtasks of tasks that are over: with `redo` these start again, with all that ran after them. Their other subtasks keep
    /// their results.
    pub(super) fn open_parents(
        &mut self,
        draft: &mut Draft<'_>,
        differences: &[Difference<'_>],
    ) -> Decided<()> {
        let has_moved = |difference: &&Difference<'_>| {
            difference.before.as_ref().is_none_or(|before| before.parent != difference.after.parent)
        };
        let moved: BTreeSet<usize> =
            differences.iter().filter(has_moved).map(|difference| difference.position).collect();
        let mut over = BTreeSet::new();
        for (position, task) in self.apply.plan.tasks.iter().enumerate() {
            let Some(parent) = task.parent.map(|parent| self.key(parent)) else { continue };
            let key = self.key(position);
            if draft.is_new(parent) || !(draft.is_new(key) || moved.contains(&position)) {
                continue;
            }
            let record = draft.task(parent)?;
            if !is_over(&record) {
                continue;
            }
            if self.apply.on_changed == OnChanged::Redo {
                over.insert(parent);
            } else {
                let (status, id) = (record.body.state.status(), draft.id(key)?);
                let why = format!("is `{status}` and would get the subtask `{id}`");
                self.conflicts.push(Conflict::new(&record.id, why, Remedy::Redo));
            }
        }
        let over: Vec<Key> = over.into_iter().collect();
        self.report.reopened += draft.start_over(&over, How::Retry, true)?.len() as u64;
        for parent in over {
            // Its own calls run after all of its subtasks.
            draft.clear_all(parent)?;
        }
        Ok(())
    }

    /// With `redo`: starts the items of a list over whose work or element changed. Their list has not ended, so that it is not among
    /// the tasks that start over themselves.
    pub(super) fn redo_items(
        &mut self,
        draft: &mut Draft<'_>,
        key: Key,
        calls: &[CallRecord],
    ) -> Decided<()> {
        if self.apply.on_changed != OnChanged::Redo || draft.task(key)?.spec.for_each.is_none() {
            return Ok(());
        }
        let items = draft.items_to_begin_anew(key, calls)?;
        self.redo_over(draft, items)
    }

    /// Reopens the tasks among these that have ended, with everything that ran after them.
    pub(super) fn redo_over(
        &mut self,
        draft: &mut Draft<'_>,
        keys: impl IntoIterator<Item = Key>,
    ) -> Decided<()> {
        let mut over = Vec::new();
        for key in keys {
            if draft.task(key)?.body.state.status().is_finished() {
                over.push(key);
            }
        }
        self.report.reopened += draft.start_over(&over, How::Reopen, true)?.len() as u64;
        Ok(())
    }

    /// Retries the failed tasks of the plan whose definition did not change, with the items of lists.
    fn retry_unchanged(&mut self, draft: &mut Draft<'_>, changed: &BTreeSet<Key>) -> Decided<()> {
        let (mut failed, kept) = (Vec::new(), self.keys.iter().copied().flatten().collect::<BTreeSet<Key>>());
        for key in &self.present {
            if changed.contains(key) || draft.node(*key)?.status_kind != StatusKind::Failed {
                continue;
            }
            // A task that is gone from the file did not stay as it was. Items never stood in it.
            if kept.contains(key) || applied(draft, *key)?.is_none() {
                failed.push(*key);
            }
        }
        self.report.retried = draft.ids_of(&failed)?;
        draft.start_over(&failed, How::Retry, false)?;
        Ok(())
    }

    /// Lists a task that took its new definition, but does not continue by itself.
    pub(super) fn list_waiting(&mut self, draft: &Draft<'_>, key: Key, standing: Standing) -> Decided<()> {
        if matches!(standing, Standing::Keeps | Standing::Interrupted) {
            let record = draft.task(key)?;
            let reason = record.body.state.blocked_reason().cloned();
            self.report.waiting.push(KeptStatus {
                id: record.id.clone(),
                status: record.body.state.status(),
                reason,
            });
        }
        Ok(())
    }

    pub(super) fn reopen_all(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        let mut running = Vec::new();
        let mut keys: Vec<Key> = self.keys.iter().copied().flatten().collect();
        for key in keys.clone() {
            keys.extend(draft.items(key)?.into_values());
        }
        // Returned tasks are withdrawn with their calls, and come back when these return them again.
        for key in draft.emitted_from(&keys)? {
            if draft.free(key)? == StatusKind::InProgress {
                running.push(draft.id(key)?);
            }
        }
        for key in keys {
            match draft.free(key)? {
                StatusKind::InProgress => running.push(draft.id(key)?),
                StatusKind::Done | StatusKind::Failed | StatusKind::Cancelled | StatusKind::Skipped => {
                    draft.start_one_again(key, How::Reopen)?;
                    self.report.reopened += 1;
                }
                // The task was released halfway, or retried. Nothing of that attempt is kept.
                StatusKind::Todo | StatusKind::BlockedDependency | StatusKind::BlockedWaiting
                    if draft.task(key)?.body.started_at.is_some() =>
                {
                    draft.clear_all(key)?;
                    self.report.reopened += 1;
                }
                StatusKind::Todo
                | StatusKind::BlockedDependency
                | StatusKind::BlockedWaiting
                | StatusKind::BlockedOther => {}
            }
        }
        if running.is_empty() { Ok(()) } else { Err(Refusal::InProgress { tasks: running }.into()) }
    }
}

impl Draft<'_> {
    /// Returns whether the changed work would run calls again that succeeded and must not run twice.
    fn would_repeat(&mut self, difference: &Difference<'_>) -> Decided<bool> {
        let calls = self.continued_calls(difference.key, difference.calls())?;
        self.repeats(difference.key, &calls, difference.is_whole())
    }

    /// Replaces the calls of a finished task and keeps what they did: its results are those of the work that ran. A call
    /// that is new in the file counts as skipped until the task is reopened.
    pub(super) fn keep_ended_calls(
        &mut self,
        key: Key,
        given: Option<&Vec<(Option<CallId>, Shared<CallSpec>)>>,
    ) -> Decided<()> {
        let Some(given) = given else { return Ok(()) };
        let old = self.known_calls(key)?;
        let mut calls = self.continued_calls(key, Some(given))?;
        for call in &mut calls {
            match old.iter().find(|old| old.id == call.id) {
                Some(old) => call.body = old.body.clone(),
                None => call.body.status = CallStatus::Skipped,
            }
        }
        self.replace_calls(key, calls)
    }
}
