use std::process::ExitCode;

use taskpawl::model::advice::{Advice, Hint};
use taskpawl::model::insight::UnrunnableTask;
use taskpawl::model::task::{BlockedReason, Status};
use taskpawl::{Manager, ReadyPage};

use crate::app::App;
use crate::commands::list::PageArgs;
use crate::commands::{print, question, running};
use crate::error::CliError;
use crate::output::PageInfo;
use crate::text::clean;

/// List ready tasks in execution order
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ready tasks that no run here can take, because of an unknown tool for example, are not in the list: they are \
named beside it, and with --json in `page.forNobody`.

Examples:
  taskpawl ready
  taskpawl ready --limit 1 --fields id,name")]
pub(crate) struct Args {
    #[command(flatten)]
    page: PageArgs,
}

/// Number of tasks that each remark names.
const MAX_NAMED: usize = 5;

/// Lists ready tasks.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let (limit, offset) = (args.page.limit(app)?, args.page.offset);
    let manager = app.reader()?.manager();
    let ReadyPage { page, mut unrunnable } = manager.ready(limit, offset, &running::means(app)?)?;
    if app.is_json() {
        let total_unrunnable = unrunnable.len();
        unrunnable.truncate(if limit == 0 { total_unrunnable } else { limit });
        let info = PageInfo { unrunnable, total_unrunnable, ..PageInfo::of(&page, limit, offset) };
        return app.out().page(&page.tasks, &info);
    }
    print::page(app, &page, limit, offset, "ready")?;
    remark_on_unrunnable(app, &unrunnable)?;
    remark_on_questions(app, manager)?;
    Ok(ExitCode::SUCCESS)
}

/// Reports ready tasks that no run can take here, with the command that explains the remedy.
fn remark_on_unrunnable(app: &App, unrunnable: &[UnrunnableTask]) -> Result<(), CliError> {
    for task in unrunnable.iter().take(MAX_NAMED) {
        let mut commands = vec![Advice::explain(&task.task).into()];
        app.write_advice(&mut commands)?;
        let helps =
            commands.first().map(|command| format!("; `{command}` says what helps")).unwrap_or_default();
        app.out()
            .remark(&format!("{} is ready, and no run here can take it: {}{helps}", task.task, task.because));
    }
    if unrunnable.len() > MAX_NAMED {
        let rest = unrunnable.len() - MAX_NAMED;
        let more = Hint::new(format!("{rest} more that no run here can take: "));
        app.out().advise(&more.advice(Advice::ExplainReady {}));
    }
    Ok(())
}

/// Reports tasks that wait for a decision. They are not ready, but the reader may be able to decide.
fn remark_on_questions(app: &App, manager: &Manager) -> Result<(), CliError> {
    let waiting = manager.waiting_for_decision()?;
    for task in waiting.iter().take(MAX_NAMED) {
        let Some(BlockedReason::Approval { options, .. }) = &task.blocked_reason else { continue };
        let mut commands = question::advice(&task.id, options);
        app.write_advice(&mut commands)?;
        let reason =
            task.blocked_reason.as_ref().map(|reason| clean(&print::reason(reason))).unwrap_or_default();
        app.out().remark(&format!(
            "{} waits for a decision ({reason}): {}",
            task.id,
            commands.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(" or ")
        ));
    }
    if waiting.len() > MAX_NAMED {
        let rest = waiting.len() - MAX_NAMED;
        let blocked = Advice::List { status: vec![Status::Blocked] };
        app.out().advise(&Hint::new(format!("{rest} more wait for a decision: ")).advice(blocked));
    }
    Ok(())
}
