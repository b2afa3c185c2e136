use std::process::ExitCode;

use taskpawl::model::task::Status;

use crate::app::App;
use crate::commands::select::{self, Select, Selection};
use crate::commands::{print, question};
use crate::error::CliError;

/// Cancel tasks and their subtasks. Their dependents are blocked
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl cancel deploy --reason \"not this week\"
  taskpawl cancel --only plan:release")]
pub(crate) struct Args {
    #[command(flatten)]
    select: Select,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Statuses that `--only` selects from.
const FROM: &[Status] = &[Status::Todo, Status::InProgress, Status::Blocked, Status::Failed];

/// Cancels tasks and their subtasks.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let manager = &question::manager(app)?;
    match args.select.find(manager, FROM)? {
        Selection::Nothing => select::nothing(app),
        Selection::Tasks(ids) => {
            // Cancelling a task cancels its subtasks, so ids below another selected task are left out.
            let ids = select::topmost(manager, ids)?;
            print::tasks(app, &manager.cancel(&ids, args.reason.clone())?)
        }
    }
}
