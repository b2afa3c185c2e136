//! Assumptions of a forecast: `done:ID`, `fail:ID`, `skip:ID`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::task::spec::word_enum;

word_enum! {
    /// Assumed end of a task.
    Assumed {
        /// It succeeds.
        Done = "done",
        /// It fails.
        Fail = "fail",
        /// It is skipped, with its descendants.
        Skip = "skip",
    }
}

/// Assumption that a task ends in a given way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hypothesis {
    /// The assumed end.
    pub how: Assumed,
    /// Reference to the task: its id or a unique prefix.
    pub task: String,
}

/// The text is not an assumption.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an assumption, expected `done:ID`, `fail:ID` or `skip:ID`")]
pub struct HypothesisError {
    /// The text.
    pub text: String,
}

impl FromStr for Hypothesis {
    type Err = HypothesisError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(':').filter(|(_, task)| !task.is_empty());
        let parsed = parts.and_then(|(word, task)| Some((Assumed::from_word(word)?, task)));
        let (how, task) = parsed.ok_or_else(|| HypothesisError { text: text.to_owned() })?;
        Ok(Self { how, task: task.to_owned() })
    }
}

impl fmt::Display for Hypothesis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.how, self.task)
    }
}
