use std::process::ExitCode;
use std::time::Duration;

use crate::app::App;
use crate::commands::{parse, print};
use crate::error::CliError;

/// Claim a ready manual task. No other actor can take the task until the claim ends
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A claim ends by itself after 30 minutes (--ttl). Each `renew` or `claim` of its holder begins the time \
anew, and so does every other command of the holder that writes, once less than half of it is left; \
`claim --next` always takes another task. A claim that has ended leaves the task to whoever claims it \
next; until another actor does, its holder may still report.

Examples:
  taskpawl claim --next --json
  taskpawl claim review --ttl 2h")]
#[command(group(clap::ArgGroup::new("which").required(true).args(["id", "next"])))]
pub(crate) struct Args {
    /// The task: its id, or the beginning of it
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// The first that is ready and meant for you or for nobody in particular
    #[arg(long)]
    next: bool,
    #[command(flatten)]
    lease: LeaseArgs,
}

/// How long a claim lasts.
#[derive(Debug, clap::Args)]
pub(crate) struct LeaseArgs {
    /// How long the claim lasts [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    ttl: Option<Duration>,
}

impl LeaseArgs {
    /// Returns the length of the lease, from `--ttl` or the configuration.
    pub(super) fn duration(&self, app: &App) -> Result<Duration, CliError> {
        self.ttl.map_or_else(|| Ok(app.config()?.lease), Ok)
    }
}

/// Claims the given task, or the next ready one.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let lease = args.lease.duration(app)?;
    // Capacities of the configuration take precedence over those in plans, for a claim as for a run.
    let manager = app.manager()?.clone().with_capacities(app.config()?.run.resources.clone());
    let id = match &args.id {
        Some(id) => manager.claim(id, lease)?,
        None => manager.claim_next(lease)?,
    };
    print::task(app, &id)
}
