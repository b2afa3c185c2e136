use std::process::ExitCode;

use taskpawl::model::task::Status;

use crate::app::App;
use crate::commands::select::{self, Select, Selection};
use crate::commands::{print, question};
use crate::error::CliError;

/// Skip tasks and their subtasks. Their dependents may start
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl skip docs --reason \"nothing changed\"
  taskpawl skip --only label:optional")]
pub(crate) struct Args {
    #[command(flatten)]
    select: Select,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Statuses that `--only` selects from.
const FROM: &[Status] = &[Status::Todo, Status::Blocked, Status::Failed];

/// Skips tasks and their subtasks.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let manager = &question::manager(app)?;
    match args.select.find(manager, FROM)? {
        Selection::Nothing => select::nothing(app),
        Selection::Tasks(ids) => {
            let ids = select::topmost(manager, ids)?;
            print::tasks(app, &manager.skip(&ids, args.reason.clone())?)
        }
    }
}
