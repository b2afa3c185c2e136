//! Errors of commands: message, hint and exit code.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use taskpawl::model::advice::Hint;
use taskpawl::model::command::{ChangesSince, Conflict, ConflictingChange, Refusal};
use taskpawl::model::plan::{PlanErrors, Position};
use taskpawl::model::value::RunId;
use taskpawl::model::value::bounded::{self, Group};
use taskpawl::store::{PlacementError, StoreError};
use taskpawl::tools::{NamedGrant, PolicyError};
use taskpawl::{Error, OpenError, RunError};
use taskpawl_planner::PlannerError;
use taskpawl_text::error_chain;

use crate::agents::Trouble;
use crate::caller::AgentSign;
use crate::collector::SendError;
use crate::config::ConfigError;
use crate::pin::PinFault;

/// The error of a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The command line cannot be parsed. clap also reports `--help` and `--version` this way.
    #[error(transparent)]
    Clap(#[from] clap::Error),
    /// The command line can be parsed but is invalid.
    #[error("{message}")]
    Usage { message: String, hint: Option<Hint> },
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The policy is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A policy forbids the requested change of the sandbox.
    #[error("refused to {what}: {why}")]
    Forbidden { what: &'static str, why: String },
    /// A JSON store lies where programs may write, so that no sandbox can protect it.
    #[error(
        "the store `{}` lies where programs write, and no sandbox keeps them from it there: each change puts a new file in its place",
        .path.display()
    )]
    StoreInReach { path: PathBuf },
    /// Only a person may decide, and the process has no terminal.
    #[error("`{by}` is for a person at a terminal, and there is none here")]
    NoTerminal { by: &'static str },
    /// Only a person may decide, and the caller is an agent.
    #[error("`{by}` is for a person, and {sign}")]
    ByAgent { by: &'static str, sign: AgentSign },
    /// A run of the project is at work.
    #[error("`{by}` needs a project at rest, and run `{run}` is at work")]
    RunAtWork { by: &'static str, run: RunId },
    /// Only a person widens the sandbox, unless a policy lets agents do it in this way.
    #[error("`{flag}` is for a person, and {sign}")]
    GrantByAgent { flag: &'static str, grant: NamedGrant, sign: AgentSign },
    /// The PIN is missing, wrong or locked.
    #[error("`{by}` needs the PIN: {fault}")]
    Pin { by: &'static str, fault: PinFault },
    /// A file that names MCP servers cannot be read.
    #[error(transparent)]
    Servers(#[from] taskpawl_mcp::FileError),
    /// A file that the command line names cannot be read or written.
    #[error("failed to {action} `{}`", .path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },
    /// A file of a coding agent cannot be changed in its present form.
    #[error("failed to change `{path}`")]
    AgentFile {
        path: String,
        #[source]
        trouble: Box<Trouble>,
    },
    /// A plan file is invalid.
    #[error("the plan `{file}` has {}", if .errors.errors().len() == 1 { "an error".to_owned() } else { format!("{} errors", .errors.errors().len()) })]
    Plan { file: String, errors: PlanErrors },
    /// A file of another program is invalid.
    #[error("it cannot be read as {}", .format)]
    Foreign { format: &'static str, errors: Vec<taskpawl_formats::FormatError> },
    /// An export would overwrite content that the store does not have.
    #[error("`{}` stays as it is: {why}", .path.display())]
    NotHere { path: PathBuf, why: String, hint: Hint },
    /// Arguments of tool calls do not fit the tools.
    #[error("the tool calls do not fit their tools")]
    Calls { problems: Vec<Problem> },
    /// The schedule of a plan is invalid.
    #[error("the schedule of the plan is invalid")]
    Schedule { problems: Vec<Problem> },
    /// Tasks of a plan depend on tasks that are neither in the plan nor in the store.
    #[error("{}", if .problems.len() == 1 { "a dependency of the plan does not exist".to_owned() } else { format!("{} dependencies of the plan do not exist", .problems.len()) })]
    References { problems: Vec<Problem> },
    /// The model refused the command, or the store failed.
    #[error(transparent)]
    Command(#[from] Error),
    /// No location for the store can be determined.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A run failed as a whole; a failed task is no error.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The operating system refused a resource that a run needs.
    #[error("failed to start the runtime")]
    Runtime(#[source] io::Error),
    /// The connection to an MCP client failed.
    #[error("failed to serve the client")]
    Serve(#[source] taskpawl_mcp::ServeError),
    /// The server cannot listen on its address.
    #[error(transparent)]
    Listen(taskpawl_http::ListenError),
    /// A trace cannot be sent.
    #[error("failed to send the trace to `{url}`")]
    Collector { url: String, source: SendError },
    /// The engine of calls on other machines does not answer.
    #[error("failed to reach the Restate server")]
    Engine { source: taskpawl_restate::HttpError },
    /// A planner gave no answer.
    #[error(transparent)]
    Planner(#[from] PlannerError),
    /// No plan of a planner was accepted.
    #[error("{message}")]
    NoPlan { message: String, problems: Vec<Problem>, hint: Hint },
    /// A question is for a person, and there is no terminal to ask at.
    #[error("there is no terminal here to ask {what}")]
    Unasked { what: String, hint: Hint },
    /// The output cannot be written as JSON, or the terminal cannot be used.
    #[error("failed to write to standard output")]
    Output(#[source] io::Error),
    /// Standard output has failed, so the command stops early. The end of the process reports the failure.
    #[error("standard output is closed")]
    Unread,
}

/// One error in a file or an argument.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Problem {
    /// The file, if the error is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
    /// The column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<u32>,
    /// The path of the field, or the id of the task.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) path: String,
    /// The error itself, without its position.
    pub(crate) message: String,
    /// The next step; written to JSON as text.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub(crate) hint: Option<Hint>,
}

#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
fn as_text<S: Serializer>(hint: &Option<Hint>, serializer: S) -> Result<S::Ok, S::Error> {
    hint.as_ref().map(ToString::to_string).serialize(serializer)
}

impl Problem {
    /// Returns a problem at a position of a file. The default position stands for an unknown one and is omitted.
    pub(crate) fn at(file: Option<&str>, at: Position, path: String, message: String) -> Self {
        let is_known = at != Position::default();
        Self {
            file: file.map(str::to_owned),
            line: is_known.then_some(at.line),
            column: is_known.then_some(at.column),
            path,
            message,
            hint: None,
        }
    }

    /// Groups problems with equal messages and hints; only their positions differ.
    pub(crate) fn kinds(problems: Vec<Self>) -> Vec<Group<Self>> {
        let hint = |problem: &Self| problem.hint.as_ref().map(ToString::to_string);
        bounded::grouped(problems, |problem| (problem.message.clone(), hint(problem)))
    }

    /// Returns `FILE:LINE:COLUMN: PATH: message`, without the unknown parts.
    pub(crate) fn line(&self) -> String {
        let mut line = self.file.clone().unwrap_or_default();
        for at in [self.line, self.column].into_iter().flatten() {
            let _ = write!(line, ":{at}");
        }
        for part in [&self.path, &self.message].into_iter().filter(|part| !part.is_empty()) {
            line.push_str(if line.is_empty() { "" } else { ": " });
            line.push_str(part);
        }
        line
    }
}

fn foreign(error: &taskpawl_formats::FormatError) -> Problem {
    let parts = [&error.record, &error.field].into_iter().filter(|part| !part.is_empty());
    let path = parts.map(|part| format!("`{part}`")).collect::<Vec<_>>().join(": ");
    Problem {
        file: Some(error.file.clone()),
        line: error.line,
        column: None,
        path,
        message: error.problem.clone(),
        hint: Some(error.hint.clone()).filter(|hint| !hint.is_empty()),
    }
}

/// Returns the changes that prevent an undo, one for each task.
fn touches_of(refusal: &Refusal) -> Vec<Problem> {
    let Refusal::TouchedSince { touches, .. } = refusal else { return Vec::new() };
    let problem = |touch: &ConflictingChange| {
        let said = touch.to_string();
        // `path` of the problem already names the task.
        let message = said.trim_start_matches(&format!("`{}` ", touch.task)).to_owned();
        Problem::at(None, Position::default(), touch.task.to_string(), message)
    };
    touches.iter().map(problem).collect()
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        Self::Command(Error::from(error))
    }
}

impl From<Refusal> for CliError {
    fn from(refusal: Refusal) -> Self {
        Self::Command(Error::from(refusal))
    }
}

/// The class of an error, which decides the exit code and the word in `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Usage,
    UnknownId,
    Refused,
    Store,
    Planner,
    NothingReady,
    Engine,
}

impl Class {
    /// Returns the exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::NothingReady => 5,
            Self::Engine => 4,
            Self::UnknownId => 6,
            Self::Refused => 7,
            Self::Store | Self::Planner => 8,
        }
    }

    /// Returns the word in JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::UnknownId => "unknown_id",
            Self::Refused => "refused",
            Self::Store => "store",
            Self::Planner => "planner",
            Self::NothingReady => "nothing_ready",
            Self::Engine => "engine",
        }
    }
}

impl CliError {
    /// Returns an error for an invalid command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: None }
    }

    /// Returns an error for an invalid command line, with a hint.
    pub(crate) fn usage_with(message: impl Into<String>, hint: impl Into<Hint>) -> Self {
        Self::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Clap(_)
            | Self::Usage { .. }
            | Self::Config(_)
            | Self::Servers(_)
            | Self::Policy(_)
            | Self::Open(OpenError::Policy(_))
            | Self::AgentFile { .. }
            | Self::File { .. } => Class::Usage,
            Self::Plan { .. }
            | Self::Foreign { .. }
            | Self::NotHere { .. }
            | Self::Calls { .. }
            | Self::Schedule { .. }
            | Self::NoTerminal { .. }
            | Self::ByAgent { .. }
            | Self::RunAtWork { .. }
            | Self::GrantByAgent { .. }
            | Self::Pin { .. }
            | Self::Forbidden { .. }
            | Self::StoreInReach { .. }
            | Self::NoPlan { .. }
            | Self::Unasked { .. }
            | Self::Run(RunError::MissingVariables { .. })
            | Self::Placement(PlacementError::Copied { .. } | PlacementError::StateInsideProject { .. }) => {
                Class::Refused
            }
            Self::References { .. } => Class::UnknownId,
            Self::Engine { .. } | Self::Run(RunError::EngineSilent { .. }) => Class::Engine,
            Self::Run(RunError::RunsElsewhere { .. }) => Class::Refused,
            Self::Planner(_) => Class::Planner,
            Self::Command(error) | Self::Run(RunError::Command(error)) => class_of(error),
            Self::Placement(_)
            | Self::Open(_)
            | Self::Run(_)
            | Self::Runtime(_)
            | Self::Serve(_)
            | Self::Listen(_)
            | Self::Collector { .. }
            | Self::Output(_)
            | Self::Unread => Class::Store,
        }
    }

    /// Returns the next step. The caller adds the flags of this command to the commands in it.
    pub(crate) fn hint(&self) -> Option<Hint> {
        match self {
            Self::Usage { hint, .. } => hint.clone(),
            Self::NotHere { hint, .. } | Self::NoPlan { hint, .. } | Self::Unasked { hint, .. } => {
                Some(hint.clone()).filter(|hint| !hint.to_string().is_empty())
            }
            Self::Config(error) => Some(error.hint().into()),
            Self::Policy(error) | Self::Open(OpenError::Policy(error)) => error.hint().map(Hint::from),
            Self::Forbidden { .. } => Some(
                Hint::new("leave the flag or the setting out; ")
                    .command("policy list")
                    .text(" shows the rules of the files"),
            ),
            Self::StoreInReach { .. } => Some(
                "move it into `.taskpawl` of the project, as in `--store json:.taskpawl/tasks.json`, or out of the project; a database is kept \
                 from programs anywhere; or let them do whatever you may, by `--sandbox=off`"
                    .into(),
            ),
            Self::NoTerminal { .. } => Some(
                "give the command in a terminal; a program that embeds taskpawl decides by an `Approver`"
                    .into(),
            ),
            Self::ByAgent { sign, .. } => Some(sign.hint().into()),
            Self::RunAtWork { .. } => Some(Hint::default().command("stop").text(" ends it")),
            Self::GrantByAgent { grant, sign, .. } => Some(format!(
                "{}; or your policy lets agents do it: `agents_may = [\"{grant}\"]`",
                sign.hint()
            ).into()),
            Self::Pin { fault, .. } => Some(fault.hint()),
            Self::Servers(_) => Some("`mcp.configs` of your configuration names this file".into()),
            Self::Command(error) | Self::Run(RunError::Command(error)) => error.hint(),
            Self::Run(RunError::MissingVariables { names, .. }) => Some(pass_variable(names)),
            Self::Run(RunError::RunsElsewhere { .. } | RunError::EngineSilent { .. }) => Some(join_hint()),
            Self::Run(RunError::ProjectFiles { .. }) => {
                Some("use `--files shared` with a directory that both sides have, or make it a repository".into())
            }
            Self::Engine { .. } => {
                Some("start the server, or name its address: `--restate-admin URL`".into())
            }
            Self::Placement(error) => Some(error.hint()),
            Self::File { action, source, .. } => Some(file_hint(action, source.kind()).into()),
            Self::AgentFile { trouble, .. } => {
                Some(format!("nothing was changed; {}, and try again", trouble.advice()).into())
            }
            Self::Clap(error) => Some(clap_hint(error).into()),
            Self::Plan { .. }
            | Self::Foreign { .. }
            | Self::Calls { .. }
            | Self::Schedule { .. }
            | Self::References { .. }
            | Self::Open(_)
            | Self::Run(_)
            | Self::Runtime(_)
            | Self::Serve(_)
            | Self::Listen(_)
            | Self::Collector { .. }
            | Self::Planner(_)
            | Self::Output(_)
            | Self::Unread => None,
        }
    }

    pub(crate) fn problems(&self) -> Vec<Problem> {
        match self {
            Self::Plan { file, errors } => problems_of(Some(file), errors),
            Self::Command(Error::Invalid(errors)) => problems_of(None, errors),
            Self::Command(Error::Refused(refusal)) => touches_of(refusal),
            Self::Calls { problems }
            | Self::Schedule { problems }
            | Self::References { problems }
            | Self::NoPlan { problems, .. } => problems.clone(),
            Self::Foreign { errors, .. } => errors.iter().map(foreign).collect(),
            Self::Clap(_)
            | Self::Usage { .. }
            | Self::NotHere { .. }
            | Self::Config(_)
            | Self::Policy(_)
            | Self::NoTerminal { .. }
            | Self::ByAgent { .. }
            | Self::RunAtWork { .. }
            | Self::GrantByAgent { .. }
            | Self::Pin { .. }
            | Self::Forbidden { .. }
            | Self::StoreInReach { .. }
            | Self::Servers(_)
            | Self::AgentFile { .. }
            | Self::File { .. }
            | Self::Command(_)
            | Self::Placement(_)
            | Self::Open(_)
            | Self::Run(_)
            | Self::Runtime(_)
            | Self::Serve(_)
            | Self::Listen(_)
            | Self::Collector { .. }
            | Self::Engine { .. }
            | Self::Planner(_)
            | Self::Unasked { .. }
            | Self::Output(_)
            | Self::Unread => Vec::new(),
        }
    }

    /// Returns all conflicts; the message names only the first few.
    pub(crate) fn conflicts(&self) -> Vec<Problem> {
        let Self::Command(Error::Refused(refusal)) = self else { return Vec::new() };
        let (Refusal::PlanConflict { conflicts, .. } | Refusal::ImportConflict { conflicts, .. }) =
            &**refusal
        else {
            return Vec::new();
        };
        let problem = |conflict: &Conflict| {
            Problem::at(None, Position::default(), conflict.task.to_string(), conflict.why.clone())
        };
        conflicts.iter().map(problem).collect()
    }

    /// Returns the changes of a task since the caller read it, if another actor was faster.
    pub(crate) fn since(&self) -> Option<&ChangesSince> {
        let Self::Command(Error::Refused(refusal)) = self else { return None };
        refusal.since()
    }

    /// Returns the message with its chain of causes, on one line.
    pub(crate) fn message(&self) -> String {
        bounded::message(&self.whole_message()).into_owned()
    }

    fn whole_message(&self) -> String {
        if let Self::Clap(error) = self {
            let text = error.render().to_string();
            let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
            return lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned();
        }
        // The problems follow as lines of their own; the chain would repeat them.
        if let Self::Command(Error::Invalid(_)) = self {
            return "the fields do not fit".to_owned();
        }
        if let Self::Command(Error::Refused(refusal)) = self
            && let Refusal::TouchedSince { revision, .. } = &**refusal
        {
            return format!("revision {revision} cannot be undone: something touched its tasks since");
        }
        error_chain(self)
    }
}

fn file_hint(action: &str, kind: io::ErrorKind) -> &'static str {
    match (action, kind) {
        ("write", _) => "check the path and its permissions",
        (_, io::ErrorKind::IsADirectory) => "name a file, not the directory that it is in",
        _ => "check the path; `-` stands for standard input",
    }
}

/// Returns the flags that pass variables of this process to a run.
fn pass_variable(names: &[String]) -> Hint {
    let name = names.first().map_or("NAME", String::as_str);
    format!(
        "pass it to the run: `--env {name}`, `--env {name}=VALUE` or, to redact it, `--secret-env {name}`"
    )
    .into()
}

/// Returns the suggestion in clap's message, or else a pointer to `--help`.
fn clap_hint(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    tip.unwrap_or("try `--help`").to_owned()
}

fn class_of(error: &Error) -> Class {
    match error {
        Error::Refused(refusal) if refusal.is_about_ids() => Class::UnknownId,
        Error::Refused(refusal) if matches!(**refusal, Refusal::NothingReady) => Class::NothingReady,
        Error::Refused(refusal) if matches!(**refusal, Refusal::Contradiction { .. }) => Class::Usage,
        Error::Refused(_) | Error::Invalid(_) => Class::Refused,
        Error::Store(_) | Error::Decide(_) | _ => Class::Store,
    }
}

fn problems_of(file: Option<&str>, errors: &PlanErrors) -> Vec<Problem> {
    let problem = |error: &taskpawl::model::plan::PlanError| {
        let problem = Problem::at(file, error.at, error.path.clone(), error.problem.to_string());
        Problem { hint: error.hint.clone(), ..problem }
    };
    errors.errors().iter().map(problem).collect()
}

/// Returns the hint for a run that finds calls of a killed run on workers.
fn join_hint() -> Hint {
    Hint::default()
        .command("run-all-ready --engine restate")
        .text(" joins them; after 24 hours they count as interrupted")
}
