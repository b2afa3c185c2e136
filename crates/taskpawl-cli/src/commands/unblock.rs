use std::process::ExitCode;

use taskpawl::Manager;
use taskpawl::model::rules::resolve;
use taskpawl::model::task::{BlockedReason, Status};
use taskpawl::model::value::Selector;

use crate::app::App;
use crate::commands::{parse, print, select};
use crate::error::CliError;

/// Unblock tasks. Removes blocks that were set with `block`. An interrupted call starts again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
After a run was killed, a call whose end is unknown keeps its task blocked. Look at what it did before it runs again.

Examples:
  taskpawl unblock deploy
  taskpawl unblock --all && taskpawl run-all-ready
  taskpawl unblock --only plan:release")]
pub(crate) struct Args {
    /// The tasks: their ids, or the beginnings of them
    #[arg(value_name = "ID", required_unless_present_any = ["only", "all"], conflicts_with_all = ["only", "all"])]
    ids: Vec<String>,
    /// The tasks with an interrupted call, of a plan, with a label, or a task with all below it
    #[arg(long, value_name = "plan:NAME|label:NAME|ID", value_parser = parse::selector)]
    only: Vec<Selector>,
    /// Every task with an interrupted call
    #[arg(long, conflicts_with = "only")]
    all: bool,
}

/// Unblocks tasks.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let manager = app.manager()?;
    if !args.ids.is_empty() {
        return print::tasks(app, &manager.unblock(&args.ids)?);
    }
    // A block that somebody set on purpose is lifted by id only.
    let ids = interrupted(manager, &args.only)?;
    if ids.is_empty() { select::nothing(app) } else { print::tasks(app, &manager.unblock(&ids)?) }
}

fn interrupted(manager: &Manager, only: &[Selector]) -> Result<Vec<String>, CliError> {
    let blocked = manager.select(only, &[Status::Blocked])?;
    Ok(manager.read(|view| {
        let mut ids = Vec::new();
        for id in blocked {
            let task = view.task(resolve(view, &id)?)?;
            let reason = task.as_ref().and_then(|task| task.body.state.blocked_reason());
            if matches!(reason, Some(BlockedReason::Interrupted { .. })) {
                ids.push(id);
            }
        }
        Ok(ids)
    })?)
}
