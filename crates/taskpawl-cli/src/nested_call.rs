//! Commands inside a call: a program of a call with `planAccess` may read the plan of the call and add tasks to it,
//! and nothing else.
//!
//! The run enforces this itself. The check here only gives a clearer error, and refuses commands that make no sense
//! inside a call.

use taskpawl::model::command::Refusal;

use crate::app::App;
use crate::args::{Command, Kind};
use crate::error::CliError;

/// Refuses commands that programs of a call may not use, if this process belongs to a call.
pub(crate) fn check(app: &App, command: &Command) -> Result<(), CliError> {
    match beyond(command) {
        Some(what) if app.is_within_call() => Err(Refusal::BeyondAccess { access: None, what }.into()),
        _ => Ok(()),
    }
}

/// Returns the reason why programs of a call may not use a command. Returns `None` for commands that read, add tasks,
/// or do not concern a plan.
fn beyond(command: &Command) -> Option<String> {
    let of_run = || "the run that this call belongs to takes added tasks by itself".to_owned();
    match (command, command.row()) {
        (Command::Apply(args), _) if args.is_dry_run() => {
            Some("`apply --dry-run` shows another plan, and these tasks join that of the call".to_owned())
        }
        (Command::RunAllReady(_) | Command::Run(_), _) => Some(of_run()),
        (Command::Logs(_), _) => {
            Some("`logs` reads files that calls do not see; `show` has the part that is kept".to_owned())
        }
        (_, (_, Kind::Read | Kind::Add | Kind::General)) => None,
        (_, (name, Kind::ReadFiles | Kind::Change)) => Some(format!("`{name}` is not allowed")),
    }
}
