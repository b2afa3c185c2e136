use std::process::ExitCode;

use taskpawl::Manager;
use taskpawl::model::BlockedReason;

use crate::app::App;
use crate::commands::list::PageArgs;
use crate::commands::{print, question};
use crate::error::CliError;

/// List what can be done now, in the order in which it is taken
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl ready
  taskpawl ready --limit 1 --fields id,name")]
pub(crate) struct Args {
    #[command(flatten)]
    page: PageArgs,
}

/// How many of those that wait for a decision are named.
const NAMED: usize = 5;

/// Lists what is ready.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let (limit, offset) = (args.page.limit(app)?, args.page.offset);
    let manager = app.reader()?.manager();
    let page = manager.ready(limit, offset)?;
    print::page(app, &page, limit, offset, "taskpawl ready")?;
    if !app.is_json() {
        remark_on_questions(app, manager)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What waits for a decision is not ready, but somebody who asks what there is to do could decide.
fn remark_on_questions(app: &App, manager: &Manager) -> Result<(), CliError> {
    let waiting = manager.waiting_for_decision()?;
    for task in waiting.iter().take(NAMED) {
        let Some(BlockedReason::Approval { options, .. }) = &task.blocked_reason else { continue };
        let mut commands = question::commands(task.id.as_str(), options);
        app.name_store(&mut commands)?;
        let reason = task.blocked_reason.as_ref().map(print::reason).unwrap_or_default();
        app.out().remark(&format!("{} {reason}: {}", task.id, commands.join(" or ")));
    }
    if waiting.len() > NAMED {
        let rest = waiting.len() - NAMED;
        app.out().remark(&format!("{rest} more wait for a decision: `taskpawl list --status blocked`"));
    }
    Ok(())
}
