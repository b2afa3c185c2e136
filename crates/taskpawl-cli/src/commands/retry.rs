use std::process::ExitCode;

use taskpawl::model::task::Status;

use crate::app::App;
use crate::commands::select::{self, Select, Selection};
use crate::commands::{print, question};
use crate::error::CliError;

/// Retry tasks where they stopped. Results of calls that succeeded are kept; `reopen` clears them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
`--only` finds the tasks that failed.

Examples:
  taskpawl retry build
  taskpawl retry --failed && taskpawl run-all-ready
  taskpawl retry --only plan:release")]
pub(crate) struct Args {
    #[command(flatten)]
    select: Select,
    /// Also start again what depends on them and ran
    #[arg(long)]
    cascade: bool,
}

/// Statuses that `--only` selects from.
const FROM: &[Status] = &[Status::Failed];

/// Retries failed tasks.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let manager = &question::manager(app)?;
    match args.select.find(manager, FROM)? {
        Selection::Nothing => select::nothing(app),
        Selection::Tasks(ids) => print::tasks(app, &manager.retry(&ids, args.cascade)?),
    }
}
