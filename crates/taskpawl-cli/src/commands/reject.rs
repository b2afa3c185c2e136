use std::process::ExitCode;

use crate::app::App;
use crate::audit::{self, Action};
use crate::commands::print;
use crate::error::CliError;
use crate::person;

/// Reject tasks that wait for approval. Cancels tasks that wait for a decision, and their subtasks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A task that asks about its result fails. With --rework its agent goes on in the same session and corrects the work, then the task asks again.

It takes a terminal, as `approve` does. `taskpawl retry ID` lets a rejected task ask again.

Examples:
  taskpawl reject deploy --reason \"not on a Friday\"
  taskpawl reject fix-parser --rework \"keep the old name, and add a test\"")]
pub(crate) struct Args {
    /// The tasks: their ids, or the beginnings of them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Send the result back to the agent of the task, with the text that says what to change
    #[arg(long, value_name = "TEXT", conflicts_with = "reason")]
    rework: Option<String>,
}

/// Rejects tasks that wait for approval.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    person::refuse_without_person(app, "reject")?;
    let manager = app.manager()?;
    let rejected = match &args.rework {
        Some(text) => manager.send_back(&args.ids, text)?,
        None => manager.reject(&args.ids, args.reason.clone())?,
    };
    audit::record_tasks(app, Action::Reject, &rejected)?;
    print::tasks(app, &rejected)
}
