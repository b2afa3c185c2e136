//! Why tasks fail none of whose calls did: what could not be evaluated, rounds that are used up, and people who say so.

use crate::limits::needs_opening;
use crate::record::TaskRecord;
use crate::status::TaskState;

/// The field whose rounds end.
const UNTIL: &str = "repeat.until";

/// Says that an expression of a task has no value.
pub(crate) fn no_value(field: &str, problem: &str) -> String {
    format!("`{field}`: {problem}")
}

/// Says that there is no further round.
pub(crate) fn used_up(why: &str) -> String {
    format!("`{UNTIL}` {why}")
}

/// Returns the class of the error of a task that has failed although none of its calls has: `expression`, `rounds`, or `reported`.
pub fn class_without_call(task: &TaskRecord) -> &'static str {
    let TaskState::Failed { error } = &task.body.state else { return "reported" };
    let is_about = |field: &str| error.starts_with(&no_value(field, ""));
    // Somebody who reports may use the same words, but not about what was never opened, nor about what repeats calls.
    let is_closed = needs_opening(&task.spec, &task.body.progress) && !task.body.progress.opened;
    if is_closed && (is_about("when") || is_about("forEach")) {
        return "expression";
    }
    match &task.spec.repeat {
        Some(_) if is_about(UNTIL) => "expression",
        Some(_) if error.starts_with(&used_up("")) => "rounds",
        _ => "reported",
    }
}
