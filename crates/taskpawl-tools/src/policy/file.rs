//! Reading of policy files.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::layer::{Layer, LayerKind};
#[cfg(feature = "policy-files")]
pub(super) use super::parser::parse;
use crate::files::read_if_there;

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Error of loading a policy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A file cannot be read. Loading fails instead of ignoring it, for it may be the file that denies something.
    #[error("failed to read the policy `{}`", .path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file is not valid TOML.
    #[error("the policy `{}` is not valid TOML", .path.display())]
    Syntax {
        /// Path of the file.
        path: PathBuf,
        /// Location and description of the syntax error.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// This build has no parser for policy files. Loading fails instead of ignoring the file.
    #[error("the policy `{}` cannot be read by this build", .path.display())]
    NotBuilt {
        /// Path of the file.
        path: PathBuf,
    },
    /// A setting in a file is invalid.
    #[error("the policy `{}` line {line}: {problem}", .path.display())]
    Invalid {
        /// Path of the file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Description of the problem.
        problem: String,
        /// Hint on a correction.
        hint: Option<String>,
    },
    /// A rule fails one of its examples: it does not apply to a `match` example, or it applies to a `notMatch` example.
    #[error("the policy `{}` line {line}: the rule `{rule}` {} `{example}`, which is in its `{list}`", .path.display(), if *list == "match" { "does not match" } else { "is about" })]
    Example {
        /// Path of the file.
        path: PathBuf,
        /// Line of the example, from 1.
        line: usize,
        /// Text of the rule.
        rule: String,
        /// Text of the example.
        example: String,
        /// List of the example: `match` or `notMatch`.
        list: &'static str,
    },
}

impl PolicyError {
    /// Returns a hint on a correction.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Invalid { hint, .. } => hint.clone(),
            Self::Example { .. } => Some(
                "correct the rule or the example: a rule that fails its own examples is refused".to_owned(),
            ),
            Self::NotBuilt { .. } => {
                Some("build the program with the feature `policy-files` of `taskpawl`".to_owned())
            }
            Self::Read { .. } | Self::Syntax { .. } => None,
        }
    }
}

/// Reads the file of a layer; `None` if it does not exist.
pub(super) fn read(path: &Path, kind: LayerKind) -> Result<Option<Layer>, PolicyError> {
    let failed = |source| PolicyError::Read { path: path.to_owned(), source };
    let text = read_if_there(path, MAX_BYTES).map_err(failed)?;
    text.map(|text| parse(path, kind, &text)).transpose()
}

/// Refuses the text of a layer: reading it needs the feature `policy-files`.
#[cfg(not(feature = "policy-files"))]
pub(super) fn parse(path: &Path, _: LayerKind, _: &str) -> Result<Layer, PolicyError> {
    Err(PolicyError::NotBuilt { path: path.to_owned() })
}
