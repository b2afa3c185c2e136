use std::process::ExitCode;

use crate::app::App;
use crate::commands::running::{self, RunArgs, What};
use crate::error::CliError;

/// Run one task and its subtasks. Refuses to run it, with the reason, while its dependencies are unfinished
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A task that is blocked in this way opens by itself when its dependencies are finished.

Examples:
  taskpawl run build
  taskpawl run build --json --fields exit,counts")]
pub(crate) struct Args {
    /// The task: its id, or the beginning of it
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    run: RunArgs,
}

/// Runs one task.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    app.check_apart(&args.run.sandbox)?;
    running::run(app, &app.runner(&args.run.sandbox)?, What::Task(args.id.clone()), &args.run, None)
}
