//! The end of a run as a type to match on.

use taskpawl_model::task::Status;

use crate::summary::{FailureGroup, NotRun, RunSummary, Waiting};

/// The state in which a run left its tasks. See [`RunSummary::outcome`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// All tasks have ended, and none has failed.
    Done,
    /// Tasks have failed.
    Failed(&'a [FailureGroup]),
    /// Tasks wait for an approval, for an agent, or for a decision. No task has failed.
    Waiting {
        /// Ready and claimed tasks.
        tasks: &'a [Waiting],
        /// Tasks that are blocked until a person decides.
        blocked: &'a [Waiting],
    },
    /// Tasks cannot start for another reason.
    Blocked {
        /// Blocked tasks.
        tasks: &'a [Waiting],
        /// Tasks that this run could not start.
        not_run: &'a [NotRun],
    },
    /// The run was asked to stop.
    Stopped,
}

impl RunSummary {
    /// Returns the outcome of the run. It says the same as the exit code, with the tasks that belong to it.
    pub fn outcome(&self) -> Outcome<'_> {
        match self.exit {
            0 => Outcome::Done,
            1 => Outcome::Failed(&self.failures),
            3 => Outcome::Waiting { tasks: &self.waiting, blocked: &self.blocked },
            4 => Outcome::Blocked { tasks: &self.blocked, not_run: &self.not_run },
            _ => Outcome::Stopped,
        }
    }

    /// Returns the number of tasks of the scope with a status.
    pub fn count(&self, status: Status) -> u64 {
        self.counts.get(status.as_str()).copied().unwrap_or_default()
    }
}
