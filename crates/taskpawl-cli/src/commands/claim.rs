use std::process::ExitCode;
use std::time::{Duration, Instant};

use taskpawl::model::command::Refusal;
use taskpawl::model::value::TaskId;
use taskpawl::{Error, Manager};

use crate::app::App;
use crate::commands::{parse, print};
use crate::error::CliError;

/// Claim a ready manual task. No other actor can take the task until the claim ends
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A claim ends by itself after 30 minutes (--ttl). Each `renew` or `claim` of its holder restarts this \
time, and so does every other command of the holder that writes, once less than half of it is left; \
`claim --next` always takes another task. After its end another actor may claim the \
task; until then its holder may still report.
Without a task that is ready, `claim --next` ends with exit code 5; with --wait it waits for one.

Examples:
  taskpawl claim --next --json
  taskpawl claim --next --wait=10m
  taskpawl claim review --ttl 2h")]
#[command(group(clap::ArgGroup::new("which").required(true).args(["id", "next"])))]
pub(crate) struct Args {
    /// The task: its id, or the beginning of it
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// The first ready task that is assigned to you or unassigned
    #[arg(long)]
    next: bool,
    /// Wait until a task is ready, at most this long [default: without a limit]
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, value_parser = parse::duration, conflicts_with = "id")]
    #[expect(
        clippy::option_option,
        reason = "clap's form of an optional value: absent, without a limit, with one"
    )]
    wait: Option<Option<Duration>>,
    #[command(flatten)]
    lease: LeaseArgs,
}

/// How long a claim lasts.
#[derive(Debug, clap::Args)]
pub(crate) struct LeaseArgs {
    /// Duration of the claim [default: 30m]
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
        None => claim_next(&manager, args, lease)?,
    };
    print::task(app, &id)
}

/// The longest pause between two attempts: leases and waits end without a commit.
const PAUSE: Duration = Duration::from_secs(1);

/// Claims the next task. With `--wait`, it waits until one is ready, or the time is over.
fn claim_next(manager: &Manager, args: &Args, lease: Duration) -> Result<TaskId, CliError> {
    let deadline = args.wait.flatten().and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let seen = manager.read(|view| Ok(view.revision()?))?;
        let refused = match manager.claim_next(lease) {
            Err(Error::Refused(refusal)) if is_for_now(&refusal) => Error::Refused(refusal),
            claimed => return Ok(claimed?),
        };
        let left = deadline.map_or(PAUSE, |deadline| deadline.saturating_duration_since(Instant::now()));
        if args.wait.is_none() || left.is_zero() {
            return Err(refused.into());
        }
        manager.store().wait_change(seen, left.min(PAUSE)).map_err(Error::from)?;
    }
}

/// Returns whether a later claim may succeed without another command of the caller.
fn is_for_now(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::NothingReady | Refusal::Occupied { .. })
}
