//! Values of a specification that are well-formed and still mean nothing: plan files and commands refuse them alike.

use globset::GlobBuilder;
use serde_json::Value;

use crate::ByteSize;
use crate::paths;
use crate::plan::{shortened, word_hint};
use crate::spec::{Retry, TaskSpec};

/// The classes of errors that a call may end with: what `retryOn` may name.
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
    "tool_error",
    "server",
    "expression",
    "truncated",
    "invalid_args",
    "missing_tool",
    "emit",
    "cancelled",
    "interrupted",
    "lost",
    "failed",
    "panic",
    "reported",
];

/// A value that can be read and stands for nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueFault {
    /// A path that leads out of the project.
    #[error("`{path}` is no path beneath the project")]
    Outside {
        /// The path.
        path: String,
    },
    /// A path of which it cannot be told where it leads.
    #[error("`{path}` has alternatives that may lead out of the project")]
    Alternatives {
        /// The path.
        path: String,
    },
    /// A pattern that cannot be read.
    #[error("`{pattern}` is no pattern of paths: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why not.
        reason: String,
    },
    /// A number that no failed program ends with.
    #[error("must be an exit code from 1 to 255, is `{code}`")]
    ExitCode {
        /// The number.
        code: String,
    },
    /// A `keep` that no call can have.
    #[error("must be from 1B to {}, is `{keep}`", ByteSize::MAX_KEEP)]
    Keep {
        /// The size.
        keep: ByteSize,
    },
    /// A word for a kind of failure that there is not.
    #[error("unknown class of errors `{word}`")]
    Class {
        /// The word.
        word: String,
    },
}

impl ValueFault {
    /// Returns what to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::Outside { path } if path.starts_with('~') => {
                "`~` is not expanded; write the path from the directory of the project".to_owned()
            }
            Self::Outside { path } if path.starts_with('/') => {
                "write it from the directory of the project, without the `/` at its beginning; what lies elsewhere \
                 cannot be named here"
                    .to_owned()
            }
            Self::Outside { .. } => {
                "write it from the directory of the project; what lies above cannot be named here".to_owned()
            }
            Self::Alternatives { .. } => "write each path on its own".to_owned(),
            Self::Pattern { .. } => {
                "patterns have `*`, `**`, `?`, `[abc]` and `{a,b}`; a `[` that is part of a name is `[[]`"
                    .to_owned()
            }
            Self::Keep { .. } => "let the program write what is larger to a file, and hand on its path".to_owned(),
            Self::ExitCode { .. } => "0 is success, and no program ends with more than 255".to_owned(),
            Self::Class { word } if word.parse::<u8>().is_ok() => {
                format!("an exit code is a number: write `{word}` without quotes")
            }
            Self::Class { word } => {
                let known: Vec<String> = ERROR_CLASSES.iter().map(|&class| class.to_owned()).collect();
                format!("{}, and exit codes as numbers", word_hint(word, &known))
            }
        }
    }
}

/// Checks a path that a task writes.
pub(crate) fn check_path(path: &str) -> Result<(), ValueFault> {
    if has_unclear_alternatives(path) {
        return Err(ValueFault::Alternatives { path: shortened(path) });
    }
    match paths::beneath(path) {
        Some(_) => Ok(()),
        None => Err(ValueFault::Outside { path: shortened(path) }),
    }
}

/// Checks a pattern of files on which a result depends.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), ValueFault> {
    check_path(pattern)?;
    let built = GlobBuilder::new(pattern).literal_separator(true).build();
    built.map(drop).map_err(|error| ValueFault::Pattern {
        pattern: shortened(pattern),
        reason: error.kind().to_string().replace('\'', "`"),
    })
}

/// Checks how much of a result a call keeps.
pub(crate) fn check_keep(keep: ByteSize) -> Result<(), ValueFault> {
    if keep.is_keep() { Ok(()) } else { Err(ValueFault::Keep { keep }) }
}

/// Checks what `retryOn` names: an exit code, or a class of errors.
pub(crate) fn check_failure(failure: &Value) -> Result<(), ValueFault> {
    if let Value::String(word) = failure {
        let is_known = ERROR_CLASSES.contains(&word.as_str());
        return if is_known { Ok(()) } else { Err(ValueFault::Class { word: shortened(word) }) };
    }
    let is_code = failure.as_u64().is_some_and(|code| (1..=255).contains(&code));
    if is_code { Ok(()) } else { Err(ValueFault::ExitCode { code: shortened(&failure.to_string()) }) }
}

/// Returns the first value of a task that stands for nothing, with its field.
pub(crate) fn of_task(spec: &TaskSpec) -> Option<(&'static str, ValueFault)> {
    let written = spec.writes.iter().find_map(|path| check_path(path).err());
    let read =
        || spec.cache.iter().flat_map(|cache| &cache.inputs).find_map(|path| check_pattern(path).err());
    written
        .map(|fault| ("writes", fault))
        .or_else(|| read().map(|fault| ("cache", fault)))
        .or_else(|| unknown_failure(spec.retry.as_ref()).map(|fault| ("retry", fault)))
}

/// Returns the first failure of a policy that there is not.
pub fn unknown_failure(retry: Option<&Retry>) -> Option<ValueFault> {
    retry?.retry_on.iter().find_map(|failure| check_failure(failure).err())
}

/// Returns whether one of the alternatives in braces may lead out of where the others are.
fn has_unclear_alternatives(path: &str) -> bool {
    let Some(begin) = path.find('{') else { return false };
    let climbs = path[begin..].split(['/', '{', ',', '}']).any(|part| part == "..");
    climbs || (begin == 0 && ["{/", ",/"].iter().any(|absolute| path.contains(absolute)))
}
