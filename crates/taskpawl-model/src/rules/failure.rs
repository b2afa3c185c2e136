//! Reasons for the failure of a task without a failed call: evaluation errors, exhausted rounds, and reports by hand.

use std::fmt;

use crate::expr::{EvalError, ExprError};
use crate::task::status::{FailureClass, TaskStatus};

/// The reason why an expression of a task has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) class: FailureClass,
    pub(crate) text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self { class: FailureClass::Expression, text }
    }
}

impl From<ExprError> for Problem {
    fn from(error: ExprError) -> Self {
        error.to_string().into()
    }
}

impl From<EvalError> for Problem {
    fn from(error: EvalError) -> Self {
        Self { class: error.class(), text: error.to_string() }
    }
}

impl Problem {
    /// Adds the name of the field with the expression.
    pub(crate) fn of(self, field: &str) -> Self {
        Self { text: format!("`{field}`: {}", self.text), ..self }
    }

    /// Returns the state of a task whose expression has no value.
    pub(crate) fn failed(self, field: &str) -> TaskStatus {
        let Self { class, text } = self.of(field);
        TaskStatus::Failed { error: text, class: Some(class) }
    }
}

/// Returns the state of a task without any round left.
pub(crate) fn used_up(why: &str) -> TaskStatus {
    TaskStatus::Failed { error: format!("`repeat.until` {why}"), class: Some(FailureClass::Rounds) }
}
