//! Why tasks fail none of whose calls did: what could not be evaluated, rounds that are used up, and people who say so.

use crate::status::{FailureClass, TaskState};

/// Says that an expression of a task has no value.
pub(crate) fn no_value(field: &str, problem: &str) -> String {
    format!("`{field}`: {problem}")
}

/// Returns the state of a task one of whose expressions has no value.
pub(crate) fn without_value(field: &str, problem: &str) -> TaskState {
    TaskState::Failed { error: no_value(field, problem), class: Some(FailureClass::Expression) }
}

/// Returns the state of a task for which there is no further round.
pub(crate) fn used_up(why: &str) -> TaskState {
    TaskState::Failed { error: format!("`repeat.until` {why}"), class: Some(FailureClass::Rounds) }
}
