//! What is taken as given: `done:ID`, `fail:ID`, `skip:ID`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::spec::word_enum;

word_enum! {
    /// How a task is taken to end.
    Assumed {
        /// Well.
        Done = "done",
        /// Badly.
        Fail = "fail",
        /// It is not needed, with all below it.
        Skip = "skip",
    }
}

/// What if a task ended so?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hypothesis {
    /// How.
    pub how: Assumed,
    /// The task: its id, or the beginning of it.
    pub task: String,
}

/// The text is no hypothesis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` does not say what is to be taken as given, expected `done:ID`, `fail:ID` or `skip:ID`")]
pub struct HypothesisError {
    /// The text as given.
    pub text: String,
}

impl FromStr for Hypothesis {
    type Err = HypothesisError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once(':').filter(|(_, task)| !task.is_empty());
        let found = parts.and_then(|(word, task)| Some((Assumed::from_word(word)?, task)));
        let (how, task) = found.ok_or_else(|| HypothesisError { text: text.to_owned() })?;
        Ok(Self { how, task: task.to_owned() })
    }
}

impl fmt::Display for Hypothesis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.how, self.task)
    }
}
