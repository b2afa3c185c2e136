//! Errors of commands: message, hint and exit code.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Serialize, Serializer};
use taskpawl::model::bounded::{self, Group};
use taskpawl::model::{ChangesSince, Conflict, ConflictingChange, Hint, PlanErrors, Position, Refusal};
use taskpawl::store::{PlacementError, StoreError};
use taskpawl::tools::PolicyError;
use taskpawl::{Error, OpenError, RunError};
use taskpawl_text::error_chain;

use crate::agents::Trouble;
use crate::caller::AgentSign;
use crate::commands::history;
use crate::config::ConfigError;
use crate::output::{Output, SCHEMA_VERSION, say, to_text, write_out};
use crate::pin::PinFault;
use crate::shown::{Shown, shown};
use crate::text::{Paint, clean_block, style};

/// The error of a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The command line is not understood; or help or the version was asked for.
    #[error(transparent)]
    Clap(#[from] clap::Error),
    /// The command line is understood and makes no sense.
    #[error("{message}")]
    Usage { message: String, hint: Option<Hint> },
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The policy is wrong.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A policy keeps the sandbox as it is.
    #[error("refused to {what}: {why}")]
    Forbidden { what: &'static str, why: String },
    /// No sandbox keeps programs from a store that is a readable file among what they write.
    #[error(
        "the store `{}` lies where programs write, and no sandbox keeps them from it there: each change puts a new file in its place",
        .path.display()
    )]
    StoreInReach { path: PathBuf },
    /// Only a person decides, and there is no terminal of one.
    #[error("`{by}` is for a person at a terminal, and there is none here")]
    NoTerminal { by: &'static str },
    /// Only a person decides, and an agent gives the command.
    #[error("`{by}` is for a person, and {sign}")]
    ByAgent { by: &'static str, sign: AgentSign },
    /// The PIN is missing, wrong or locked.
    #[error("`{by}` needs the PIN: {fault}")]
    Pin { by: &'static str, fault: PinFault },
    /// A file that names MCP servers cannot be read.
    #[error(transparent)]
    Servers(#[from] taskpawl_mcp::FileError),
    /// A file that the command line names cannot be read or written.
    #[error("failed to {action} `{}`", .path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },
    /// A file that an agent reads cannot be changed as it is.
    #[error("failed to change `{path}`")]
    AgentFile {
        path: String,
        #[source]
        trouble: Box<Trouble>,
    },
    /// A plan file is wrong.
    #[error("the plan `{file}` has {}", if .errors.errors().len() == 1 { "an error".to_owned() } else { format!("{} errors", .errors.errors().len()) })]
    Plan { file: String, errors: PlanErrors },
    /// A file of another program is wrong.
    #[error("it cannot be read as {}", .format)]
    Foreign { format: &'static str, error: Box<taskpawl_formats::FormatError> },
    /// A file that would be written over has something that is not here.
    #[error("`{}` is not written over: {why}", .path.display())]
    NotHere { path: PathBuf, why: String, hint: Hint },
    /// Tool calls do not fit the tools that they name.
    #[error("the tool calls do not fit their tools")]
    Calls { problems: Vec<Problem> },
    /// Tasks of a plan depend on some that are neither in the plan nor in the store.
    #[error("{}", if .problems.len() == 1 { "a dependency of the plan does not exist".to_owned() } else { format!("{} dependencies of the plan do not exist", .problems.len()) })]
    References { problems: Vec<Problem> },
    /// The rules refuse it, or the store failed.
    #[error(transparent)]
    Command(#[from] Error),
    /// There is no place for the store.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The store could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A run could not go on.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A run could not start for want of something of the operating system.
    #[error("failed to start the runtime")]
    Runtime(#[source] io::Error),
    /// The conversation with a client came to nothing.
    #[error("failed to serve the client")]
    Serve(#[source] taskpawl_mcp::ServeError),
    /// There is no port to serve on.
    #[error(transparent)]
    Listen(taskpawl_mcp::ListenError),
    /// The output cannot be written as JSON, or the terminal cannot be used.
    #[error("failed to write to standard output")]
    Output(#[source] io::Error),
    /// Standard output failed, so that there is no reason to go on. The end of the process reports the failure.
    #[error("standard output is closed")]
    Unread,
}

/// The most kinds of faults in a text; `--json` has all faults.
pub(crate) const MAX_SHOWN: usize = bounded::MAX_ITEMS;

/// The most bytes of a line about a fault, so that all of them have at most 2 kB.
const MAX_LINE: usize = 180;

/// One thing that is wrong in a file or an argument.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Problem {
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
    /// The character in the line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<u32>,
    /// The field or the task.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) path: String,
    /// What is wrong.
    pub(crate) message: String,
    /// The next step; as JSON it is a text.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub(crate) hint: Option<Hint>,
}

#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
fn as_text<S: Serializer>(hint: &Option<Hint>, serializer: S) -> Result<S::Ok, S::Error> {
    hint.as_ref().map(ToString::to_string).serialize(serializer)
}

impl Problem {
    /// Returns a problem at a place of a file; a place that is not known is left out.
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

    /// Groups problems that are equal but for their places.
    pub(crate) fn kinds(problems: Vec<Self>) -> Vec<Group<Self>> {
        let hint = |problem: &Self| problem.hint.as_ref().map(ToString::to_string);
        bounded::grouped(problems, |problem| (problem.message.clone(), hint(problem)))
    }

    /// Returns `FILE:LINE:COLUMN: PATH: message`, without what is not known.
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

/// Returns what stands against an undo, by task.
fn touches_of(refusal: &Refusal) -> Vec<Problem> {
    let Refusal::TouchedSince { touches, .. } = refusal else { return Vec::new() };
    let problem = |touch: &ConflictingChange| {
        let said = touch.to_string();
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

/// Which exit code an error has, with the word that `--json` shows for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Usage,
    UnknownId,
    Refused,
    Store,
}

impl Class {
    fn code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::UnknownId => 6,
            Self::Refused => 7,
            Self::Store => 8,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::UnknownId => "unknown_id",
            Self::Refused => "refused",
            Self::Store => "store",
        }
    }
}

impl CliError {
    /// Returns an error about a command line that makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: None }
    }

    /// Returns an error about a command line that makes no sense, with what to do instead.
    pub(crate) fn usage_with(message: impl Into<String>, hint: impl Into<Hint>) -> Self {
        Self::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    fn class(&self) -> Class {
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
            | Self::NoTerminal { .. }
            | Self::ByAgent { .. }
            | Self::Pin { .. }
            | Self::Forbidden { .. }
            | Self::StoreInReach { .. }
            | Self::Placement(PlacementError::Copied { .. } | PlacementError::StateInsideProject { .. }) => {
                Class::Refused
            }
            Self::References { .. } => Class::UnknownId,
            Self::Command(error) | Self::Run(RunError::Command(error)) => class_of(error),
            Self::Placement(_)
            | Self::Open(_)
            | Self::Run(_)
            | Self::Runtime(_)
            | Self::Serve(_)
            | Self::Listen(_)
            | Self::Output(_)
            | Self::Unread => Class::Store,
        }
    }

    /// Returns the next step, whose commands the caller writes with the flags of this one.
    pub(crate) fn hint(&self) -> Option<Hint> {
        match self {
            Self::Usage { hint, .. } => hint.clone(),
            Self::NotHere { hint, .. } => Some(hint.clone()),
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
            Self::Pin { fault, .. } => Some(fault.hint()),
            Self::Servers(_) => Some("`mcp.configs` of your configuration names this file".into()),
            Self::Command(error) | Self::Run(RunError::Command(error)) => error.hint(),
            Self::Placement(error) => Some(error.hint()),
            Self::File { action, source, .. } => Some(file_hint(action, source.kind()).into()),
            Self::AgentFile { trouble, .. } => {
                Some(format!("nothing was changed; {}, and try again", trouble.advice()).into())
            }
            Self::Clap(error) => Some(clap_hint(error).into()),
            Self::Plan { .. }
            | Self::Foreign { .. }
            | Self::Calls { .. }
            | Self::References { .. }
            | Self::Open(_)
            | Self::Run(_)
            | Self::Runtime(_)
            | Self::Serve(_)
            | Self::Listen(_)
            | Self::Output(_)
            | Self::Unread => None,
        }
    }

    fn problems(&self) -> Vec<Problem> {
        match self {
            Self::Plan { file, errors } => problems_of(Some(file), errors),
            Self::Command(Error::Invalid(errors)) => problems_of(None, errors),
            Self::Command(Error::Refused(refusal)) => touches_of(refusal),
            Self::Calls { problems } | Self::References { problems } => problems.clone(),
            Self::Foreign { error, .. } => vec![foreign(error)],
            Self::Clap(_)
            | Self::Usage { .. }
            | Self::NotHere { .. }
            | Self::Config(_)
            | Self::Policy(_)
            | Self::NoTerminal { .. }
            | Self::ByAgent { .. }
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
            | Self::Output(_)
            | Self::Unread => Vec::new(),
        }
    }

    /// Returns all conflicts, of which the message names some.
    fn conflicts(&self) -> Vec<Problem> {
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

    /// Returns what became of a task in the meantime, where somebody else was faster.
    fn since(&self) -> Option<&ChangesSince> {
        let Self::Command(Error::Refused(refusal)) = self else { return None };
        refusal.since()
    }

    /// Returns the message and what caused it, in one line.
    pub(crate) fn message(&self) -> String {
        if let Self::Clap(error) = self {
            let text = error.render().to_string();
            let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
            return lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned();
        }
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

    /// Tells the caller, on standard error or with `--json` on standard output, and returns the exit code.
    pub(crate) fn report(&self, out: &Output) -> ExitCode {
        if let Self::Unread = self {
            return ExitCode::SUCCESS;
        }
        if let Self::Clap(error) = self
            && !error.use_stderr()
        {
            let help = error.render();
            let help = if out.paint.is_on {
                Shown::of_help(&help.ansi().to_string())
            } else {
                help.to_string().into()
            };
            let _ = write_out(&help);
            return ExitCode::SUCCESS;
        }
        match (self, out.is_json) {
            (_, true) => self.print_json(out),
            (Self::Clap(error), false) => print_usage(error, out.paint_err),
            (_, false) => self.print_text(out),
        }
        ExitCode::from(self.class().code())
    }

    fn print_text(&self, out: &Output) {
        let paint = out.paint_err;
        say(shown![paint.style(style::ERROR, "error:"), " ", clean_block(&self.message())]);
        let label = paint.style(style::HINT, "hint:");
        let groups = Problem::kinds(self.problems_in(out));
        for group in groups.iter().take(MAX_SHOWN) {
            let line = bounded::cut_to(&group.counted(&group.first.line()), MAX_LINE).into_owned();
            say(shown!["  ", clean_block(&line)]);
            if let Some(hint) = &group.first.hint {
                let hint = bounded::cut_to(&hint.to_string(), MAX_LINE).into_owned();
                say(shown!["    ", label, " ", clean_block(&hint)]);
            }
        }
        let more: usize = groups.iter().skip(MAX_SHOWN).map(|group| group.count).sum();
        if more > 0 {
            say(format!("  … and {more} more: `--json` lists all of them"));
        }
        for line in self.since().map(since_lines).unwrap_or_default() {
            say(shown!["  ", clean_block(&line)]);
        }
        if let Some(hint) = self.hint_in(out) {
            say(shown![label, " ", clean_block(&hint)]);
        }
    }

    /// Returns the hint, whose commands have the flags of this one.
    fn hint_in(&self, out: &Output) -> Option<String> {
        self.hint().map(|hint| hint.format_with(&*out.line))
    }

    /// As [`hint_in`](Self::hint_in), the problems with theirs.
    fn problems_in(&self, out: &Output) -> Vec<Problem> {
        let mut problems = self.problems();
        for hint in problems.iter_mut().filter_map(|problem| problem.hint.as_mut()) {
            *hint = hint.format_with(&*out.line).into();
        }
        problems
    }

    fn print_json(&self, out: &Output) {
        let error = ErrorJson {
            code: self.class().code(),
            kind: self.class().word(),
            message: self.message(),
            hint: self.hint_in(out),
            problems: [self.problems_in(out), self.conflicts()].concat(),
            since: self.since(),
        };
        let envelope = ErrorEnvelope { schema_version: SCHEMA_VERSION, error };
        let text = to_text(&envelope, out.is_pretty).expect("BUG: an error is always valid JSON");
        // The exit code tells it, too.
        let _ = write_out(&(text + "\n").into());
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorEnvelope<'a> {
    schema_version: u32,
    error: ErrorJson<'a>,
}

#[derive(Serialize)]
struct ErrorJson<'a> {
    code: u8,
    kind: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Problem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<&'a ChangesSince>,
}

fn since_lines(since: &ChangesSince) -> Vec<String> {
    let earlier = (since.earlier > 0).then(|| format!("since then: {} changes, and", since.earlier));
    let first = earlier.unwrap_or_else(|| "since then:".to_owned());
    std::iter::once(first).chain(since.events.iter().map(history::line)).collect()
}

/// Says what is wrong with a command line, whose words may be anybody's.
fn print_usage(error: &clap::Error, paint: Paint) {
    const LABEL: &str = "error:";
    let text = error.render().to_string();
    let (label, rest) = text.strip_prefix(LABEL).map_or(("", text.as_str()), |rest| (LABEL, rest));
    say(shown![paint.style(style::ERROR, label), clean_block(rest.trim_end())]);
}

fn file_hint(action: &str, kind: io::ErrorKind) -> &'static str {
    match (action, kind) {
        ("write", _) => "check the path, and who may write there",
        (_, io::ErrorKind::IsADirectory) => "name a file, not the directory that it is in",
        _ => "check the path; `-` stands for standard input",
    }
}

/// Returns the suggestion that stands in a message, or else where there is help.
fn clap_hint(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    tip.unwrap_or("try `--help`").to_owned()
}

fn class_of(error: &Error) -> Class {
    match error {
        Error::Refused(refusal) if refusal.is_about_ids() => Class::UnknownId,
        Error::Refused(refusal) if matches!(**refusal, Refusal::Contradiction { .. }) => Class::Usage,
        Error::Refused(_) | Error::Invalid(_) => Class::Refused,
        Error::Store(_) | Error::Decide(_) | _ => Class::Store,
    }
}

fn problems_of(file: Option<&str>, errors: &PlanErrors) -> Vec<Problem> {
    let problem = |error: &taskpawl::model::PlanError| {
        let problem = Problem::at(file, error.at, error.path.clone(), error.problem.to_string());
        Problem { hint: error.hint.clone(), ..problem }
    };
    errors.errors().iter().map(problem).collect()
}
