use std::process::ExitCode;

use crate::app::App;
use crate::commands::{print, question};
use crate::error::CliError;

/// Make a task depend on another
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl add-dependency deploy build    deploy starts when build is done")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) edge: EdgeArgs,
}

/// A task and what it depends on.
#[derive(Debug, clap::Args)]
pub(crate) struct EdgeArgs {
    /// The task: its id, or the beginning of it
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// The task that it depends on
    #[arg(value_name = "ON")]
    pub(super) on: String,
}

/// Adds the dependency and prints the dependent task.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let id = question::manager(app)?.add_dependency(&args.edge.id, &args.edge.on)?;
    print::task(app, &id)
}
