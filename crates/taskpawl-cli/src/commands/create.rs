use std::io::BufRead;
use std::process::ExitCode;

use taskpawl::model::advice::Hint;
use taskpawl::model::command::NewTask;
use taskpawl::store::AllowedRoots;

use crate::app::App;
use crate::commands::fields::NewTaskArgs;
use crate::commands::{plan_file, print};
use crate::error::CliError;
use crate::output::write_err;

/// Create a task. A task without calls and subtasks is a manual one: an agent or a person ends it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl create \"Write the report\" --priority high --due 2026-05-31
  taskpawl create Build --id build --run \"cargo build\" --timeout 10m
  taskpawl create \"Fix the link\" --plan release --run ./fix-link
  taskpawl create Wait --needs build,tests --tool sleep --args '{\"duration\": \"1s\"}'")]
pub(crate) struct Args {
    /// A short title; asked for on a terminal when it is left out
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The task that it is a subtask of
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// The plan that it joins, so that runs of that plan take it [default: that of the parent]
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    #[command(flatten)]
    task: NewTaskArgs,
}

/// Creates a task, and asks for its name on a terminal if none was given.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    app.plan_project(AllowedRoots::All)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => ask(app, "name")?,
    };
    let task = args.task.to_task(app, &name, args.parent.as_deref())?;
    let task = NewTask { plan: args.plan.clone(), ..task };
    if app.place()?.new_root().is_some() {
        // A task that is refused makes no project.
        plan_file::empty_manager(app)?.create(task.clone())?;
    }
    let id = app.manager()?.create(task)?;
    print::task(app, &id)
}

/// Asks for a word on a terminal, or returns a usage error without one.
pub(super) fn ask(app: &App, what: &str) -> Result<String, CliError> {
    if !app.terminal().can_ask() {
        let hint = Hint::new("give it as an argument, as in ").command_of("create", [what.to_uppercase()]);
        return Err(CliError::usage_with(format!("the {what} is missing"), hint));
    }
    // If the question cannot be printed, the answer decides: an input at its end counts as an empty answer.
    let _ = write_err(&format!("{what}: ").into());
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|source| CliError::File { action: "read", path: "standard input".into(), source })?;
    let answer = answer.trim();
    if answer.is_empty() {
        Err(CliError::usage(format!("the {what} is missing")))
    } else {
        Ok(answer.to_owned())
    }
}
