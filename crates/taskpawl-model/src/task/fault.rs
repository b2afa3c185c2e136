//! Checks of values that are well-formed but invalid, shared by plan files and commands.

use globset::GlobBuilder;
use serde_json::Value;

use crate::task::spec::{
    AGENT_TOOL, Approval, CallPart, CallSpec, ForEach, LOCAL_LABEL, Links, MERGE_TOOL, Question, Repeat,
    Retry, SandboxRequest, TaskSpec, Worktree,
};
use crate::task::wait::{WAIT_TOOL, WaitRequest};
use crate::value::paths;
use crate::value::{ByteSize, IdError, Period, check_id};
use taskpawl_json::shortened;
use taskpawl_text::word_hint;

/// The error classes of failed calls, as allowed in `retryOn`.
pub const ERROR_CLASSES: &[&str] = &[
    "exit_code",
    "timeout",
    "output_limit",
    "invalid_json",
    "spawn",
    "io",
    "outside_root",
    "protected",
    "blocked_address",
    "secret",
    "denied",
    "http",
    "http_status",
    "git",
    "conflict",
    "hook",
    "tool_error",
    "server",
    "expression",
    "truncated",
    "invalid_args",
    "missing_tool",
    "missing_artifact",
    "emit",
    "cancelled",
    "interrupted",
    "lost",
    "failed",
    "panic",
    "reported",
];

/// An invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueFault {
    /// A path outside the project.
    #[error("`{path}` is not a path inside the project")]
    Outside {
        /// The path.
        path: String,
    },
    /// A path with alternatives in braces, some of which may lead out of the project.
    #[error("`{path}` has alternatives that may be outside the project")]
    Alternatives {
        /// The path.
        path: String,
    },
    /// A path of an artifact that is not in the directory of the run.
    #[error("`{path}` is not a path in the directory of the run")]
    ArtifactPath {
        /// The path.
        path: String,
    },
    /// A path that is no directory in the project.
    #[error("`{path}` is not a directory in the project that a worktree can link")]
    Link {
        /// The path.
        path: String,
    },
    /// A text that is no media type.
    #[error("`{text}` is not a media type such as `text/markdown`")]
    MediaType {
        /// The text.
        text: String,
    },
    /// An invalid label of a worker.
    #[error("`{label}` is not a label of a worker")]
    WorkerLabel {
        /// The label.
        label: String,
    },
    /// An invalid glob.
    #[error("`{pattern}` is not a valid path pattern: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The reason.
        reason: String,
    },
    /// A number that is no exit code of a failed program.
    #[error("must be an exit code from 1 to 255, is `{code}`")]
    ExitCode {
        /// The number.
        code: String,
    },
    /// A `keep` outside its range.
    #[error("must be from 1B to {}, is `{keep}`", ByteSize::MAX_KEEP)]
    Keep {
        /// The size.
        keep: ByteSize,
    },
    /// An unknown error class.
    #[error("unknown error class `{word}`")]
    Class {
        /// The word.
        word: String,
    },
    /// A number or a duration outside its range.
    #[error("must be {rule}, is `{found}`")]
    Range {
        /// The range in words.
        rule: &'static str,
        /// The value.
        found: String,
    },
    /// An empty text.
    #[error("must not be empty")]
    Blank,
    /// A question about the result of a single call.
    #[error("`after` is for tasks: give `approval` to the task of the call")]
    ResultOfCall,
    /// An answer that the question does not offer.
    #[error("unknown answer `{word}`")]
    Answer {
        /// The word.
        word: String,
        /// The possible answers.
        known: Vec<String>,
    },
    /// A text that is no name of a branch or a commit.
    #[error("`{name}` is not the name of a {what}")]
    Reference {
        /// The text.
        name: String,
        /// `branch` or `commit`.
        what: &'static str,
    },
    /// A text that is no identifier.
    #[error(
        "`{text}` is not a valid name: it must begin with a letter or `_` and contain only letters, digits and `_`"
    )]
    Identifier {
        /// The text.
        text: String,
    },
    /// An invalid id.
    #[error(transparent)]
    Id(#[from] IdError),
    /// Arguments of `wait` that name no end of the wait.
    #[error("{problem}")]
    Wait {
        /// The problem.
        problem: String,
    },
    /// A value of a wrong type.
    #[error("expected {expected}")]
    Type {
        /// The expected type, in words.
        expected: &'static str,
    },
}

impl ValueFault {
    /// Returns the hint; empty if the error text says enough.
    pub fn hint(&self) -> String {
        match self {
            Self::Outside { path } if path.starts_with('~') => {
                "`~` is not expanded; write the path relative to the project directory".to_owned()
            }
            Self::Outside { path } if path.starts_with('/') => {
                "write it relative to the project directory, without the leading `/`; paths outside the project are not allowed here"
                    .to_owned()
            }
            Self::Outside { .. } => {
                "write it relative to the project directory; paths outside the project are not allowed here".to_owned()
            }
            Self::ArtifactPath { .. } => {
                "write it relative to `$TASKPAWL_ARTIFACTS`, without `.` and `..`, as in `plan.md`".to_owned()
            }
            Self::Alternatives { .. } => "write each path on its own".to_owned(),
            Self::Pattern { .. } => {
                "patterns have `*`, `**`, `?`, `[abc]` and `{a,b}`; a `[` that is part of a name is `[[]`"
                    .to_owned()
            }
            Self::WorkerLabel { .. } => {
                "labels have up to 64 letters, digits, `.`, `_` and `-`; `local` is the machine of the store"
                    .to_owned()
            }
            Self::Keep { .. } => "let the program write larger output to a file, and pass on its path".to_owned(),
            Self::Range { .. }
            | Self::Blank
            | Self::ResultOfCall
            | Self::Reference { .. }
            | Self::MediaType { .. }
            | Self::Link { .. }
            | Self::Identifier { .. }
            | Self::Id(_)
            | Self::Wait { .. }
            | Self::Type { .. } => String::new(),
            Self::Answer { word, known } => word_hint(word, known.iter().map(String::as_str)),
            Self::ExitCode { .. } => "0 means success, and exit codes end at 255".to_owned(),
            Self::Class { word } if word.parse::<u8>().is_ok() => {
                format!("an exit code is a number: write `{word}` without quotes")
            }
            Self::Class { word } => {
                let known: Vec<String> = ERROR_CLASSES.iter().map(|&class| class.to_owned()).collect();
                format!("{}, and exit codes as numbers", word_hint(word, known.iter().map(String::as_str)))
            }
        }
    }
}

/// Checks a path in `writes`.
pub(crate) fn check_path(path: &str) -> Result<(), ValueFault> {
    if has_unclear_alternatives(path) {
        return Err(ValueFault::Alternatives { path: shortened(path) });
    }
    match paths::beneath(path) {
        Some(_) => Ok(()),
        None => Err(ValueFault::Outside { path: shortened(path) }),
    }
}

/// Checks a directory of the project that a worktree links.
pub(crate) fn check_link(path: &str) -> Result<(), ValueFault> {
    check_path(path)?;
    let plain = paths::beneath(path).unwrap_or_default();
    let is_part = !plain.is_empty() && plain.split('/').next() != Some(".git");
    if is_part { Ok(()) } else { Err(ValueFault::Link { path: shortened(path) }) }
}

/// The highest number of ports of a worktree.
const MAX_PORTS: u32 = 20;

/// Checks the number of ports of a worktree.
pub(crate) fn check_ports(ports: u32) -> Result<(), ValueFault> {
    if (1..=MAX_PORTS).contains(&ports) {
        return Ok(());
    }
    Err(ValueFault::Range { rule: "from 1 to 20", found: ports.to_string() })
}

/// Checks the path of an artifact, relative to the directory of the run. Expressions in it are checked once they are evaluated.
pub(crate) fn check_artifact_path(path: &str) -> Result<(), ValueFault> {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_beneath = path.contains("${{") || path.split('/').all(is_plain);
    if is_beneath { Ok(()) } else { Err(ValueFault::ArtifactPath { path: shortened(path) }) }
}

/// Checks the media type of an artifact.
pub(crate) fn check_media_type(text: &str) -> Result<(), ValueFault> {
    let is_word = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&^_.+-".contains(c))
    };
    let is_type = text.split_once('/').is_some_and(|(kind, sub)| is_word(kind) && is_word(sub));
    if is_type { Ok(()) } else { Err(ValueFault::MediaType { text: shortened(text) }) }
}

/// Checks a label in `runsOn`, which is also a part of the names of workers' services.
pub(crate) fn check_worker_label(label: &str) -> Result<(), ValueFault> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_label = !label.is_empty() && label.len() <= 64 && label.chars().all(is_word);
    if is_label { Ok(()) } else { Err(ValueFault::WorkerLabel { label: shortened(label) }) }
}

/// Checks a glob in the `inputs` of a `cache` or in `sends`.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), ValueFault> {
    check_path(pattern)?;
    let built = GlobBuilder::new(pattern).literal_separator(true).build();
    built.map(drop).map_err(|error| ValueFault::Pattern {
        pattern: shortened(pattern),
        reason: error.kind().to_string().replace('\'', "`"),
    })
}

/// Checks the `keep` of a call.
pub(crate) fn check_keep(keep: ByteSize) -> Result<(), ValueFault> {
    if keep.is_keep() { Ok(()) } else { Err(ValueFault::Keep { keep }) }
}

/// Checks an entry of `retryOn`: an exit code or an error class.
pub(crate) fn check_failure(failure: &Value) -> Result<(), ValueFault> {
    if let Value::String(word) = failure {
        let is_known = ERROR_CLASSES.contains(&word.as_str());
        return if is_known { Ok(()) } else { Err(ValueFault::Class { word: shortened(word) }) };
    }
    let is_code = failure.as_u64().is_some_and(|code| (1..=255).contains(&code));
    if is_code { Ok(()) } else { Err(ValueFault::ExitCode { code: shortened(&failure.to_string()) }) }
}

/// The name of a field with the result of its check.
type FieldCheck = (&'static str, Result<(), ValueFault>);

fn first_fault(checks: impl IntoIterator<Item = FieldCheck>) -> Option<(&'static str, ValueFault)> {
    checks.into_iter().find_map(|(field, checked)| Some((field, checked.err()?)))
}

/// Returns the first invalid value of a task, with its field.
pub(crate) fn of_task(spec: &TaskSpec) -> Option<(&'static str, ValueFault)> {
    let cache = spec.cache.as_ref();
    let inputs = cache.iter().flat_map(|cache| &cache.inputs);
    first_fault([
        ("when", check_texts(&spec.when)),
        ("forEach", spec.for_each.as_ref().map_or(Ok(()), check_for_each)),
        ("repeat", spec.repeat.as_ref().map_or(Ok(()), check_repeat)),
        ("rework", spec.rework.map_or(Ok(()), check_count)),
        ("retry", check_retry(spec.retry.as_ref())),
        ("timeout", check_period(spec.timeout)),
        ("estimate", check_period(spec.estimate)),
        ("resources", spec.resources.values().try_for_each(|count| check_count(*count))),
        ("writes", spec.writes.iter().try_for_each(|path| check_path(path))),
        ("worktree", check_worktree(spec.worktree.as_deref())),
        ("runsOn", spec.runs_on.iter().try_for_each(|label| check_worker_label(label))),
        ("sends", spec.sends.iter().try_for_each(|path| check_pattern(path))),
        ("cache", inputs.clone().try_for_each(|path| check_pattern(path))),
        ("cache", check_texts(cache.and_then(|cache| cache.key.as_ref()))),
        ("sandbox", check_sandbox(spec.sandbox.as_ref())),
        ("trustInputs", check_texts(&spec.trust_inputs)),
        ("approval", check_approval(spec.approval.as_ref())),
    ])
}

/// Returns what stands against a worktree of a task, and a hint.
pub(crate) fn against_worktree<'c>(
    spec: &TaskSpec,
    mut calls: impl Iterator<Item = &'c CallSpec> + Clone,
) -> Option<(&'static str, &'static str)> {
    if !calls.clone().any(|call| call.part() == CallPart::Work) {
        return Some(("a task without calls", "give it `run` or `call`: they run in the worktree"));
    }
    if !spec.writes.is_empty() {
        return Some(("writes", "leave out `writes`: no other task writes into the worktree"));
    }
    if spec.cache.is_some() {
        return Some((
            "cache",
            "leave out `cache`: its inputs are files of the project, not of the worktree",
        ));
    }
    if spec.runs_on.iter().any(|label| label != LOCAL_LABEL) {
        return Some(("runsOn", "leave out `runsOn`: worktrees are on the machine of the store"));
    }
    if calls.any(|call| call.tool_name == MERGE_TOOL) {
        return Some(("a call of `merge`", "give the merge a task of its own: it works on the project"));
    }
    None
}

/// Checks the name of a branch or a commit.
pub(crate) fn check_reference(field: &str, name: &str) -> Result<(), ValueFault> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "\\:?*[".contains(c);
    let is_branch = field == "branch";
    let is_refused = name.starts_with(['-', '/', '.'])
        || name.ends_with(['/', '.'])
        || name.contains("..")
        || name.contains(is_odd)
        || is_branch
            && (name.contains(['~', '^', '@'])
                || name.contains("//")
                || name.contains("/.")
                || name.strip_suffix(".lock").is_some());
    if is_refused {
        return Err(ValueFault::Reference {
            name: shortened(name),
            what: if is_branch { "branch" } else { "commit" },
        });
    }
    Ok(())
}

/// Returns what stands against a question about the result of a task, and a hint.
pub(crate) fn against_approval_after<'c>(
    spec: &TaskSpec,
    mut calls: impl Iterator<Item = &'c CallSpec>,
) -> Option<(&'static str, &'static str)> {
    spec.approval_after()?;
    if calls.next().is_none() {
        return Some(("a task without calls", "give it `run` or `call`: the question is about their result"));
    }
    let hint = "leave out `cache`: a result of an earlier run was not accepted in this one";
    spec.cache.is_some().then_some(("cache", hint))
}

/// Returns the part that a task with `rework` lacks, and a hint.
pub(crate) fn rework<'c>(
    spec: &TaskSpec,
    mut calls: impl Iterator<Item = &'c CallSpec> + Clone,
) -> Option<(&'static str, &'static str)> {
    spec.rework?;
    if !calls.clone().any(|call| call.verify) {
        return Some(("`verify`", "give it `verify`: its failure is what the agent corrects"));
    }
    let is_agent = |call: &CallSpec| call.part() == CallPart::Work && call.tool_name == AGENT_TOOL;
    if calls.any(is_agent) {
        return None;
    }
    Some(("a call of `agent`", "`rework` sends the failure back to an agent; use `retry` for other calls"))
}

/// Returns the first empty text or invalid id of a task, with its field. Imported tasks may have them; authors get an
/// error.
pub(crate) fn blank_in_task(spec: &TaskSpec) -> Option<(&'static str, ValueFault)> {
    first_fault([
        ("name", check_text(&spec.name)),
        ("assignee", check_texts(&spec.assignee)),
        ("labels", check_texts(&spec.labels)),
        ("writes", check_texts(&spec.writes)),
        ("links", spec.links.as_ref().map_or(Ok(()), check_links)),
    ])
}

/// Returns the first invalid value of a tool call, with its field.
pub(crate) fn of_call(spec: &CallSpec) -> Option<(&'static str, ValueFault)> {
    first_fault([
        ("toolName", check_text(&spec.tool_name)),
        ("when", check_texts(&spec.when)),
        ("saveAs", spec.save_as.as_deref().map_or(Ok(()), check_identifier)),
        ("retry", check_retry(spec.retry.as_ref())),
        ("timeout", check_period(spec.timeout)),
        ("keep", spec.keep.map_or(Ok(()), check_keep)),
        ("sandbox", check_sandbox(spec.sandbox.as_ref())),
        ("trustInputs", check_texts(&spec.trust_inputs)),
        ("approval", check_approval_of_call(spec.approval.as_ref())),
        ("args", check_wait(spec)),
    ])
}

/// Checks the arguments of a durable wait. The rules carry it out, so that no tool checks them before it begins.
fn check_wait(spec: &CallSpec) -> Result<(), ValueFault> {
    if spec.tool_name != WAIT_TOOL {
        return Ok(());
    }
    WaitRequest::check(&spec.args).map_err(|problem| ValueFault::Wait { problem })
}

/// Checks the ids of links. Their length is not checked: generated ids are longer than authors may write.
fn check_links(links: &Links) -> Result<(), ValueFault> {
    let mut ids = links.relates_to.iter().chain(&links.discovered_from).chain(&links.duplicates);
    ids.try_for_each(|id| match check_id(id.as_str()) {
        Ok(()) | Err(IdError::TooLong { .. }) => Ok(()),
        Err(error @ (IdError::Empty | IdError::Character { .. })) => Err(error.into()),
    })
}

fn check_text(text: &str) -> Result<(), ValueFault> {
    if text.trim().is_empty() { Err(ValueFault::Blank) } else { Ok(()) }
}

fn check_texts<'t>(texts: impl IntoIterator<Item = &'t String>) -> Result<(), ValueFault> {
    texts.into_iter().try_for_each(|text| check_text(text))
}

fn check_count(count: u32) -> Result<(), ValueFault> {
    if count > 0 { Ok(()) } else { Err(range("at least 1", count)) }
}

fn check_period(period: Option<Period>) -> Result<(), ValueFault> {
    match period.filter(|period| period.0.is_zero()) {
        Some(period) => Err(range("longer than zero", period)),
        None => Ok(()),
    }
}

fn range(rule: &'static str, found: impl std::fmt::Display) -> ValueFault {
    ValueFault::Range { rule, found: found.to_string() }
}

/// Returns whether a text is an identifier of the expression language.
/// Returns whether a text is a name of a parameter or of an environment variable.
pub fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub(crate) fn check_identifier(text: &str) -> Result<(), ValueFault> {
    if is_identifier(text) { Ok(()) } else { Err(ValueFault::Identifier { text: shortened(text) }) }
}

fn check_for_each(for_each: &ForEach) -> Result<(), ValueFault> {
    if !(for_each.list.is_string() || for_each.list.is_array()) {
        return Err(ValueFault::Type {
            expected: "a list, or text with an expression that evaluates to one",
        });
    }
    for_each.concurrency.map_or(Ok(()), check_count)
}

fn check_repeat(repeat: &Repeat) -> Result<(), ValueFault> {
    check_text(&repeat.until)?;
    check_count(repeat.max)
}

fn check_worktree(worktree: Option<&Worktree>) -> Result<(), ValueFault> {
    let Some(worktree) = worktree else { return Ok(()) };
    worktree.branch.as_deref().map_or(Ok(()), |name| check_reference("branch", name))?;
    worktree.base.as_deref().map_or(Ok(()), |name| check_reference("base", name))?;
    worktree.link.iter().try_for_each(|path| check_link(path))?;
    worktree.copy.iter().try_for_each(|path| check_pattern(path))?;
    worktree.ports.map_or(Ok(()), check_ports)
}

fn check_retry(retry: Option<&Retry>) -> Result<(), ValueFault> {
    let Some(retry) = retry else { return Ok(()) };
    check_count(retry.attempts)?;
    if let Some(factor) = retry.factor.filter(|factor| !factor.is_finite() || *factor < 1.0) {
        return Err(range("at least 1", factor));
    }
    unknown_failure(Some(retry)).map_or(Ok(()), Err)
}

fn check_sandbox(sandbox: Option<&SandboxRequest>) -> Result<(), ValueFault> {
    check_texts(sandbox.iter().flat_map(|sandbox| sandbox.read.iter().chain(&sandbox.write)))
}

fn check_approval(approval: Option<&Approval>) -> Result<(), ValueFault> {
    let Some(question) = approval.and_then(Approval::question) else { return Ok(()) };
    if !question.after || !question.ask.is_empty() {
        check_text(&question.ask)?;
    }
    check_texts(&question.options)?;
    check_period(question.expires)?;
    question.on_expiry.as_deref().map_or(Ok(()), |word| check_answer(word, question))
}

/// Checks the approval of a call, which comes before the call starts.
pub(crate) fn check_approval_of_call(approval: Option<&Approval>) -> Result<(), ValueFault> {
    if approval.is_some_and(Approval::is_after) {
        return Err(ValueFault::ResultOfCall);
    }
    check_approval(approval)
}

/// Checks the answer that applies after the question has expired.
pub(crate) fn check_answer(word: &str, question: &Question) -> Result<(), ValueFault> {
    let mut known = vec!["reject".to_owned()];
    // A question with options needs one of them: `approve` would not answer it.
    known.extend(question.options.is_empty().then(|| "approve".to_owned()));
    known.extend(question.options.iter().cloned());
    if known.iter().any(|known| known == word) {
        return Ok(());
    }
    Err(ValueFault::Answer { word: shortened(word), known })
}

/// Returns the first invalid entry of `retryOn`.
pub fn unknown_failure(retry: Option<&Retry>) -> Option<ValueFault> {
    retry?.retry_on.iter().find_map(|failure| check_failure(failure).err())
}

/// Returns whether some alternatives in braces may lead to another directory than the others.
fn has_unclear_alternatives(path: &str) -> bool {
    let Some(begin) = path.find('{') else { return false };
    let climbs = path[begin..].split(['/', '{', ',', '}']).any(|part| part == "..");
    climbs || (begin == 0 && ["{/", ",/"].iter().any(|absolute| path.contains(absolute)))
}
