use std::process::ExitCode;

use crate::app::App;
use crate::commands::print;
use crate::error::CliError;

/// Release claimed tasks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An agent needs --note to release the claim of another agent. It may do that for tasks that it created or that \
are assigned to it, once their holder has given no command for half of its lease.

Examples:
  taskpawl release review
  taskpawl release review --note \"the key is missing\"")]
pub(crate) struct Args {
    /// The tasks: their ids, or the beginnings of them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// A note for each of them
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// Releases the claims on tasks.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let manager = app.manager()?;
    let released = match &args.note {
        Some(note) => manager.release_with_note(&args.ids, note)?,
        None => manager.release(&args.ids)?,
    };
    print::tasks(app, &released)
}
