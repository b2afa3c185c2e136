use std::process::ExitCode;

use crate::app::App;
use crate::commands::print;
use crate::error::CliError;

/// Release claimed tasks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl release review")]
pub(crate) struct Args {
    /// The tasks: their ids, or the beginnings of them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// Releases the claims on tasks.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    print::tasks(app, &app.manager()?.release(&args.ids)?)
}
