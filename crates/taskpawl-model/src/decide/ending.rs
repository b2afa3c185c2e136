//! Tasks that were cancelled while a run carries out their calls: until these have ended, no new attempt may start.
//!
//! The record of the run keeps them: when a run is over, or found to be dead, nothing of it lives any more.

use std::collections::BTreeSet;

use crate::draft::{Decided, Draft};
use crate::event::EventKind;
use crate::record::{Phase, RunRecord, TakenAway, TaskRecord};
use crate::refusal::Refusal;
use crate::status::TaskState;
use crate::{CallId, Key, RunId, TaskId};

impl Draft<'_> {
    /// Notes that `calls` of a task that is taken away from a run have not ended.
    pub(super) fn note_ending(&mut self, task: TaskRecord, calls: BTreeSet<CallId>) -> Decided<()> {
        let TaskState::InProgress { claim } = &task.body.state else { return Ok(()) };
        let Some(run) = claim.run.as_ref().filter(|_| !calls.is_empty()) else { return Ok(()) };
        if let Some(mut run) = self.open_run(run)? {
            run.ending.insert(task.id, TakenAway { attempt: task.body.attempt, calls });
            self.changes.runs.insert(run.id.clone(), run);
        }
        Ok(())
    }

    /// Takes note that a call has ended whose task was taken away from the run, or all of them; returns whether that was so.
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
                // Those who wait for what it held look when something was written.
                self.emit(Some(key), EventKind::Stopped { attempt })?;
            }
        }
        Ok(is_known)
    }

    /// Refuses what lets a cancelled task start again while calls of it run.
    pub(super) fn refuse_ending(&mut self, key: Key) -> Decided<()> {
        match self.ending_in(key)? {
            Some(run) => Err(Refusal::StillEnding { id: self.id(key)?, run }.into()),
            None => Ok(()),
        }
    }

    /// Returns the run in which calls of a cancelled task have not ended.
    pub(super) fn ending_in(&mut self, key: Key) -> Decided<Option<RunId>> {
        if self.node(key)?.phase != Phase::Cancelled {
            return Ok(None);
        }
        let id = self.id(key)?;
        let ending = match self.ending.take() {
            Some(ending) => ending,
            None => crate::read::ending(self.view)?,
        };
        let run = self.ending.insert(ending).get(&id).cloned();
        let goes_on = |run: &RunId| {
            self.changes.runs.get(run).is_none_or(|run| run.is_open() && run.ending.contains_key(&id))
        };
        Ok(run.filter(goes_on))
    }

    /// A list may wait for the end of an item that was cancelled to put another one in its place.
    pub(super) fn look_above_ended(&mut self, id: &TaskId) -> Decided<()> {
        if let Some(key) = self.find_id(id.as_str())?
            && let Some(node) = self.find_node(key)?
        {
            self.queue.extend(node.parent);
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
