use std::process::ExitCode;

use serde_json::json;

use crate::app::App;
use crate::commands::question;
use crate::error::CliError;

/// Delete tasks without dependents. Their ids are not used again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl delete draft
  taskpawl cancel draft    gives the task up and keeps it in the record")]
pub(crate) struct Args {
    /// The tasks: their ids, or the beginnings of them; all of them are deleted, or none
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// Deletes tasks and prints the ids of all that are gone.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let deleted = question::manager(app)?.delete(&args.ids)?;
    let out = app.out();
    if out.is_json {
        return out.data(&json!({ "deleted": deleted }));
    }
    let prefix = if out.is_quiet { "" } else { "deleted " };
    let lines: Vec<String> = deleted.iter().map(|id| format!("{prefix}{id}\n")).collect();
    out.print(lines.concat())
}
