use std::process::ExitCode;

use crate::app::App;
use crate::commands::prime;
use crate::error::CliError;
use crate::shown::Shown;

/// Show where the plan stands: what runs, waits, failed and is ready, and the next commands
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without any command, `taskpawl` does the same in a project.

Examples:
  taskpawl status
  taskpawl status --json")]
pub(crate) struct Args {}

/// Prints the status of the plan.
pub(crate) fn run(app: &App, _: &Args) -> Result<ExitCode, CliError> {
    let (out, digest) = (app.out(), prime::digest(app)?);
    if out.is_json {
        return out.data(&digest);
    }
    out.print(Shown::from(prime::text(&digest, &out.line, out.now)).wrapped(out.width))
}
