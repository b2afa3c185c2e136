//! What the manager has to know about runs and cannot: whether they live is a matter of whoever runs tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use serde::Serialize;
use taskpawl_model::{
    BlockedReason, ClaimEnd, Command, Key, Refusal, RunId, RunRecord, Status, Task, TaskState, View,
    ViewResult, resolve,
};

use crate::error::Error;
use crate::manager::Manager;

/// Knows which runs live, and takes back what dead ones hold. An engine sets itself; without one every run counts as alive.
pub trait Liveness: Send + Sync + Debug {
    /// Returns whether a run goes on; true where that cannot be told.
    fn is_alive(&self, run: &RunId) -> bool;

    /// Takes back those of the tasks that dead runs hold, in one commit.
    fn recover(&self, manager: &Manager, tasks: &[Key]) -> Result<(), Error>;
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It goes on.
    Running,
    /// It ended without finishing: it was killed, or its machine was.
    Killed,
    /// It ended with an exit code.
    Finished,
}

impl Manager {
    /// Returns how far a run is.
    pub fn run_state(&self, run: &RunRecord) -> RunState {
        if run.exit.is_some() {
            RunState::Finished
        } else if run.is_open() && self.is_alive(&run.id) {
            RunState::Running
        } else {
            RunState::Killed
        }
    }

    pub(crate) fn is_alive(&self, run: &RunId) -> bool {
        self.liveness().is_none_or(|liveness| liveness.is_alive(run))
    }

    /// Says of each task whether its claim, or the time to decide about it, has ended though nobody has taken note of that yet.
    /// Each run is asked for once.
    pub(crate) fn mark_ended_claims<'a>(&self, tasks: impl IntoIterator<Item = &'a mut Task>) {
        let mut lives = BTreeMap::new();
        let mut now = None;
        for task in tasks {
            if let Some(BlockedReason::Approval { expires_at: Some(end), .. }) = &task.blocked_reason {
                task.question_over = *end <= *now.get_or_insert_with(|| self.source().now());
            }
            let Some(claim) = &task.claim else { continue };
            let is_dead = |run: &RunId| !*lives.entry(run.clone()).or_insert_with(|| self.is_alive(run));
            let is_expired = claim.is_expired(*now.get_or_insert_with(|| self.source().now()));
            task.claim_ended = if is_expired {
                Some(ClaimEnd::Expired)
            } else {
                claim.run.as_ref().is_some_and(is_dead).then_some(ClaimEnd::Killed)
            };
        }
    }

    /// Says of each task that was cancelled which run still ends calls of it.
    pub(crate) fn mark_ending<'a>(&self, tasks: impl IntoIterator<Item = &'a mut Task>) -> Result<(), Error> {
        let mut ending = None;
        for task in tasks.into_iter().filter(|task| task.status == Status::Cancelled) {
            let ending = match &mut ending {
                Some(ending) => ending,
                None => ending.insert(self.store().view(taskpawl_model::ending)?),
            };
            task.ended_by = ending.get(&task.id).filter(|run| self.is_alive(run)).cloned();
        }
        Ok(())
    }

    /// Takes back what dead runs hold of the tasks that a refused command names, and returns whether there was any.
    pub(crate) fn recover_named(&self, command: &Command, refusal: &Refusal) -> Result<bool, Error> {
        let Some(liveness) = self.liveness().filter(|_| self.is_by_hand()) else { return Ok(false) };
        let tasks = self.read(|view| Ok(held_by_runs(view, &concerned(view, command, refusal)?)?))?;
        let tasks: Vec<Key> =
            tasks.into_iter().filter(|(_, run)| !liveness.is_alive(run)).map(|(key, _)| key).collect();
        if tasks.is_empty() {
            return Ok(false);
        }
        // What is found on the way is no part of the request.
        liveness.recover(&self.clone().without_request(), &tasks)?;
        Ok(true)
    }
}

/// Returns the tasks that a command names, with what stands in its way below or behind them.
fn concerned(view: &dyn View, command: &Command, refusal: &Refusal) -> ViewResult<BTreeSet<Key>> {
    let mut keys = BTreeSet::new();
    // A name that is wrong is what the command was refused for.
    keys.extend(command.names().into_iter().filter_map(|name| resolve(view, name).ok()));
    if let Refusal::StillEnding { id, .. } = refusal {
        keys.extend(view.key(id.as_str())?);
    }
    if let Refusal::InProgress { tasks } = refusal {
        for id in tasks {
            keys.extend(view.key(id.as_str())?);
        }
        let mut below: Vec<Key> = keys.iter().copied().collect();
        while let Some(key) = below.pop() {
            for subtask in view.subtasks(key)? {
                if keys.insert(subtask) {
                    below.push(subtask);
                }
            }
        }
    }
    Ok(keys)
}

/// Returns those of the tasks that a run holds or still ends.
fn held_by_runs(view: &dyn View, keys: &BTreeSet<Key>) -> ViewResult<Vec<(Key, RunId)>> {
    let (mut held, ending) = (Vec::new(), taskpawl_model::ending(view)?);
    for key in keys {
        let Some(task) = view.task(*key)? else { continue };
        held.extend(ending.get(&task.id).map(|run| (*key, run.clone())));
        if let TaskState::InProgress { claim } = &task.body.state
            && let Some(run) = claim.run.clone()
        {
            held.push((*key, run));
        }
    }
    Ok(held)
}
