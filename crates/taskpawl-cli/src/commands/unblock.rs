use std::process::ExitCode;

use crate::app::App;
use crate::commands::print;
use crate::error::CliError;

/// Unblock tasks. Removes blocks that were set with `block`. An interrupted call starts again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl unblock deploy")]
pub(crate) struct Args {
    /// The tasks: their ids, or the beginnings of them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// Unblocks tasks.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    print::tasks(app, &app.manager()?.unblock(&args.ids)?)
}
