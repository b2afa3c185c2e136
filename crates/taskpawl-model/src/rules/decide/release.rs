//! Releasing claims: one's own, and as an agent that of a silent holder.

use crate::rules::draft::{Decided, Draft};
use crate::task::event::EventKind;
use crate::task::record::TaskRecord;
use crate::task::status::{Cause, Claim, Status, TaskStatus};
use crate::task::{Actor, ActorKind};
use crate::value::{Key, Timestamp};

impl Draft<'_> {
    pub(super) fn release(&mut self, ids: &[String], note: Option<&str>) -> Decided<()> {
        if note.is_some_and(|text| text.trim().is_empty()) {
            return Err(super::fields::invalid("note", "the text is empty").into());
        }
        for key in self.resolve_all(ids)? {
            let record = self.task(key)?;
            let is_free = record.body.state == TaskStatus::Todo;
            // Releasing twice is idempotent, so that a caller that lost the reply can retry.
            if !(is_free && self.is_attempt_mine(key, record.body.attempt)?) {
                let (record, claim) = self.held(key, Status::Todo, "release")?;
                let is_for_silent = note.is_some() && self.may_release_silent(key, &record, &claim)?;
                // A waiting task belongs to the store: no actor holds it.
                if !is_for_silent && !claim.is_of_store() {
                    self.check_holder(key, &record, &claim, None)?;
                }
                if let Some(text) = note {
                    self.add_note(key, text)?;
                }
                self.set_state(key, TaskStatus::Todo, Cause::Release, note.map(str::to_owned))?;
            }
            self.answer.tasks.push(record.id);
        }
        Ok(())
    }

    /// Returns whether this agent answers for the task, and its holder, who is no person, is silent. A dead agent would
    /// otherwise keep a task of this agent's work for the rest of its lease.
    fn may_release_silent(&self, key: Key, record: &TaskRecord, claim: &Claim) -> Decided<bool> {
        if self.context.kind != ActorKind::Agent || claim.kind == ActorKind::Person {
            return Ok(false);
        }
        Ok(self.answers_for(key, record)? && self.is_silent(claim)?)
    }

    /// Returns whether this actor is the assignee of the task, or created it.
    fn answers_for(&self, key: Key, record: &TaskRecord) -> Decided<bool> {
        if record.spec.assignee.as_ref().is_some_and(|name| *name == self.context.actor) {
            return Ok(true);
        }
        let me = self.context.as_actor();
        let first = self.view.events(0, Some(key), 1)?;
        Ok(first.iter().any(|event| matches!(event.kind, EventKind::Created(_)) && event.is_of(me)))
    }

    /// Returns whether the holder gave no command for half of its lease.
    fn is_silent(&self, claim: &Claim) -> Decided<bool> {
        let (Some(end), Some(lease)) = (claim.lease_until, claim.lease) else { return Ok(false) };
        let (Ok(lease), Ok(half)) =
            (chrono::TimeDelta::from_std(lease.0), chrono::TimeDelta::from_std(lease.0 / 2))
        else {
            return Ok(false);
        };
        let silent_since = self.now() - half;
        // A command renews the lease only once half of it is over, so the last command itself counts as well.
        Ok(end - lease <= silent_since && self.last_command_of(claim)?.is_none_or(|at| at <= silent_since))
    }

    /// Returns the time of the holder's last recorded command.
    fn last_command_of(&self, claim: &Claim) -> Decided<Option<Timestamp>> {
        let holder = Actor { kind: claim.kind, name: &claim.actor };
        let Some(last) = self.view.last_undoable(holder)? else { return Ok(None) };
        let events = self.view.events(last.revision.saturating_sub(1), None, 1)?;
        Ok(events.first().map(|event| event.at))
    }
}
