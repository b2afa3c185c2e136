use std::process::ExitCode;

use crate::app::App;
use crate::commands::add_dependency::EdgeArgs;
use crate::commands::{print, question};
use crate::error::CliError;

/// Remove a dependency
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl remove-dependency deploy build")]
pub(crate) struct Args {
    #[command(flatten)]
    edge: EdgeArgs,
}

/// Removes the dependency and prints the task that had it.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let id = question::manager(app)?.remove_dependency(&args.edge.id, &args.edge.on)?;
    print::task(app, &id)
}
