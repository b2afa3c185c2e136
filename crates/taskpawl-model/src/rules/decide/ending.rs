//! Tasks that were cancelled while a run still executes their calls. Until those calls end, no new attempt may start.
//!
//! The record of the run lists them. Once the run is over or found dead, none of its calls can be alive.

use std::collections::BTreeSet;

use crate::command::refusal::Refusal;
use crate::rules::draft::{Decided, Draft};
use crate::task::event::EventKind;
use crate::task::record::{RevokedAttempt, RunRecord, StatusKind, TaskRecord};
use crate::task::status::TaskStatus;
use crate::value::{CallId, Key, RunId, TaskId};

impl Draft<'_> {
    /// Records that `calls` of a task, which is being taken from its run, have not ended.
    pub(super) fn note_ending(&mut self, task: TaskRecord, calls: BTreeSet<CallId>) -> Decided<()> {
        let TaskStatus::InProgress { claim } = &task.body.state else { return Ok(()) };
        let Some(run) = claim.run.as_ref().filter(|_| !calls.is_empty()) else { return Ok(()) };
        if let Some(mut run) = self.open_run(run)? {
            run.ending.insert(task.id, RevokedAttempt { attempt: task.body.attempt, calls });
            self.changes.runs.insert(run.id.clone(), run);
        }
        Ok(())
    }

    /// Records the end of a call, or of all calls, of a task that was taken from the run; returns whether the call was
    /// recorded.
    pub(super) fn has_ended(&mut self, key: Key, attempt: u32, call: Option<&CallId>) -> Decided<bool> {
        let (Some(run), Some(_)) = (&self.context.run, self.find_node(key)?) else { return Ok(false) };
        let (Some(mut run), id) = (self.open_run(run)?, self.id(key)?) else { return Ok(false) };
        let Some(ending) = run.ending.get_mut(&id).filter(|ending| ending.attempt == attempt) else {
            return Ok(false);
        };
        let is_known = call.is_none_or(|call| ending.calls.remove(call));
        let is_over = call.is_none() || ending.calls.is_empty();
        if is_over {
            run.ending.remove(&id);
            self.look_above_ended(&id)?;
        }
        if is_known {
            self.changes.runs.insert(run.id.clone(), run);
            if is_over {
                // Runs that wait for the task's resources look again only after an event was written.
                self.emit(Some(key), EventKind::Stopped { attempt })?;
            }
        }
        Ok(is_known)
    }

    /// Refuses to restart a cancelled task while its calls still run.
    pub(super) fn refuse_ending(&mut self, key: Key) -> Decided<()> {
        match self.ending_in(key)? {
            Some(run) => Err(Refusal::StillEnding { id: self.id(key)?, run }.into()),
            None => Ok(()),
        }
    }

    /// Returns the run that still executes calls of a cancelled task.
    pub(super) fn ending_in(&mut self, key: Key) -> Decided<Option<RunId>> {
        if self.node(key)?.status_kind != StatusKind::Cancelled {
            return Ok(None);
        }
        let id = self.id(key)?;
        let ending = match self.read_once.ending.take() {
            Some(ending) => ending,
            None => crate::view::read::ending(self.view)?,
        };
        let run = self.read_once.ending.insert(ending).get(&id).cloned();
        // The cached list is from before the command, which may have ended the run or the calls since.
        let goes_on = |run: &RunId| {
            self.changes.runs.get(run).is_none_or(|run| run.is_open() && run.ending.contains_key(&id))
        };
        Ok(run.filter(goes_on))
    }

    /// Queues the parent: a list may wait for a cancelled item to end before it can replace it.
    pub(super) fn look_above_ended(&mut self, id: &TaskId) -> Decided<()> {
        if let Some(key) = self.find_id(id.as_str())?
            && let Some(node) = self.find_node(key)?
        {
            self.pending.gates.extend(node.parent);
        }
        Ok(())
    }

    fn open_run(&self, id: &RunId) -> Decided<Option<RunRecord>> {
        let run = match self.changes.runs.get(id) {
            Some(run) => Some(run.clone()),
            None => self.view.run(id)?,
        };
        Ok(run.filter(RunRecord::is_open))
    }
}
