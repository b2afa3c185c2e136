//! Advice: suggested actions as values. The terminal formats them as commands, MCP as tool calls.
//!
//! Texts of tasks, files and names appear only in fields of these values, so that no such text can turn into an action.

pub(crate) mod command_line;
pub(crate) mod hint;

pub use command_line::{CommandLine, PlanWords};
pub use hint::{Hint, HintOption, HintPart, HintWords};

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::task::spec::{AGENT_TOOL, PERSON, WORKTREE_TOOL};
use crate::task::{ApprovalRequest, Grant, Status};
use crate::value::Selector;
use crate::value::{RunId, TaskId};

/// The note on a task whose silent holder lost its claim.
pub const SILENT_NOTE: &str = "released: its holder was silent";

/// One suggested action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Advice {
    /// Read a task.
    Show {
        /// Id of the task.
        id: TaskId,
    },
    /// Explain why a task is not running.
    Explain {
        /// Id of the task.
        id: TaskId,
    },
    /// Explain which tasks are ready, and which of them no run here can take.
    ExplainReady {},
    /// Read the output of a task's calls.
    Logs {
        /// Id of the task.
        id: TaskId,
    },
    /// Read the events of one task, or of all tasks.
    History {
        /// The task; `None` for all tasks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<TaskId>,
    },
    /// Read the events of a run.
    HistoryOfRun {
        /// Id of the run.
        run: RunId,
    },
    /// List tasks.
    List {
        /// Statuses to list; empty for all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        status: Vec<Status>,
    },
    /// List the values of selectors: ids, plans and labels.
    ListSelectors {},
    /// List the runs.
    Runs {},
    /// Claim a task.
    Claim {
        /// Id of the task.
        id: TaskId,
    },
    /// Claim the next manual task that is ready.
    ClaimNext {},
    /// Release a claim.
    Release {
        /// Id of the task.
        id: TaskId,
        /// Holder in whose name the task is released; absent for the caller itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder: Option<String>,
    },
    /// Release the claim of another agent that gave no command for half of its lease, with a note that says so.
    ReleaseSilent {
        /// Id of the task.
        id: TaskId,
    },
    /// Report a task as done.
    Done {
        /// Id of the task.
        id: TaskId,
    },
    /// Let a person mark a task as done that is assigned to `person`.
    DoneByPerson {
        /// Id of the task.
        id: TaskId,
    },
    /// Report a task as failed.
    Fail {
        /// Id of the task.
        id: TaskId,
    },
    /// Skip a task.
    Skip {
        /// Id of the task.
        id: TaskId,
    },
    /// Cancel a task.
    Cancel {
        /// Id of the task.
        id: TaskId,
    },
    /// Unblock a task.
    Unblock {
        /// Id of the task.
        id: TaskId,
    },
    /// Start every interrupted call again.
    UnblockInterrupted {
        /// Selectors to restrict it to; empty for all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        only: Vec<Selector>,
    },
    /// Approve a task.
    Approve {
        /// Id of the task.
        id: TaskId,
        /// Answer, if the question has several options.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
    /// Reject a task.
    Reject {
        /// Id of the task.
        id: TaskId,
    },
    /// Send the result of a task back to its agent.
    SendBack {
        /// Id of the task.
        id: TaskId,
    },
    /// Show the changes of a task in its worktree.
    Diff {
        /// Id of the task.
        id: TaskId,
    },
    /// Put a task back to `todo` and keep the results of successful calls.
    Retry {
        /// Id of the task.
        id: TaskId,
        /// True if dependents that already ran start over, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cascade: bool,
    },
    /// Put every failed task back to `todo`.
    RetryFailed {
        /// Selectors to restrict it to; empty for all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        only: Vec<Selector>,
    },
    /// Put a task back to `todo` and discard all its results.
    Reopen {
        /// Id of the task.
        id: TaskId,
        /// True if dependents that already ran start over, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cascade: bool,
    },
    /// Run all ready tasks.
    RunReady {
        /// Selectors to restrict it to; empty for all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        only: Vec<Selector>,
        /// True if the run also waits for agents and people.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        wait: bool,
        /// Ways to widen the sandbox of the run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        grants: Vec<Grant>,
    },
    /// Run one task.
    RunOne {
        /// Id of the task.
        id: TaskId,
    },
    /// Add a dependency.
    AddDependency {
        /// Id of the dependent task.
        id: TaskId,
        /// Id of the dependency.
        on: TaskId,
    },
    /// Rename a plan.
    RenamePlan {
        /// Current name.
        from: String,
        /// New name.
        to: String,
    },
    /// Undo a command.
    Undo {
        /// Revision of the command; absent if the caller has to look it up first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<u64>,
    },
    /// Repair the store.
    DoctorFix {},
    /// Review a file of the project and trust it.
    Trust {},
    /// Show the paths of the configuration files.
    ConfigPath {},
    /// List the tools.
    ListTools {
        /// True if MCP servers are started to list their tools.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        connect: bool,
    },
    /// Several actions; each requires that the previous one succeeded.
    Then {
        /// The actions, in order.
        steps: Vec<Advice>,
    },
}

impl Advice {
    /// Advises to read a task.
    pub fn show(id: &TaskId) -> Self {
        Self::Show { id: id.clone() }
    }

    /// Advises to explain why a task is not running.
    pub fn explain(id: &TaskId) -> Self {
        Self::Explain { id: id.clone() }
    }

    /// Advises to read the output of a task's calls.
    pub fn logs(id: &TaskId) -> Self {
        Self::Logs { id: id.clone() }
    }

    /// Advises to read the events of a task.
    pub fn history(id: &TaskId) -> Self {
        Self::History { id: Some(id.clone()) }
    }

    /// Advises to claim a task.
    pub fn claim(id: &TaskId) -> Self {
        Self::Claim { id: id.clone() }
    }

    /// Returns the actions that end a ready manual task, depending on its assignee.
    pub fn to_end(id: &TaskId, assignee: Option<&str>) -> Vec<Self> {
        if assignee == Some(PERSON) {
            return vec![Self::DoneByPerson { id: id.clone() }];
        }
        vec![Self::claim(id), Self::done(id)]
    }

    /// Advises to report a task as done.
    pub fn done(id: &TaskId) -> Self {
        Self::Done { id: id.clone() }
    }

    /// Advises to report a task as failed.
    pub fn fail(id: &TaskId) -> Self {
        Self::Fail { id: id.clone() }
    }

    /// Advises to skip a task.
    pub fn skip(id: &TaskId) -> Self {
        Self::Skip { id: id.clone() }
    }

    /// Advises to unblock a task.
    pub fn unblock(id: &TaskId) -> Self {
        Self::Unblock { id: id.clone() }
    }

    /// Advises to put a task back to `todo` and keep the results of successful calls.
    pub fn retry(id: &TaskId) -> Self {
        Self::Retry { id: id.clone(), cascade: false }
    }

    /// Advises to put a task back to `todo` and discard all its results.
    pub fn reopen(id: &TaskId) -> Self {
        Self::Reopen { id: id.clone(), cascade: false }
    }

    /// Advises to run all ready tasks, restricted to `only` unless it is empty.
    pub fn run_ready(only: &[Selector]) -> Self {
        Self::RunReady { only: only.to_vec(), wait: false, grants: Vec::new() }
    }

    /// Advises to run the ready tasks of one task and its subtasks.
    pub fn run_ready_of(id: &TaskId) -> Self {
        Self::run_ready(&[Selector::Task(id.to_string())])
    }

    /// Advises to retry all failed tasks and then run them, with a sandbox that `grants` widen.
    pub fn retry_failed_then_run(only: &[Selector], grants: Vec<Grant>) -> Self {
        let run = Self::RunReady { only: only.to_vec(), wait: false, grants };
        Self::Then { steps: vec![Self::RetryFailed { only: only.to_vec() }, run] }
    }

    /// Returns the possible decisions about a question.
    pub fn decisions_of(request: &ApprovalRequest) -> Vec<Self> {
        let id = &request.task;
        if request.takes_text {
            let answer = Some("ANSWER".to_owned());
            return vec![Self::Approve { id: id.clone(), answer }, Self::Reject { id: id.clone() }];
        }
        let decisions = Self::decisions(id, &request.options);
        let has = |tool| request.results.iter().any(|result| result.tool == tool);
        let diff = has(WORKTREE_TOOL).then(|| Self::Diff { id: id.clone() });
        let back = has(AGENT_TOOL).then(|| Self::SendBack { id: id.clone() });
        diff.into_iter().chain(decisions).chain(back).collect()
    }

    /// Returns the possible decisions: one approval, or one for each option, and the rejection.
    pub fn decisions(id: &TaskId, options: &[String]) -> Vec<Self> {
        let answers = options.iter().map(|option| Some(option.clone()));
        let plain = options.is_empty().then_some(None);
        let approvals = answers.chain(plain).map(|answer| Self::Approve { id: id.clone(), answer });
        approvals.chain([Self::Reject { id: id.clone() }]).collect()
    }

    /// Returns the actions that settle a call with an unknown outcome.
    pub fn settlements(id: &TaskId) -> [Self; 4] {
        [Self::logs(id), Self::done(id), Self::fail(id), Self::unblock(id)]
    }

    /// Returns the individual actions.
    pub fn steps(&self) -> &[Self] {
        if let Self::Then { steps } = self { steps } else { std::slice::from_ref(self) }
    }

    /// Returns whether it runs all ready tasks, alone or as one of several actions.
    pub fn is_run(&self) -> bool {
        self.steps().iter().any(|step| matches!(step, Self::RunReady { .. }))
    }

    /// Returns whether only a person may do it: it decides about the work of agents, or repairs things they cannot
    /// reach.
    pub fn is_for_people(&self) -> bool {
        matches!(
            self,
            Self::Approve { .. }
                | Self::Reject { .. }
                | Self::SendBack { .. }
                | Self::DoneByPerson { .. }
                | Self::Unblock { .. }
                | Self::UnblockInterrupted { .. }
                | Self::Undo { .. }
                | Self::RenamePlan { .. }
                | Self::DoctorFix {}
                | Self::Trust {}
                | Self::ConfigPath {}
                | Self::ListTools { .. }
        )
    }
}

/// Formats a command line without flags.
impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&CommandLine::default().of(self))
    }
}

/// Advice that is displayed and serialized as a command line.
///
/// The optional line only adds flags that every command of this invocation needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advised {
    advice: Advice,
    line: Option<Arc<CommandLine>>,
}

impl Advised {
    /// Returns the advice.
    pub fn advice(&self) -> &Advice {
        &self.advice
    }

    /// Sets the command line whose flags are added.
    pub fn write_as(&mut self, line: &Arc<CommandLine>) {
        self.line = Some(Arc::clone(line));
    }
}

impl From<Advice> for Advised {
    fn from(advice: Advice) -> Self {
        Self { advice, line: None }
    }
}

impl fmt::Display for Advised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.line {
            Some(line) => f.write_str(&line.of(&self.advice)),
            None => self.advice.fmt(f),
        }
    }
}

impl Serialize for Advised {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Compares with the formatted command line.
impl PartialEq<str> for Advised {
    fn eq(&self, line: &str) -> bool {
        self.to_string().as_str() == line
    }
}

/// Compares with the formatted command line.
impl PartialEq<&str> for Advised {
    fn eq(&self, line: &&str) -> bool {
        self == *line
    }
}

/// Compares with the formatted command line.
impl PartialEq<String> for Advised {
    fn eq(&self, line: &String) -> bool {
        self == line.as_str()
    }
}
