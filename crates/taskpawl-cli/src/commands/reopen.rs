use std::process::ExitCode;

use taskpawl::model::task::Status;

use crate::app::App;
use crate::commands::select::{self, Select, Selection};
use crate::commands::{print, question};
use crate::error::CliError;

/// Start tasks again from the beginning. Their results are cleared; `retry` keeps those of calls that succeeded
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl reopen build --cascade
  taskpawl reopen --only plan:release")]
pub(crate) struct Args {
    #[command(flatten)]
    select: Select,
    /// Also start again what depends on them and ran
    #[arg(long)]
    cascade: bool,
}

/// Statuses that `--only` selects from.
const FROM: &[Status] = &[Status::Done, Status::Failed, Status::Cancelled, Status::Skipped];

/// Reopens finished tasks.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let manager = &question::manager(app)?;
    match args.select.find(manager, FROM)? {
        Selection::Nothing => select::nothing(app),
        Selection::Tasks(ids) => print::tasks(app, &manager.reopen(&ids, args.cascade)?),
    }
}
