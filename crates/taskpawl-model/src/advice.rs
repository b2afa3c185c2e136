//! Advice: what to do next, as a value. Each border writes it in its own words: the terminal as a command, MCP as a call.
//!
//! Text of tasks, files and names stands in fields of these values and nowhere else, so that it cannot become an action.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::command_line::CommandLine;
use crate::scope::Selector;
use crate::spec::PERSON;
use crate::{RunId, Status, TaskId};

/// One thing to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Advice {
    /// Read a task.
    Show {
        /// The task.
        id: TaskId,
    },
    /// Find out why a task does not run.
    Explain {
        /// The task.
        id: TaskId,
    },
    /// Find out what is ready, and what no run here can take.
    ExplainReady {},
    /// Read what the calls of a task printed.
    Logs {
        /// The task.
        id: TaskId,
    },
    /// Read the events of a task; of all tasks without one.
    History {
        /// The task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<TaskId>,
    },
    /// Read the events of a run.
    HistoryOfRun {
        /// The run.
        run: RunId,
    },
    /// List tasks.
    List {
        /// In these states; in any without one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        status: Vec<Status>,
    },
    /// List what tasks can be selected by: their ids, plans and labels.
    ListSelectors {},
    /// List the runs.
    Runs {},
    /// Claim a task.
    Claim {
        /// The task.
        id: TaskId,
    },
    /// Claim the next manual task that is ready.
    ClaimNext {},
    /// Give a claim back.
    Release {
        /// The task.
        id: TaskId,
        /// The holder, in whose name it is given back; absent where that is the caller.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder: Option<String>,
    },
    /// Report a task as done.
    Done {
        /// The task.
        id: TaskId,
    },
    /// Let a person report a task as done that only a person ends.
    DoneByPerson {
        /// The task.
        id: TaskId,
    },
    /// Report a task as failed.
    Fail {
        /// The task.
        id: TaskId,
    },
    /// Skip a task.
    Skip {
        /// The task.
        id: TaskId,
    },
    /// Cancel a task.
    Cancel {
        /// The task.
        id: TaskId,
    },
    /// Take away what blocks a task.
    Unblock {
        /// The task.
        id: TaskId,
    },
    /// Approve a task.
    Approve {
        /// The task.
        id: TaskId,
        /// The answer, where the question has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
    /// Reject a task.
    Reject {
        /// The task.
        id: TaskId,
    },
    /// Put a task back to `todo`; what succeeded is kept.
    Retry {
        /// The task.
        id: TaskId,
        /// Whether what ran after it starts over as well.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cascade: bool,
    },
    /// Put every failed task back to `todo`.
    RetryFailed {
        /// Of these alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        only: Vec<Selector>,
    },
    /// Put a task back to `todo`; nothing of it is kept.
    Reopen {
        /// The task.
        id: TaskId,
        /// Whether what ran after it starts over as well.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cascade: bool,
    },
    /// Run everything that is ready.
    RunReady {
        /// Of these alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        only: Vec<Selector>,
        /// Whether the run also waits for agents and people.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        wait: bool,
    },
    /// Run one task.
    RunOne {
        /// The task.
        id: TaskId,
    },
    /// Let a task depend on another one.
    AddDependency {
        /// The task.
        id: TaskId,
        /// The other one.
        on: TaskId,
    },
    /// Give a plan another name.
    RenamePlan {
        /// Its name.
        from: String,
        /// The new name.
        to: String,
    },
    /// Undo a command.
    Undo {
        /// Its revision; absent where the caller has to find it first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<u64>,
    },
    /// Repair the store.
    DoctorFix {},
    /// Look at a file of the project and trust it.
    Trust {},
    /// Find the files of the configuration.
    ConfigPath {},
    /// List the tools.
    ListTools {
        /// Whether MCP servers are started for that.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        connect: bool,
    },
    /// Do several things, each after the one before it has succeeded.
    Then {
        /// The steps.
        steps: Vec<Advice>,
    },
}

impl Advice {
    /// Advises to read a task.
    pub fn show(id: &TaskId) -> Self {
        Self::Show { id: id.clone() }
    }

    /// Advises to find out why a task does not run.
    pub fn explain(id: &TaskId) -> Self {
        Self::Explain { id: id.clone() }
    }

    /// Advises to read what the calls of a task printed.
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

    /// Advises how a manual task that is ready is ended, by its assignee.
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

    /// Advises to take away what blocks a task.
    pub fn unblock(id: &TaskId) -> Self {
        Self::Unblock { id: id.clone() }
    }

    /// Advises to put a task back to `todo` and keep what succeeded.
    pub fn retry(id: &TaskId) -> Self {
        Self::Retry { id: id.clone(), cascade: false }
    }

    /// Advises to put a task back to `todo` and keep nothing.
    pub fn reopen(id: &TaskId) -> Self {
        Self::Reopen { id: id.clone(), cascade: false }
    }

    /// Advises to run everything that is ready, of `only` alone where that names something.
    pub fn run_ready(only: &[Selector]) -> Self {
        Self::RunReady { only: only.to_vec(), wait: false }
    }

    /// Advises to run what is ready of one task and below it.
    pub fn run_ready_of(id: &TaskId) -> Self {
        Self::run_ready(&[Selector::Task(id.to_string())])
    }

    /// Advises to start what failed again, and to run it.
    pub fn retry_failed_then_run(only: &[Selector]) -> Self {
        Self::Then { steps: vec![Self::RetryFailed { only: only.to_vec() }, Self::run_ready(only)] }
    }

    /// Returns what decides about a question: an approval, one for each answer where it has several, and the rejection.
    pub fn decisions(id: &TaskId, options: &[String]) -> Vec<Self> {
        let answers = options.iter().map(|option| Some(option.clone()));
        let plain = options.is_empty().then_some(None);
        let approvals = answers.chain(plain).map(|answer| Self::Approve { id: id.clone(), answer });
        approvals.chain([Self::Reject { id: id.clone() }]).collect()
    }

    /// Returns what settles a call of which nobody knows how it ended.
    pub fn settlements(id: &TaskId) -> [Self; 4] {
        [Self::logs(id), Self::done(id), Self::fail(id), Self::unblock(id)]
    }

    /// Returns the single steps of it.
    pub fn steps(&self) -> &[Self] {
        if let Self::Then { steps } = self { steps } else { std::slice::from_ref(self) }
    }

    /// Returns whether it runs everything that is ready, alone or as a step.
    pub fn is_run(&self) -> bool {
        self.steps().iter().any(|step| matches!(step, Self::RunReady { .. }))
    }

    /// Returns whether only a person carries it out: it decides about what agents do, or repairs what they cannot reach.
    pub fn is_for_people(&self) -> bool {
        matches!(
            self,
            Self::Approve { .. }
                | Self::Reject { .. }
                | Self::DoneByPerson { .. }
                | Self::Unblock { .. }
                | Self::Undo { .. }
                | Self::RenamePlan { .. }
                | Self::DoctorFix {}
                | Self::Trust {}
                | Self::ConfigPath {}
                | Self::ListTools { .. }
        )
    }
}

/// A plain command line, without the flags of any command.
impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&CommandLine::default().of(self))
    }
}

/// Advice that is shown and serialized as a command line.
///
/// The advice is the value; the line only says which flags the border adds where it writes it.
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

    /// Has it written with the flags of `line`.
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

/// Compares the command line as it is written.
impl PartialEq<str> for Advised {
    fn eq(&self, line: &str) -> bool {
        self.to_string().as_str() == line
    }
}

/// Compares the command line as it is written.
impl PartialEq<&str> for Advised {
    fn eq(&self, line: &&str) -> bool {
        self == *line
    }
}

/// Compares the command line as it is written.
impl PartialEq<String> for Advised {
    fn eq(&self, line: &String) -> bool {
        self == line.as_str()
    }
}
