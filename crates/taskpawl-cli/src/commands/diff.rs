use std::process::ExitCode;

use serde::Serialize;

use crate::app::App;
use crate::commands::sandbox::SandboxArgs;
use crate::error::CliError;
use crate::text::clean_block;

/// Show what a task with a worktree has changed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Compares the commit that the worktree began with and the commit of the task. While the task is not done, its worktree is compared as it is, \
with files that git does not know yet. Of these, `.env*` files, files above 10 MiB and repositories are listed with --names and not shown.

Examples:
  taskpawl diff fix-parser
  taskpawl diff fix-parser --names")]
pub(crate) struct Args {
    /// The task
    #[arg(value_name = "ID")]
    id: String,
    /// List the changed files alone
    #[arg(long)]
    names: bool,
}

/// The difference in `--json`.
#[derive(Serialize)]
struct Changed<'c> {
    task: &'c str,
    base: &'c str,
    commit: Option<&'c str>,
    files: &'c [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<&'c str>,
}

/// Shows what a task has changed.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let plans = app.onlooker(&SandboxArgs::default())?;
    // An unknown task is refused with the hint of other commands.
    let task = plans.manager().get(&args.id)?.id.to_string();
    let found = plans.engine().worktree_diff(&task);
    let found = found.map_err(|message| CliError::Usage { message, hint: None })?;
    let out = app.out();
    if out.is_json {
        let (base, commit, files) = (found.base.as_str(), found.commit.as_deref(), found.files.as_slice());
        let patch = (!args.names).then_some(found.patch.as_str());
        return out.data(&Changed { task: &task, base, commit, files, patch });
    }
    if args.names {
        let end = if found.files.is_empty() { "" } else { "\n" };
        return out.print(clean_block(&found.files.join("\n")) + end);
    }
    let end = if found.patch.is_empty() { "" } else { "\n" };
    out.print(format!("{}{end}", clean_block(&found.patch)))
}
