//! `retry` and `reopen`: restart finished tasks.

use crate::view::ReadGraph;
use std::collections::{BTreeMap, BTreeSet};

use crate::command::refusal::Refusal;
use crate::rules::draft::{Decided, Draft};
use crate::task::record::{CallBody, CallRecord, StatusKind};
use crate::task::spec::CallPart;
use crate::task::status::{CallStatus, Cause, Status, TaskStatus};
use crate::value::Key;

/// Prefix of the reason recorded for a task that was skipped by its condition.
pub(super) const NOT_HELD: &str = "its condition does not hold";

/// Results that a restarted task keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Results of successful calls.
    Retry,
    /// Only its counters.
    Reopen,
}

impl Draft<'_> {
    pub(super) fn start_again(&mut self, ids: &[String], how: How, cascade: bool) -> Decided<()> {
        let keys = self.resolve_all(ids)?;
        for key in &keys {
            self.refuse_unfinished(*key, how)?;
        }
        for key in self.start_over(&keys, how, cascade)? {
            self.answer.tasks.push(self.id(key)?);
        }
        Ok(())
    }

    /// Starts tasks over with the subtasks that they cover, with the clean-ups that ran because they failed, and with
    /// `cascade` with everything that ran after those, and its own clean-ups. Returns the named tasks, then the ones behind them.
    pub(super) fn start_over(&mut self, keys: &[Key], how: How, cascade: bool) -> Decided<Vec<Key>> {
        let (mut starting, mut below) = (Vec::new(), BTreeMap::new());
        for key in keys {
            starting.push(*key);
            starting.extend(self.subtasks_to_start_again(*key, how, &mut below)?);
        }
        let clean_ups = self.clean_ups_behind(&starting)?;
        let mut after = self.collect_dependents(&starting, &clean_ups, how, cascade)?;
        after.extend(clean_ups);
        if cascade {
            self.add_clean_ups_of_dependents(&starting, &mut after)?;
        }
        let mut seen = BTreeSet::new();
        let named = keys.iter().copied().filter(|key| seen.insert(*key));
        let mut all: Vec<Key> = named.collect();
        all.extend(after.iter().copied().filter(|key| seen.insert(*key)));
        let mut seen = BTreeSet::new();
        let with_how = starting.into_iter().map(|key| (key, how));
        for (key, how) in with_how.chain(after.into_iter().map(|key| (key, How::Reopen))) {
            if seen.insert(key) {
                self.start_one_again(key, how)?;
            }
        }
        Ok(all)
    }

    /// Adds the clean-ups that ran because dependents failed, and everything that ran after those, to the tasks that
    /// start over.
    fn add_clean_ups_of_dependents(&mut self, starting: &[Key], after: &mut Vec<Key>) -> Decided<()> {
        let mut seen: BTreeSet<Key> = starting.iter().chain(&*after).copied().collect();
        let mut found = after.clone();
        while !found.is_empty() {
            let mut more = self.clean_ups_behind(&found)?;
            let behind = self.collect_dependents(&[], &more, How::Reopen, true)?;
            more.extend(behind);
            more.retain(|key| seen.insert(*key));
            after.extend(&more);
            found = more;
        }
        Ok(())
    }

    /// A task that was tried and is `todo` again may start over, too: otherwise it could neither take new arguments nor
    /// drop the results of its first calls.
    fn refuse_unfinished(&self, key: Key, how: How) -> Decided<()> {
        let record = self.task(key)?;
        let status = record.body.state.status();
        if status.is_finished() || status == Status::Todo && record.body.attempt > 0 {
            return Ok(());
        }
        Err(self.transition_refusal(key, &record, Status::Todo, how.cause().as_str())?.into())
    }

    /// Returns the tasks that ran because a restarted task had ended. Refuses if there are any without `cascade`; then
    /// what ran after a clean-up stays as it is.
    fn collect_dependents(
        &mut self,
        starting: &[Key],
        clean_ups: &[Key],
        how: How,
        cascade: bool,
    ) -> Decided<Vec<Key>> {
        let named: BTreeSet<Key> = starting.iter().copied().collect();
        let below = |below: bool| move |key: &Key| (*key, below);
        let mut queue: Vec<(Key, bool)> = starting.iter().map(below(false)).collect();
        let (mut seen, mut again, mut without_subtasks) = (named.clone(), Vec::new(), BTreeSet::new());
        seen.extend(clean_ups);
        if cascade {
            queue.extend(clean_ups.iter().map(below(true)));
        }
        while let Some((key, is_below)) = queue.pop() {
            // Tasks returned by calls are affected only if those calls start over: in dependents, by `reopen`, and in a
            // finished loop.
            if !named.contains(&key) || how == How::Reopen || self.is_loop_over(key)? {
                // A returned task is not collected: it restarts when its call returns it again.
                for other in self.emitted_by(key)? {
                    if self.ran_after((key, other), how, cascade, &mut seen)? {
                        queue.push((other, true));
                    }
                }
            }
            let parent = self.node(key)?.parent;
            for other in self.opened_by(key, is_below)? {
                // The other subtasks of a parent ran before it. They start over only if the parent depends on a task that does.
                let is_parent = parent == Some(other);
                if self.ran_after((key, other), how, cascade, &mut seen)? {
                    again.push(other);
                    queue.push((other, !is_parent));
                    if is_parent {
                        without_subtasks.insert(other);
                    }
                } else if !is_parent && without_subtasks.remove(&other) {
                    queue.push((other, true));
                }
            }
        }
        Ok(again)
    }

    /// Returns whether another unseen task ran because `key` had ended. Refuses if it did without `cascade`.
    fn ran_after(
        &mut self,
        (key, other): (Key, Key),
        how: How,
        cascade: bool,
        seen: &mut BTreeSet<Key>,
    ) -> Decided<bool> {
        let status_kind = self.free(other)?;
        let ran = matches!(status_kind, StatusKind::InProgress | StatusKind::Done | StatusKind::Failed);
        // Its condition may hold with the new results.
        let was_decided =
            cascade && status_kind == StatusKind::Skipped && self.is_skipped_by_condition(other)?;
        if !(ran || was_decided) || !seen.insert(other) {
            return Ok(false);
        }
        if !cascade {
            let dependents = vec![self.id(other)?];
            return Err(Refusal::DependentsRan { id: self.id(key)?, by: how.verb(), dependents }.into());
        }
        if status_kind == StatusKind::InProgress {
            return Err(Refusal::InProgress { tasks: vec![self.id(other)?] }.into());
        }
        Ok(true)
    }

    pub(super) fn is_skipped_by_condition(&self, key: Key) -> Decided<bool> {
        let state = self.task(key)?.body.state.clone();
        Ok(matches!(state, TaskStatus::Skipped { reason: Some(reason) } if reason.starts_with(NOT_HELD)))
    }

    /// Returns the tasks that may start when a task ends: dependents, the parent, and with `below` its subtasks.
    fn opened_by(&self, key: Key, below: bool) -> Decided<Vec<Key>> {
        let node = self.node(key)?;
        let mut opened = Vec::new();
        if matches!(node.status_kind, StatusKind::Done | StatusKind::Skipped) {
            opened.extend(self.dependents(key)?);
        }
        if matches!(node.status_kind, StatusKind::Done | StatusKind::Skipped | StatusKind::Cancelled) {
            opened.extend(node.parent);
        }
        if below {
            opened.extend(self.subtasks(key)?);
        }
        Ok(opened)
    }

    /// Returns the subtasks to restart. Skip and cancel cover subtasks, so a restart does, too; reopen covers all of
    /// them.
    ///
    /// `seen` has the tasks already visited, separately below skipped tasks and below others.
    fn subtasks_to_start_again(
        &mut self,
        key: Key,
        how: How,
        seen: &mut BTreeMap<bool, BTreeSet<Key>>,
    ) -> Decided<Vec<Key>> {
        let own = self.node(key)?.status_kind;
        let mut with = Vec::new();
        if how == How::Retry && !matches!(own, StatusKind::Cancelled | StatusKind::Skipped) {
            return Ok(with);
        }
        let seen = seen.entry(how == How::Retry && own == StatusKind::Skipped).or_default();
        for below in self.unseen_below(key, seen)? {
            let status_kind = self.free(below)?;
            let is_covered = status_kind == own && matches!(own, StatusKind::Cancelled | StatusKind::Skipped);
            let is_finished = matches!(
                status_kind,
                StatusKind::Done | StatusKind::Failed | StatusKind::Cancelled | StatusKind::Skipped
            );
            if status_kind == StatusKind::InProgress && how == How::Reopen {
                return Err(Refusal::InProgress { tasks: vec![self.id(below)?] }.into());
            }
            if is_covered || (how == How::Reopen && is_finished) {
                with.push(below);
            }
        }
        Ok(with)
    }

    /// Returns the descendants of a task that are not in `seen`, nearest first, and adds them to it.
    ///
    /// Descendants of a task in `seen` must be in it as well. Hence each task is read once, even if several ancestors
    /// are named.
    pub(super) fn unseen_below(&self, key: Key, seen: &mut BTreeSet<Key>) -> Decided<Vec<Key>> {
        let mut below = self.subtasks(key)?;
        below.retain(|task| seen.insert(*task));
        let mut next = 0;
        while let Some(key) = below.get(next).copied() {
            below.extend(self.subtasks(key)?.into_iter().filter(|task| seen.insert(*task)));
            next += 1;
        }
        Ok(below)
    }

    pub(super) fn start_one_again(&mut self, key: Key, how: How) -> Decided<()> {
        self.refuse_ending(key)?;
        match how {
            How::Retry => self.clear_to_retry(key)?,
            How::Reopen => self.clear_all(key)?,
        }
        self.close(key)?;
        self.set_state(key, TaskStatus::Todo, how.cause(), None)
    }

    /// A loop that used up its rounds restarts from the first round, because its last round cannot be continued.
    fn clear_to_retry(&mut self, key: Key) -> Decided<()> {
        let is_loop_over = self.is_loop_over(key)?;
        if is_loop_over {
            // The worktree stays as it is prepared.
            self.clear_calls(key, |call| call.spec.part() != CallPart::Setup)?;
        } else {
            self.clear_unfinished_calls(key)?;
            self.allow_rework_again(key)?;
        }
        if is_loop_over {
            self.update_task(key, |record| record.body.progress.round = 0)?;
        }
        self.forget_decision(key)
    }

    fn is_loop_over(&mut self, key: Key) -> Decided<bool> {
        Ok(self.task(key)?.spec.repeat.is_some()
            && self.calls(key)?.iter().all(|call| call.body.status.is_settled()))
    }

    /// Resets calls that did not succeed to pending.
    pub(super) fn clear_unfinished_calls(&mut self, key: Key) -> Decided<()> {
        for position in 0..self.calls(key)?.len() {
            let status = self.calls(key)?[position].body.status;
            if !status.is_settled() && status != CallStatus::Pending {
                self.update_call(key, position, |call| {
                    let CallBody { attempts, emitted, asked, .. } = std::mem::take(&mut *call.body);
                    *call.body = CallBody { attempts, emitted, asked, ..CallBody::default() };
                })?;
            }
        }
        Ok(())
    }

    fn clear_calls(&mut self, key: Key, is_meant: fn(&CallRecord) -> bool) -> Decided<()> {
        let emitted = self.emitted_by(key)?;
        self.pending.withdrawals.extend(emitted);
        for position in 0..self.calls(key)?.len() {
            if !is_meant(&self.calls(key)?[position]) {
                continue;
            }
            self.update_call(key, position, |call| {
                let attempts = call.body.attempts;
                *call.body = CallBody { attempts, ..CallBody::default() };
            })?;
        }
        Ok(())
    }

    pub(super) fn clear_all(&mut self, key: Key) -> Decided<()> {
        self.clear_calls(key, |_| true)?;
        self.update_task(key, |record| {
            record.body.generation += 1;
            record.body.result = None;
            record.body.started_at = None;
            record.body.progress.round = 0;
            record.body.progress.deadline = None;
        })?;
        self.forget_decision(key)
    }
}

impl How {
    /// Name of the command.
    fn verb(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Reopen => "reopen",
        }
    }

    fn cause(self) -> Cause {
        match self {
            Self::Retry => Cause::Retry,
            Self::Reopen => Cause::Reopen,
        }
    }
}
