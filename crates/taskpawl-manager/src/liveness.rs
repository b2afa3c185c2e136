//! Liveness of runs. The manager does not run tools, so the engine has to tell it which runs are alive.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use serde::{Deserialize, Serialize};
use taskpawl_model::command::{Command, Refusal};
use taskpawl_model::rules::resolve;
use taskpawl_model::task::{BlockedReason, ClaimEnd, RunRecord, Status, Task, TaskStatus};
use taskpawl_model::value::{Key, RunId, TaskId};
use taskpawl_model::view::{View, ViewResult};

use crate::error::Error;
use crate::manager::Manager;

/// Detects dead runs and releases the tasks that they hold. The engine installs one; without it every run
/// counts as alive.
pub trait Liveness: Send + Sync + Debug {
    /// Returns whether a run is alive. Returns true if that cannot be determined.
    fn is_alive(&self, run: &RunId) -> bool;

    /// Releases those of `tasks` that dead runs hold, in one commit.
    fn recover(&self, manager: &Manager, tasks: &[Key]) -> Result<(), Error>;
}

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// The run is alive.
    Running,
    /// The run ended without finishing, because its process was killed or the machine crashed.
    Killed,
    /// The run ended with an exit code.
    Finished,
}

impl Manager {
    /// Returns the progress of a run.
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

    /// Marks tasks whose claim, wait, or time for a decision has ended without a commit that records it.
    /// Asks for the liveness of each run only once.
    pub(crate) fn mark_ended_claims<'a>(&self, tasks: impl IntoIterator<Item = &'a mut Task>) {
        let mut lives = BTreeMap::new();
        let mut now = None;
        for task in tasks {
            if let Some(BlockedReason::Approval { expires_at: Some(end), .. }) = &task.blocked_reason {
                task.question_over = *end <= *now.get_or_insert_with(|| self.source().now());
            }
            if let Some(time) = task.progress.waiting_for.as_ref().and_then(|wait| wait.time) {
                task.wait_over = time <= *now.get_or_insert_with(|| self.source().now());
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

    /// Marks cancelled tasks with the run that is still ending their calls.
    pub(crate) fn mark_ending<'a>(&self, tasks: impl IntoIterator<Item = &'a mut Task>) -> Result<(), Error> {
        let mut ending = None;
        for task in tasks.into_iter().filter(|task| task.status == Status::Cancelled) {
            let ending = match &mut ending {
                Some(ending) => ending,
                None => ending.insert(self.store().view(taskpawl_model::view::ending)?),
            };
            task.ended_by = ending.get(&task.id).filter(|run| self.is_alive(run)).cloned();
        }
        Ok(())
    }

    /// Recovers those tasks of a refused command that dead runs hold. Returns whether there were any.
    pub(crate) fn recover_named(&self, command: &Command, refusal: &Refusal) -> Result<bool, Error> {
        let Some(liveness) = self.liveness().filter(|_| self.is_by_hand()) else { return Ok(false) };
        let tasks = self.read(|view| Ok(held_by_runs(view, &affected_tasks(view, command, refusal)?)?))?;
        let tasks: Vec<Key> =
            tasks.into_iter().filter(|(_, run)| !liveness.is_alive(run)).map(|(key, _)| key).collect();
        if tasks.is_empty() {
            return Ok(false);
        }
        // The recovery is not a part of the idempotent request; otherwise it would consume the number of the
        // next command.
        liveness.recover(&self.clone().without_request(), &tasks)?;
        Ok(true)
    }
}

/// Returns the tasks that a command names, and after some refusals also their subtasks and the tasks that the
/// refusal lists.
fn affected_tasks(view: &dyn View, command: &Command, refusal: &Refusal) -> ViewResult<BTreeSet<Key>> {
    let mut keys = BTreeSet::new();
    // An unresolvable name is skipped: it is the reason of the refusal itself.
    keys.extend(command.names().into_iter().filter_map(|name| resolve(view, name).ok()));
    if let Refusal::StillEnding { id, .. } = refusal {
        keys.extend(view.key(id.as_str())?);
    }
    let listed: Vec<&TaskId> = if let Refusal::InProgress { tasks } = refusal {
        tasks.iter().collect()
    } else if let Refusal::PlanConflict { conflicts, .. } = refusal {
        // A plan file may change tasks that a dead run still holds.
        conflicts.iter().map(|conflict| &conflict.task).collect()
    } else {
        return Ok(keys);
    };
    for id in listed {
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
    Ok(keys)
}

/// Returns the tasks that a run holds, or whose calls it is still ending.
fn held_by_runs(view: &dyn View, keys: &BTreeSet<Key>) -> ViewResult<Vec<(Key, RunId)>> {
    let (mut held, ending) = (Vec::new(), taskpawl_model::view::ending(view)?);
    for key in keys {
        let Some(task) = view.task(*key)? else { continue };
        held.extend(ending.get(&task.id).map(|run| (*key, run.clone())));
        if let TaskStatus::InProgress { claim } = &task.body.state
            && let Some(run) = claim.run.clone()
        {
            held.push((*key, run));
        }
    }
    Ok(held)
}
