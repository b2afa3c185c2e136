//! Claims of agents and people: claim, renew, and expired leases.
//!
//! A task with an expired lease is available to the next writer: another actor may claim it, and a run releases it.
//! Until then its holder may still report, renew and claim as before, so that finished work is not lost.

use std::collections::BTreeMap;
use std::time::Duration;

use super::needs::elsewhere;
use crate::command::ResolvedWrites;
use crate::command::refusal::{ChangesSince, HeldBy, Refusal};
use crate::rules::draft::{Decided, Draft};
use crate::task::ActorKind;
use crate::task::event::{Event, EventKind};
use crate::task::record::{StatusKind, TaskRecord, Work};
use crate::task::spec::PERSON;
use crate::task::status::{Cause, Claim, Status, TaskStatus};
use crate::value::Timestamp;
use crate::value::{Key, Period};
use crate::view::Query;
use crate::view::Waits;

impl Draft<'_> {
    pub(super) fn claim(
        &mut self,
        id: &str,
        lease: Duration,
        capacities: &BTreeMap<String, u32>,
        writes: &BTreeMap<Key, ResolvedWrites>,
    ) -> Decided<()> {
        let key = self.resolve(id)?;
        let mut record = self.task(key)?;
        if record.body.progress.waiting_for.is_some() {
            self.wake_now(&[key])?;
            record = self.task(key)?;
        }
        if let TaskStatus::InProgress { claim } = &record.body.state {
            self.check_own(key, &record, claim)?;
            self.write_lease(key, lease)?;
        } else {
            self.refuse_unless_manual(key, &record, "claim")?;
            self.refuse_for_person(key, "claim")?;
            let resolved = resolved(key, &record, writes);
            if self.node(key)?.is_ready()
                && let Some(refusal) = self.occupied(key, &record, capacities, resolved.clone())?
            {
                return Err(refusal.into());
            }
            self.take(key, &record, lease, "claim")?;
            self.keep_resolved(key, &record, resolved)?;
        }
        self.answer.tasks.push(record.id);
        Ok(())
    }

    pub(super) fn claim_next(
        &mut self,
        lease: Duration,
        capacities: &BTreeMap<String, u32>,
        writes: &BTreeMap<Key, ResolvedWrites>,
    ) -> Decided<()> {
        let mut expired = self.view.leases(None)?;
        self.return_some_expired(&expired)?;
        let due = self.view.waiting(Waits::Due(self.now()))?;
        self.wake_now(&due)?;
        expired.extend(due);
        let mut occupied = None;
        // The first task is hardly ever blocked by holders. Only if it is, all ready tasks are read.
        for limit in [1, 0] {
            for key in self.ready_for_me(&expired, limit)? {
                let record = self.task(key)?;
                let resolved = resolved(key, &record, writes);
                if let Some(refusal) = self.occupied(key, &record, capacities, resolved.clone())? {
                    occupied.get_or_insert(refusal);
                    continue;
                }
                self.take(key, &record, lease, "claim")?;
                self.keep_resolved(key, &record, resolved)?;
                self.answer.tasks.push(record.id);
                return Ok(());
            }
        }
        Err(occupied.unwrap_or(Refusal::NothingReady).into())
    }

    /// Stores the resolved paths, which later claims compare with their own.
    fn keep_resolved(&mut self, key: Key, record: &TaskRecord, resolved: Option<Vec<String>>) -> Decided<()> {
        let resolved = elsewhere(&record.spec.writes, resolved).map(Box::new);
        if resolved == record.body.progress.resolved_writes {
            return Ok(());
        }
        self.update_task(key, |record| record.body.progress.resolved_writes = resolved)
    }

    /// Returns the first `limit` tasks (0 for all) that are ready for this actor, including those of `expired` leases and waits.
    fn ready_for_me(&self, expired: &[Key], limit: usize) -> Decided<Vec<Key>> {
        let query = Query {
            ready: Some(vec![Work::Manual]),
            free_for: Some(self.context.actor.to_string()),
            limit,
            ..Query::default()
        };
        let mut keys = self.view.find(&query)?;
        if self.context.kind == ActorKind::Person {
            let of_persons = Query { assignee: Some(PERSON.to_owned()), free_for: None, ..query };
            keys.extend(self.view.find(&of_persons)?);
        } else if *self.context.actor == *PERSON {
            keys.retain(|key| self.task(*key).is_ok_and(|record| self.is_for_me(&record)));
        }
        let mut nodes = keys.into_iter().map(|key| self.node(key)).collect::<Decided<Vec<_>>>()?;
        for key in expired {
            // The view still shows these tasks as in progress.
            let node = self.node(*key)?;
            if node.is_ready() && node.work == Work::Manual && self.is_for_me(&self.task(*key)?) {
                nodes.push(node);
            }
        }
        nodes.sort_by_key(|node| (node.priority, node.due, node.key));
        // For a person both queries may return the same task.
        nodes.dedup_by_key(|node| node.key);
        Ok(nodes.into_iter().map(|node| node.key).collect())
    }

    fn is_for_me(&self, record: &TaskRecord) -> bool {
        if record.spec.is_for_person() {
            return self.context.kind == ActorKind::Person;
        }
        record.spec.assignee.as_ref().is_none_or(|name| *name == self.context.actor)
    }

    pub(super) fn take(
        &mut self,
        key: Key,
        record: &TaskRecord,
        lease: Duration,
        by: &'static str,
    ) -> Decided<()> {
        if record.body.state != TaskStatus::Todo {
            return Err(self.transition_refusal(key, record, Status::InProgress, by)?.into());
        }
        let node = self.node(key)?;
        if !node.is_ready() {
            let (open, failed) = self.obstacles(key)?;
            // The explanation reads the view, which does not show tasks created by this command.
            let is_old = self.changes.tasks.is_empty();
            let cause =
                if is_old { crate::insight::explain::first_cause(self.view, key, self.now())? } else { None };
            let wait = record.body.progress.waiting_for.as_deref().map(ToString::to_string);
            return Err(Refusal::NotReady { id: record.id.clone(), open, failed, wait, cause }.into());
        }
        let claim = Claim {
            run: None,
            actor: self.context.actor.clone(),
            kind: self.context.kind,
            lease_until: Some(self.lease_end(lease)?),
            lease: Some(Period(lease)),
        };
        self.set_state(key, TaskStatus::InProgress { claim }, Cause::Claim, None)
    }

    fn lease_end(&self, lease: Duration) -> Decided<Timestamp> {
        let end =
            chrono::TimeDelta::from_std(lease).ok().and_then(|lease| self.now().checked_add_signed(lease));
        Ok(end.ok_or_else(|| super::fields::invalid("ttl", "the lease would end too far in the future"))?)
    }

    fn write_lease(&mut self, key: Key, lease: Duration) -> Decided<()> {
        let end = self.lease_end(lease)?;
        self.update_task(key, |record| {
            if let TaskStatus::InProgress { claim } = &mut record.body.state {
                claim.lease_until = Some(end);
                claim.lease = Some(Period(lease));
            }
        })?;
        self.emit(Some(key), EventKind::Renewed { lease_until: end })
    }

    pub(super) fn renew(&mut self, id: &str, lease: Duration) -> Decided<()> {
        let key = self.resolve(id)?;
        let (record, claim) = self.held(key, Status::InProgress, "renew")?;
        self.check_own(key, &record, &claim)?;
        self.write_lease(key, lease)?;
        self.answer.tasks.push(record.id);
        Ok(())
    }

    /// Returns a task that is in progress, and its claim; refuses others.
    pub(super) fn held(&self, key: Key, to: Status, by: &'static str) -> Decided<(TaskRecord, Claim)> {
        let record = self.task(key)?;
        if let TaskStatus::InProgress { claim } = &record.body.state {
            let claim = claim.clone();
            return Ok((record, claim));
        }
        let refusal = self.transition_refusal(key, &record, to, by)?;
        Err(refusal.with_since(self.since(key, None)?).into())
    }

    /// Refuses to renew another actor's claim, even for a person: the holder would not notice.
    fn check_own(&self, key: Key, record: &TaskRecord, claim: &Claim) -> Decided<()> {
        if self.is_mine(claim) { Ok(()) } else { Err(self.held_by_other(key, record, claim, None)?.into()) }
    }

    fn is_mine(&self, claim: &Claim) -> bool {
        claim.is_of(self.context.as_actor())
    }

    /// Refuses if another actor holds the task, unless the caller is a person. `reported` is the attempt of a report.
    pub(super) fn check_holder(
        &self,
        key: Key,
        record: &TaskRecord,
        claim: &Claim,
        reported: Option<u32>,
    ) -> Decided<()> {
        if claim.may_be_ended_by(self.context.as_actor()) {
            return Ok(());
        }
        Err(self.held_by_other(key, record, claim, reported)?.into())
    }

    pub(super) fn held_by_other(
        &self,
        key: Key,
        record: &TaskRecord,
        claim: &Claim,
        reported: Option<u32>,
    ) -> Decided<Refusal> {
        let wait = record.body.progress.waiting_for.as_deref().filter(|_| claim.is_of_store());
        let holder = if let Some(run) = &claim.run {
            HeldBy::Run(run.clone())
        } else if let Some(wait) = wait {
            HeldBy::Store(wait.to_string())
        } else {
            // With equal names the message would seem to name the caller, so the kind is added.
            let kind = (claim.actor == self.context.actor).then_some(claim.kind);
            HeldBy::Actor { name: claim.actor.to_string(), kind }
        };
        let (lease_until, since) = (claim.lease_until, self.since(key, reported)?);
        Ok(Refusal::HeldByOther { id: record.id.clone(), holder, lease_until, since })
    }

    /// Refuses to take a task from a person who holds it, unless the caller is a person.
    pub(super) fn refuse_taking(&self, key: Key) -> Decided<()> {
        if self.node(key)?.status_kind != StatusKind::InProgress {
            return Ok(());
        }
        let record = self.task(key)?;
        let TaskStatus::InProgress { claim } = &record.body.state else { return Ok(()) };
        if claim.may_be_taken_by(self.context.as_actor(), self.now()) {
            return Ok(());
        }
        Err(self.held_by_other(key, &record, claim, None)?.into())
    }

    /// Refuses a report about an attempt other than the current one.
    pub(super) fn check_attempt(&self, key: Key, record: &TaskRecord, reported: Option<u32>) -> Decided<()> {
        let current = record.body.attempt;
        match reported {
            Some(reported) if reported != current => {
                let since = self.since(key, Some(reported))?;
                let (id, status) = (record.id.clone(), record.body.state.status());
                Err(Refusal::StaleAttempt { id, reported, current, status, since }.into())
            }
            _ => Ok(()),
        }
    }

    /// Refuses a report about another actor's finished attempt, unless the caller is a person.
    pub(super) fn check_past_attempt(
        &self,
        key: Key,
        record: &TaskRecord,
        reported: Option<u32>,
    ) -> Decided<()> {
        let Some(attempt) = reported.filter(|attempt| *attempt > 0) else { return Ok(()) };
        if self.context.kind == ActorKind::Person || self.is_attempt_mine(key, attempt)? {
            return Ok(());
        }
        Err(Refusal::ForeignAttempt { id: record.id.clone(), attempt, since: self.since(key, reported)? }
            .into())
    }

    /// Returns whether this actor made the attempt.
    pub(super) fn is_attempt_mine(&self, key: Key, attempt: u32) -> Decided<bool> {
        let me = self.context.as_actor();
        Ok(self.steps(key)?.iter().any(|event| attempt_claimed(event) == Some(attempt) && event.is_of(me)))
    }

    /// Returns the status changes since the `reported` attempt, or since the last claim of this actor.
    pub(super) fn since(&self, key: Key, reported: Option<u32>) -> Decided<ChangesSince> {
        let mut steps = self.steps(key)?;
        let me = self.context.as_actor();
        let begins = |event: &Event| match (attempt_claimed(event), reported) {
            (Some(attempt), Some(reported)) => attempt == reported,
            (Some(_), None) => event.is_of(me),
            (None, _) => false,
        };
        let Some(begin) = steps.iter().rposition(begins) else { return Ok(ChangesSince::default()) };
        let steps = steps.split_off(begin + 1);
        // Changes made by the caller alone are no news to it.
        let is_news = steps.iter().any(|event| !event.is_of(me));
        Ok(if is_news { ChangesSince::new(steps) } else { ChangesSince::default() })
    }

    /// Returns every status change of a task. There may be many, so only refusals read them.
    fn steps(&self, key: Key) -> Decided<Vec<Event>> {
        let mut events = self.view.events(0, Some(key), 0)?;
        events.retain(|event| matches!(event.kind, EventKind::Status { .. }));
        Ok(events)
    }

    // Expired and active leases.

    /// Releases named tasks whose lease expired under another actor, and applies the default of overdue questions.
    pub(super) fn meet(&mut self, ids: &[&str]) -> Decided<()> {
        for id in ids {
            // The command itself refuses unknown names with the right error.
            if let Ok(key) = self.resolve(id) {
                self.free(key)?;
                self.open_left_over(key)?;
            }
        }
        Ok(())
    }

    /// Opens a task that an earlier version left undecided.
    fn open_left_over(&mut self, key: Key) -> Decided<()> {
        let node = self.node(key)?;
        if node.status_kind == StatusKind::Todo && node.gate.is_to_be_opened() {
            self.queue(key);
            self.settle()?;
        }
        Ok(())
    }

    /// Returns the status kind of a task, after releasing an expired claim of another actor and applying an overdue
    /// question's default.
    pub(super) fn free(&mut self, key: Key) -> Decided<StatusKind> {
        let status_kind = self.node(key)?.status_kind;
        if status_kind == StatusKind::BlockedOther {
            self.expire_question(key)?;
            return Ok(self.node(key)?.status_kind);
        }
        if status_kind != StatusKind::InProgress {
            return Ok(status_kind);
        }
        if let TaskStatus::InProgress { claim } = &self.task(key)?.body.state
            && !self.is_mine(claim)
        {
            self.return_expired(key)?;
        }
        Ok(self.node(key)?.status_kind)
    }

    /// Releases those of the tasks whose leases have expired.
    pub(super) fn return_some_expired(&mut self, tasks: &[Key]) -> Decided<()> {
        for key in tasks {
            if self.find_node(*key)?.is_some() {
                self.return_expired(*key)?;
            }
        }
        Ok(())
    }

    fn return_expired(&mut self, key: Key) -> Decided<()> {
        if let TaskStatus::InProgress { claim } = &self.task(key)?.body.state
            && claim.is_expired(self.now())
        {
            let text = format!("the lease of {} ended", claim.actor);
            // Settled at once, because the command that follows may claim this very task.
            self.set_state(key, TaskStatus::Todo, Cause::Release, Some(text))?;
            self.settle()?;
        }
        Ok(())
    }

    /// Renews the leases of this actor, because giving a command shows that it is working.
    ///
    /// A lease with more than half of its time left is skipped, so that not every command writes.
    pub(super) fn renew_own_leases(&mut self) -> Decided<()> {
        for key in self.view.leases(Some(self.context.actor.as_str()))? {
            if self.find_node(key)?.is_some()
                && let TaskStatus::InProgress { claim } = &self.task(key)?.body.state
                && self.is_mine(claim)
                && let Some(lease) = claim.due_for_renewal(self.now())
            {
                if !self.changes.tasks.contains_key(&key) {
                    self.undo_notes.renewed.insert(key);
                }
                self.write_lease(key, lease)?;
            }
        }
        Ok(())
    }
}

/// Returns the attempt that an event started, if the event is a claim.
fn attempt_claimed(event: &Event) -> Option<u32> {
    let EventKind::Status { cause: Cause::Claim, attempt, .. } = &event.kind else { return None };
    Some(*attempt)
}

/// Returns the resolved paths of a task, if they were resolved for its current definition.
fn resolved(key: Key, record: &TaskRecord, writes: &BTreeMap<Key, ResolvedWrites>) -> Option<Vec<String>> {
    let resolved = writes.get(&key).filter(|resolved| resolved.asked == record.spec.writes)?;
    Some(resolved.paths.clone())
}
