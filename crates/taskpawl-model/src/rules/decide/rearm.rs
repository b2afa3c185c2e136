//! Clean-ups and compensations run because a task failed, so they start over when that task does.

use std::collections::BTreeSet;

use crate::rules::draft::{Decided, Draft};
use crate::task::record::StatusKind;
use crate::task::spec::Trigger;
use crate::value::Key;
use crate::view::ReadGraph;

use super::again::How;

impl Draft<'_> {
    /// Returns the clean-ups (`all_finished`) and compensations (`any_failed`) that ran because one of these tasks
    /// failed, with their subtasks and their finished parents. One that is running goes on.
    pub(super) fn clean_ups_behind(&mut self, failed: &[Key]) -> Decided<Vec<Key>> {
        let mut seen: BTreeSet<Key> = failed.iter().copied().collect();
        let (mut queue, mut found) = (Vec::new(), Vec::new());
        for key in failed {
            if matches!(self.node(*key)?.status_kind, StatusKind::Failed | StatusKind::Cancelled) {
                queue.push(*key);
            }
        }
        while let Some(key) = queue.pop() {
            for other in self.affected_by_failure(key)? {
                if seen.contains(&other) {
                    continue;
                }
                let is_dependent = self.dependencies(other)?.contains(&key);
                if self.node(other)?.status_kind == StatusKind::BlockedDependency {
                    seen.insert(other);
                    queue.push(other);
                } else if is_dependent && self.is_armed_by_failure(other)? && self.has_run(other)? {
                    let again = self.with_parents_and_subtasks(other, &mut seen)?;
                    queue.extend(&again);
                    found.extend(again);
                }
            }
        }
        Ok(found)
    }

    /// Returns the tasks whose gate depends on whether a task failed.
    fn affected_by_failure(&self, key: Key) -> Decided<Vec<Key>> {
        let node = self.node(key)?;
        let mut affected = self.dependents(key)?;
        affected.extend(node.parent);
        if node.status_kind == StatusKind::BlockedDependency {
            affected.extend(self.subtasks(key)?);
        }
        Ok(affected)
    }

    fn is_armed_by_failure(&self, key: Key) -> Decided<bool> {
        Ok(matches!(self.look_at(key)?.spec.trigger(), Trigger::AllFinished | Trigger::AnyFailed))
    }

    /// Returns whether a task ran and has ended, or was skipped by a condition that may hold the next time.
    fn has_run(&mut self, key: Key) -> Decided<bool> {
        match self.free(key)? {
            StatusKind::Done | StatusKind::Failed => Ok(true),
            StatusKind::Skipped => self.is_skipped_by_condition(key),
            StatusKind::Todo
            | StatusKind::InProgress
            | StatusKind::BlockedDependency
            | StatusKind::BlockedWaiting
            | StatusKind::BlockedOther
            | StatusKind::Cancelled => Ok(false),
        }
    }

    /// Returns a clean-up with its finished subtasks, and with its parents as far as they are finished: a parent does not
    /// stay finished above an open subtask.
    fn with_parents_and_subtasks(&mut self, key: Key, seen: &mut BTreeSet<Key>) -> Decided<Vec<Key>> {
        let mut again = vec![key];
        seen.insert(key);
        for below in self.unseen_below(key, seen)? {
            if self.has_run(below)? {
                again.push(below);
            }
        }
        let mut above = self.node(key)?.parent;
        while let Some(parent) = above
            && !seen.contains(&parent)
            && self.has_run(parent)?
        {
            seen.insert(parent);
            again.push(parent);
            above = self.node(parent)?.parent;
        }
        Ok(again)
    }

    /// Starts clean-ups and compensations over, from their first call.
    pub(super) fn rearm(&mut self, clean_ups: &[Key]) -> Decided<()> {
        for key in clean_ups {
            self.start_one_again(*key, How::Reopen)?;
        }
        Ok(())
    }
}
