use std::process::ExitCode;

use crate::app::App;
use crate::commands::claim::LeaseArgs;
use crate::commands::print;
use crate::error::CliError;

/// Extend your claim on a task
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl renew review
  taskpawl renew review --ttl 2h")]
pub(crate) struct Args {
    /// The task: its id, or the beginning of it
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    lease: LeaseArgs,
}

/// Renews the lease of a claim.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let id = app.manager()?.renew(&args.id, args.lease.duration(app)?)?;
    print::task(app, &id)
}
