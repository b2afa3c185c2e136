use std::path::Path;
use std::process::ExitCode;

use taskpawl::ApplyOptions;
use taskpawl::store::AllowedRoots;

use crate::app::App;
use crate::commands::plan_file::Takes;
use crate::commands::run_all_ready;
use crate::commands::running::{self, RunArgs, What};
use crate::error::CliError;

/// Run one task and its subtasks, or a plan file. Refuses to run a task, with the reason, while its dependencies are unfinished
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A task that is blocked in this way opens by itself when its dependencies are finished.

Examples:
  taskpawl run build
  taskpawl run plan.yaml
  taskpawl run build --json --fields exit,counts")]
pub(crate) struct Args {
    /// The task: its id, or the beginning of it. A plan file, where no task has that id, as `run-all-ready FILE`
    #[arg(value_name = "ID|FILE")]
    id: String,
    #[command(flatten)]
    run: RunArgs,
}

/// Runs one task.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let run = args.run.prepare(app)?;
    let file = Path::new(&args.id);
    let is_new = file.is_file() && app.plan_project(AllowedRoots::All)?.new_root().is_some();
    app.check_apart(&args.run.sandbox)?;
    if is_new || (file.is_file() && !is_task(app, &args.id)?) {
        let options = ApplyOptions { keeps_approvals: app.was_started_by_task(), ..ApplyOptions::default() };
        return run_all_ready::run_file(app, file, &Takes::default(), run, options, false);
    }
    running::run(app, &app.runner(&args.run.sandbox)?, What::Task(args.id.clone()), run, None)
}

/// Returns whether a task has this id. An id wins over a file, and the beginning of an id does not.
fn is_task(app: &App, id: &str) -> Result<bool, CliError> {
    Ok(app.reader()?.manager().read(|view| Ok(view.key(id)?.is_some()))?)
}
