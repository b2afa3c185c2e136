use std::process::ExitCode;

use crate::app::App;
use crate::commands::print;
use crate::error::CliError;

/// Add a note to a task
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl note build \"needs the new compiler\"")]
pub(crate) struct Args {
    /// The task: its id, or the beginning of it
    #[arg(value_name = "ID")]
    id: String,
    /// The remark
    #[arg(value_name = "TEXT")]
    text: String,
}

/// Adds a note to a task.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let id = app.manager()?.note(&args.id, &args.text)?;
    print::task(app, &id)
}
