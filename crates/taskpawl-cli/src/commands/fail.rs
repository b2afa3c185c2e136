use std::process::ExitCode;

use crate::app::App;
use crate::commands::done::EndArgs;
use crate::commands::print;
use crate::error::CliError;

/// Mark manual tasks as failed. Of a task with interrupted calls, these count as failed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl fail review --note \"the numbers do not add up\"")]
pub(crate) struct Args {
    #[command(flatten)]
    end: EndArgs,
}

/// Marks manual tasks as failed.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let ending = args.end.ending()?;
    print::tasks(app, &app.manager()?.fail(&args.end.ids, ending)?)
}
