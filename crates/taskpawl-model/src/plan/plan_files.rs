//! Files of plans that other plans include: the interface that reads them, and places in them.

use std::fmt;

use taskpawl_json::Position;

use crate::advice::hint::Hint;

/// Reads the plans that a plan includes.
pub trait PlanFiles: fmt::Debug {
    /// Returns the file of the plan that is read itself, as in [`IncludedText::file`]; `None` if it is in no file.
    fn file(&self) -> Option<String>;

    /// Reads a plan. `name` is as its author wrote it, and `by` is the file that includes it: `None` for the plan that is read
    /// itself.
    ///
    /// # Errors
    /// There is no such plan, or it must not or cannot be read.
    fn read(&self, name: &str, by: Option<&str>) -> Result<IncludedText, IncludeError>;
}

/// The text of an included plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncludedText {
    /// The file, for messages. Equal for the same file, however it was named.
    pub file: String,
    /// The text.
    pub text: String,
}

/// The reason why a plan is not included.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IncludeError {
    /// The text that includes it is in no file.
    #[error("`include` is for plan files, and this text is in none")]
    NoFiles,
    /// There is no such file.
    #[error("there is no plan file `{file}`")]
    Missing {
        /// The file.
        file: String,
    },
    /// No plan has this name.
    #[error("no plan is named `{name}`")]
    Unnamed {
        /// The name.
        name: String,
        /// The most similar name.
        near: Option<String>,
    },
    /// The file is outside of the project.
    #[error("`{file}` is neither in the project nor below the directory of the plan that includes it")]
    Outside {
        /// The file.
        file: String,
    },
    /// The file does not have the name of a plan file.
    #[error("`{file}` is not the name of a plan file")]
    Ending {
        /// The file.
        file: String,
    },
    /// The file cannot be read.
    #[error("`{file}` cannot be read: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// The reason.
        why: String,
    },
}

impl IncludeError {
    pub(super) fn hint(&self) -> Option<Hint> {
        if let Self::Unnamed { near: Some(near), .. } = self {
            return Some(Hint::new("did you mean ").data(near).text("?"));
        }
        Some(Hint::new(match self {
            Self::NoFiles => "write the tasks here, or put the plan into a file and apply that",
            Self::Missing { .. } => "a path begins at the directory of the file that includes it",
            Self::Unnamed { .. } => {
                "write the path of a file, such as `./check.yaml`, or a name of `plan list`"
            }
            Self::Outside { .. } => "copy it into the project, or write its name if `plan list` has it",
            Self::Ending { .. } => "plan files end in `.yaml`, `.yml` or `.json`",
            Self::Unreadable { .. } => return None,
        }))
    }
}

/// A place in an included plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncludedPlace {
    /// The file, as in [`IncludedText::file`].
    pub file: String,
    /// The position in it.
    pub at: Position,
}

impl fmt::Display for IncludedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        // Without a reader of YAML, positions are unknown.
        if self.at == Position::default() {
            return Ok(());
        }
        write!(f, ":{}:{}", self.at.line, self.at.column)
    }
}
