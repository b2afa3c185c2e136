use std::path::PathBuf;
use std::process::ExitCode;

use taskpawl::ApplyOptions;
use taskpawl::model::plan::{Plan, expand_plan};
use taskpawl::store::AllowedRoots;

use crate::app::App;
use crate::commands::apply_report::text_of;
use crate::commands::plan_file::{PlanFile, Takes};
use crate::commands::proposed;
use crate::error::CliError;

/// Apply a plan file. Applying the same file again changes nothing
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[command(after_help = "\
A task that is gone from the file stays in the store and is listed.

Examples:
  taskpawl apply plan.yaml --dry-run
  taskpawl apply release.yaml --as release-2 && taskpawl run-all-ready --only plan:release-2
  taskpawl apply - --expand < plan.yaml")]
pub(crate) struct Args {
    /// The plan, as JSON or YAML; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Cancel tasks that are gone from the file and were not started
    #[arg(long)]
    prune: bool,
    /// Print the plan in its long form, as JSON, and apply nothing
    #[arg(long, conflicts_with_all = ["dry_run", "prune", "fresh"])]
    expand: bool,
    /// Reopen every task of the plan
    #[arg(long, conflicts_with_all = ["redo_changed", "keep_changed"])]
    fresh: bool,
    /// Apply a plan that a planner wrote without asking; `plan new` writes such files
    #[arg(long, conflicts_with_all = ["dry_run", "expand"])]
    yes: bool,
    #[command(flatten)]
    takes: Takes,
}

impl Args {
    /// Returns whether `--dry-run` was given, so that nothing is written.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run
    }
}

/// Applies a plan, or previews or expands it.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    if !args.dry_run && !args.expand {
        app.plan_project(AllowedRoots::All)?;
    }
    let file = PlanFile::read(app, &args.file, &args.takes)?;
    if args.expand {
        // An expanded plan is only printed. No store is opened that could know these fields, so all of them
        // are refused here.
        file.refuse_unknown()?;
        return expand(app, &file.plan);
    }
    file.check(app)?;
    let keeps_approvals = app.was_started_by_task();
    let on_changed = args.takes.on_changed();
    let options = ApplyOptions {
        prune: args.prune,
        fresh: args.fresh,
        on_changed,
        keeps_approvals,
        ..ApplyOptions::default()
    };
    if !args.dry_run {
        proposed::confirm(app, &file, options, args.yes)?;
    }
    let report = if args.dry_run { file.preview(app, options)? } else { file.apply(app, options)? };
    let out = app.out();
    if out.is_json {
        return out.data(&report);
    }
    if args.dry_run {
        out.remark("dry run: nothing was changed");
    }
    out.print(text_of(app, &report))
}

fn expand(app: &App, plan: &Plan) -> Result<ExitCode, CliError> {
    let out = app.out();
    let plan = expand_plan(plan);
    if out.is_json {
        return out.data(&plan);
    }
    // The output is a plan file, so `--json` adds no envelope to it.
    let text = crate::output::to_text(&plan, true).map_err(|error| CliError::Output(error.into()))?;
    out.print(&(text + "\n"))
}
