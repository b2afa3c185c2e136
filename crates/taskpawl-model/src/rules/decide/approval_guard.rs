//! Protects pending approvals from callers that may not decide, including the order of tasks that depends on them.
//!
//! A program of a run, an agent or an MCP client may plan and cancel work. Removing a question, changing it, or letting
//! a task start without waiting for it would be a decision by the back door. Hence the plan after such a command is
//! compared with the plan before it.

use crate::view::ReadGraph;
use std::collections::BTreeSet;

use crate::command::Command;
use crate::command::refusal::Refusal;
use crate::rules::DecideError;
use crate::rules::draft::{Decided, Draft};
use crate::task::ActorKind;
use crate::task::event::EventKind;
use crate::task::record::{CallRecord, Granted, Node, StatusKind, TaskRecord, Work};
use crate::task::spec::{Approval, TaskSpec, Trigger};
use crate::task::status::{BlockedReason, Cause, Status, TaskStatus};
use crate::value::{Key, TaskId};

use super::approval::ANSWER;

/// Point in the life of a task that can wait for approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    /// Before the task or any descendant starts.
    Start,
    /// Before the task ends.
    End,
}

/// Search for approvals ahead of tasks; remembers points with none, so that each is visited once.
struct ApprovalLookahead<'d, 'v> {
    plan: &'d Draft<'v>,
    clear: BTreeSet<(Key, Point)>,
}

impl Draft<'_> {
    /// Returns whether the caller must leave approvals unchanged.
    pub(super) fn is_kept_from_deciding(&self, command: &Command) -> bool {
        let is_plan_of_model = self.context.origin.is_of_model() || self.context.run.is_some();
        // On the command line an agent is recognized by its environment marker, so the origin of its additions is not
        // decisive.
        let is_within_call = is_plan_of_model || self.context.kind == ActorKind::Agent;
        if let Command::Apply(apply) = command {
            is_plan_of_model || apply.keeps_approvals
        } else if let Command::Idempotent(once) = command {
            self.is_kept_from_deciding(&once.command)
        } else {
            command.traits().may_loosen_approvals && is_within_call
        }
    }

    /// Refuses a command whose changes since `before` amount to a decision.
    pub(super) fn refuse_loosened(&mut self, before: &Self) -> Decided<()> {
        self.settle()?;
        let gone: BTreeSet<Key> = self.changes.deleted.iter().map(|(key, ..)| *key).collect();
        for key in &gone {
            if before.find_node(*key)?.is_some() && before.lacks_approval(*key, Point::End)? {
                return Err(takes(before, *key)?);
            }
        }
        // Sorted by key, so that the refusal names the same task on every machine and in every backend.
        for key in self.changes.tasks.keys().collect::<BTreeSet<_>>() {
            if before.find_node(*key)?.is_some() && self.is_loosened(before, *key)? {
                return Err(takes(before, *key)?);
            }
        }
        self.refuse_back_without(before)?;
        self.refuse_freed(before, &gone)
    }

    /// Refuses to restore a task whose dependency was skipped while the task did not exist.
    fn refuse_back_without(&self, before: &Self) -> Decided<()> {
        let first_new = before.view.next_key()?;
        let back = self.changes.tasks.iter().filter(|(key, change)| change.is_new && **key < first_new);
        for key in back.map(|(key, _)| key).collect::<BTreeSet<_>>() {
            for on in self.dependencies(*key)? {
                if self.node(on)?.status_kind == StatusKind::Skipped {
                    return Err(Refusal::StartsWithout { id: self.id(*key)?, on: self.id(on)? }.into());
                }
            }
        }
        Ok(())
    }

    fn is_loosened(&self, before: &Self, key: Key) -> Decided<bool> {
        let (old, new) = (before.task(key)?, self.task(key)?);
        let (old_calls, new_calls) = (before.known_calls(key)?, self.known_calls(key)?);
        let asks =
            |state: &TaskStatus| matches!(state.blocked_reason(), Some(BlockedReason::Approval { .. }));
        let goes_on = |state: &TaskStatus| {
            !matches!(state.status(), Status::Blocked | Status::Cancelled | Status::Skipped)
        };
        let is_freed = asks(&old.body.state) && goes_on(&new.body.state);
        let is_skipped = new.body.state.status() == Status::Skipped
            && before.lacks_approval(key, Point::End)?
            && !self.is_skipped_by_plan(before, key)?;
        Ok(is_freed
            || is_skipped
            || (old.spec.is_for_person() && !new.spec.is_for_person())
            || is_changed((&old.spec, &old_calls), (&new.spec, &new_calls))
            || is_forged((&old, &old_calls), (&new, &new_calls)))
    }

    /// Returns whether the plan itself skipped a task, by its own condition or by that of a parent.
    fn is_skipped_by_plan(&self, before: &Self, key: Key) -> Decided<bool> {
        let events = &self.changes.events[before.changes.events.len()..];
        let mut above = Some(key);
        while let Some(key) = above {
            let is_skipped = |kind: &EventKind| {
                matches!(kind, EventKind::Status { to: Status::Skipped, cause: Cause::Gate, .. })
            };
            let is_own = |task: &Option<(Key, TaskId)>| task.as_ref().is_some_and(|(task, _)| *task == key);
            if events.iter().any(|event| is_own(&event.task) && is_skipped(&event.kind)) {
                return Ok(true);
            }
            above = self.node(key)?.parent;
        }
        Ok(false)
    }

    /// Returns whether a task has a pending approval that its `point` waits for.
    fn lacks_approval(&self, key: Key, point: Point) -> Decided<bool> {
        let record = self.task(key)?;
        if matches!(record.body.state.status(), Status::Done | Status::Skipped) {
            return Ok(false);
        }
        // Finishing a task assigned to a person is a decision, too.
        let waits_for_person = record.spec.is_for_person() && self.node(key)?.work == Work::Manual;
        if waits_for_person && point == Point::End {
            return Ok(true);
        }
        // The calls of a list run in its items, once these exist.
        let are_elsewhere = record.spec.for_each.is_some() && record.body.progress.opened;
        let asks_before = record.spec.approval_before().is_some();
        let asks_after = record.spec.approval_after().is_some() && point == Point::End && !are_elsewhere;
        let is_lacking = (asks_before || asks_after) && record.body.progress.approval.is_none();
        if is_lacking || point == Point::Start || are_elsewhere {
            return Ok(is_lacking);
        }
        let lacks = |call: &CallRecord| {
            call.spec.approval.is_some() && call.body.approval.is_none() && !call.body.status.is_settled()
        };
        Ok(self.known_calls(key)?.iter().any(lacks))
    }

    /// Refuses to let a task start without an approval that it would have waited for.
    fn refuse_freed(&self, before: &Self, gone: &BTreeSet<Key>) -> Decided<()> {
        let (mut old, mut new) = (ApprovalLookahead::of(before), ApprovalLookahead::of(self));
        for key in self.regated(before, gone)? {
            let awaited = old.awaited(key)?;
            if awaited.is_empty() {
                continue;
            }
            let lost = match self.change_of(before, key)? {
                Change::Loose => awaited,
                // A changed condition is evaluated only when the tasks before it have ended. It can end the subtree
                // without the approvals inside.
                Change::Choice => &awaited - &old.awaited_before(key)?,
                Change::Place => &awaited - &new.awaited(key)?,
            };
            if let Some(on) = lost.first() {
                let (id, on) = (before.id(key)?, before.id(*on)?);
                let refusal =
                    if id == on { Refusal::TakesApproval { id } } else { Refusal::StartsWithout { id, on } };
                return Err(refusal.into());
            }
        }
        Ok(())
    }

    /// Returns the tasks whose prerequisites may have changed.
    fn regated(&self, before: &Self, gone: &BTreeSet<Key>) -> Decided<BTreeSet<Key>> {
        let mut keys: BTreeSet<Key> = self.changes.edges.iter().map(|edge| edge.task).collect();
        for (key, node) in &self.changes.nodes {
            let Some(old) = before.find_node(*key)? else { continue };
            let counts = |node: &Node| (node.gate.trigger, node.gate.dependencies, node.gate.subtasks);
            if counts(&old) != counts(node) {
                keys.insert(*key);
            }
            if old.parent != node.parent {
                keys.extend(old.parent.into_iter().chain([*key]));
            }
        }
        for key in gone {
            keys.extend(before.find_node(*key)?.and_then(|node| node.parent));
        }
        for (key, change) in self.changes.tasks.iter().filter(|(_, change)| change.spec_changed) {
            if before.find_node(*key)?.is_some()
                && is_other_choice(&before.task(*key)?.spec, &change.record.spec)
            {
                keys.insert(*key);
            }
        }
        let mut regated = BTreeSet::new();
        for key in keys.difference(gone) {
            // A task that is done or in progress has already stopped waiting, so the command cannot free it.
            let before = before.find_node(*key)?;
            if before
                .is_some_and(|node| !matches!(node.status_kind, StatusKind::Done | StatusKind::InProgress))
            {
                regated.insert(*key);
            }
        }
        Ok(regated)
    }

    fn change_of(&self, before: &Self, key: Key) -> Decided<Change> {
        let (old, new) = (before.task(key)?.spec, self.task(key)?.spec);
        let edges = &self.changes.edges[before.changes.edges.len()..];
        let has = |add| edges.iter().any(|edge| edge.task == key && edge.add == add);
        let is_moved = before.node(key)?.parent != self.node(key)?.parent;
        // A new parent may be skipped with its subtasks, one more alternative may be done, one fewer dependency may
        // fail.
        let is_looser = old.trigger() != new.trigger() && new.trigger() != Trigger::AllDone
            || old.trigger() == Trigger::AnyDone && has(true)
            || old.trigger() == Trigger::AnyFailed && has(false);
        Ok(if is_moved || is_looser {
            Change::Loose
        } else if is_other_choice(&old, &new) {
            Change::Choice
        } else {
            Change::Place
        })
    }

    /// Refuses a further alternative for a task with `any_done` that waits for an approval: it could bypass the
    /// approval.
    pub(super) fn refuse_other_way(&self, key: Key) -> Decided<()> {
        if self.task(key)?.spec.trigger() != Trigger::AnyDone {
            return Ok(());
        }
        match ApprovalLookahead::of(self).awaited(key)?.first() {
            Some(on) => Err(Refusal::StartsWithout { id: self.id(key)?, on: self.id(*on)? }.into()),
            None => Ok(()),
        }
    }
}

/// Change of a task's prerequisites by the command.
enum Change {
    /// The task may wait for less than before, in any way.
    Loose,
    /// The condition, list or trigger changed; prerequisites may have changed, too.
    Choice,
    /// The task waits for other tasks.
    Place,
}

impl<'d, 'v> ApprovalLookahead<'d, 'v> {
    fn of(plan: &'d Draft<'v>) -> Self {
        Self { plan, clear: BTreeSet::new() }
    }

    /// Returns the tasks with pending approvals that a task waits for before it ends, itself included.
    fn awaited(&mut self, key: Key) -> Decided<BTreeSet<Key>> {
        self.search(vec![(key, Point::End)])
    }

    /// Returns the tasks with pending approvals that a task waits for before its condition is evaluated.
    fn awaited_before(&mut self, key: Key) -> Decided<BTreeSet<Key>> {
        let first = self.ahead_of(key, Point::Start)?;
        self.search(first)
    }

    fn search(&mut self, mut queue: Vec<(Key, Point)>) -> Decided<BTreeSet<Key>> {
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        while let Some((key, point)) = queue.pop() {
            if self.clear.contains(&(key, point)) || !seen.insert((key, point)) {
                continue;
            }
            if self.plan.lacks_approval(key, point)? {
                found.insert(key);
            }
            queue.extend(self.ahead_of(key, point)?);
        }
        if found.is_empty() {
            self.clear.extend(seen);
        }
        Ok(found)
    }

    /// Returns the points directly before a point of a task.
    ///
    /// A clean-up task, which also starts after failures, waits for no approval: it starts after an approval and after
    /// a rejection.
    fn ahead_of(&self, key: Key, point: Point) -> Decided<Vec<(Key, Point)>> {
        let node = self.plan.node(key)?;
        if point == Point::End {
            let mut ahead = vec![(key, Point::Start)];
            for below in self.plan.subtasks(key)? {
                let status_kind = self.plan.node(below)?.status_kind;
                let is_given_up =
                    status_kind == StatusKind::Cancelled && node.status_kind != StatusKind::Cancelled;
                if !is_given_up && !matches!(status_kind, StatusKind::Done | StatusKind::Skipped) {
                    ahead.push((below, Point::End));
                }
            }
            return Ok(ahead);
        }
        let mut ahead: Vec<_> = node.parent.into_iter().map(|above| (above, Point::Start)).collect();
        let waits = match node.gate.trigger {
            Trigger::AllDone => true,
            Trigger::AnyDone => node.gate.dependencies.done == 0,
            Trigger::AllFinished | Trigger::AnyFailed => false,
        };
        if waits {
            for on in self.plan.dependencies(key)? {
                if !matches!(self.plan.node(on)?.status_kind, StatusKind::Done | StatusKind::Skipped) {
                    ahead.push((on, Point::End));
                }
            }
        }
        Ok(ahead)
    }
}

fn takes(before: &Draft<'_>, key: Key) -> Decided<DecideError> {
    Ok(Refusal::TakesApproval { id: before.id(key)? }.into())
}

/// Returns whether the trigger, condition or list changed.
fn is_other_choice(old: &TaskSpec, new: &TaskSpec) -> bool {
    (old.trigger(), &old.when, &old.for_each) != (new.trigger(), &new.when, &new.for_each)
}

/// Specification of a task and its calls.
type Asking<'a> = (&'a TaskSpec, &'a [CallRecord]);

/// Returns whether an approval was removed or changed.
pub(super) fn is_changed(old: Asking<'_>, new: Asking<'_>) -> bool {
    is_lost(old, new, |old, new| new == Some(old))
}

/// Returns whether an approval was removed.
pub(super) fn is_taken(old: Asking<'_>, new: Asking<'_>) -> bool {
    is_lost(old, new, |_, new| new.is_some())
}

fn is_lost(old: Asking<'_>, new: Asking<'_>, stays: impl Fn(&Approval, Option<&Approval>) -> bool) -> bool {
    let call_stays = |call: &CallRecord| {
        let same = new.1.iter().find(|other| other.id == call.id);
        let approval = same.and_then(|same| same.spec.approval.as_ref());
        call.spec.approval.as_ref().is_none_or(|before| stays(before, approval))
    };
    let task_stays = old.0.approval.as_ref().is_none_or(|before| stays(before, new.0.approval.as_ref()));
    !task_stays || !old.1.iter().all(call_stays)
}

/// Returns whether a decision or its answer appeared that no approver made.
fn is_forged(old: (&TaskRecord, &[CallRecord]), new: (&TaskRecord, &[CallRecord])) -> bool {
    let is_given = |before: Option<&Granted>, after: Option<&Granted>| after.is_some() && before != after;
    let call_is_given = |call: &CallRecord| {
        let same = old.1.iter().find(|other| other.id == call.id);
        let before = same.and_then(|same| same.body.approval.as_deref());
        call.spec.approval.is_some() && is_given(before, call.body.approval.as_deref())
    };
    let asks = |(record, calls): (&TaskRecord, &[CallRecord])| {
        record.spec.approval.is_some() || calls.iter().any(|call| call.spec.approval.is_some())
    };
    let (before, after) = (old.0.body.context.get(ANSWER), new.0.body.context.get(ANSWER));
    let has_other_answer = after.is_some() && before != after && (asks(old) || asks(new));
    has_other_answer
        || is_given(old.0.body.progress.approval.as_deref(), new.0.body.progress.approval.as_deref())
        || new.1.iter().any(call_is_given)
}
