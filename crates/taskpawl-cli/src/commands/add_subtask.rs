use std::process::ExitCode;

use crate::app::App;
use crate::commands::fields::NewTaskArgs;
use crate::commands::{print, question};
use crate::error::CliError;

/// Add a subtask, or move a task. Creates a task below a parent, or moves an existing one there
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl add-subtask release \"Write the changelog\" --id changelog
  taskpawl add-subtask release --existing docs",
    // Clap would put what is required of the group before the parent.
    override_usage = "taskpawl add-subtask [OPTIONS] <PARENT> <NAME|--existing <ID>>"
)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["name", "existing"])))]
pub(crate) struct Args {
    /// The task above: its id, or the beginning of it
    #[arg(value_name = "PARENT")]
    parent: String,
    /// The name of a new task
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// A task that exists
    #[arg(long, value_name = "ID", conflicts_with_all = ["NewTaskArgs", "FieldArgs"])]
    existing: Option<String>,
    #[command(flatten)]
    task: NewTaskArgs,
}

/// Creates a subtask, or moves an existing task under the parent.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let id = match (&args.existing, &args.name) {
        (Some(id), _) => question::manager(app)?.move_task(id, Some(&args.parent))?,
        (None, name) => {
            let name = name.as_deref().unwrap_or_default();
            app.manager()?.create(args.task.to_task(app, name, Some(&args.parent))?)?
        }
    };
    print::task(app, &id)
}
