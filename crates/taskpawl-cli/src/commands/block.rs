use std::process::ExitCode;

use crate::app::App;
use crate::commands::print;
use crate::error::CliError;

/// Keep tasks from starting. Blocks tasks, for a reason that is shown with them, until `unblock`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl block deploy --reason \"the window is closed\"")]
pub(crate) struct Args {
    /// The tasks: their ids, or the beginnings of them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Why
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
}

/// Blocks tasks, each with the same reason.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    print::tasks(app, &app.manager()?.block(&args.ids, &args.reason)?)
}
