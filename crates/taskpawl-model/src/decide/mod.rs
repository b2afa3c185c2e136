//! `decide`: what a command comes to.

use crate::command::{Command, Context, DecideError, Decision};
use crate::view::View;

/// Decides `command` on what `view` shows.
///
/// Pure: the same view, command and context give the same decision. Nothing is written; the store applies the changes of the
/// decision in the transaction that the view belongs to.
///
/// # Errors
/// A refusal by the rules, or a failure of the view to read.
pub fn decide(view: &dyn View, command: &Command, context: &Context) -> Result<Decision, DecideError> {
    let _ = (view, command, context);
    Ok(Decision::default())
}
