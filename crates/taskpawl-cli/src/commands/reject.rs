use std::process::ExitCode;

use crate::app::App;
use crate::audit::{self, Action};
use crate::commands::print;
use crate::error::CliError;
use crate::person;

/// Reject tasks that wait for approval. Cancels tasks that wait for a decision, and their subtasks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It takes a terminal, as `approve` does. `taskpawl retry ID` lets a rejected task ask again.

Examples:
  taskpawl reject deploy --reason \"not on a Friday\"")]
pub(crate) struct Args {
    /// The tasks: their ids, or the beginnings of them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Rejects tasks that wait for approval.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    person::refuse_without_person(app, "reject")?;
    let rejected = app.manager()?.reject(&args.ids, args.reason.clone())?;
    audit::record_tasks(app, Action::Reject, &rejected)?;
    print::tasks(app, &rejected)
}
