use std::path::{Path, PathBuf};
use std::process::ExitCode;

use taskpawl::model::advice::{Advice, PlanWords};
use taskpawl::model::insight::{ForecastOptions, Hypothesis};
use taskpawl::model::task::{Origin, Status};
use taskpawl::model::value::Selector;
use taskpawl::store::{AllowedRoots, Location, PlacementError};
use taskpawl::{ApplyOptions, Manager, RunError, RunVariables, Taskpawl};

use crate::app::App;
use crate::commands::apply_report::{told_prefix, waiting_text};
use crate::commands::notify_programs::NotifyProgram;
use crate::commands::plan_file::{PlanFile, PlanText, Takes};
use crate::commands::running::{self, PreparedRun, RunArgs, What};
use crate::commands::{forecast, parse, plan, proposed};
use crate::error::CliError;
use crate::text::path_word;

/// Run all ready tasks. Runs everything that is ready, and what becomes ready by it, until nothing more can run
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ctrl-C lets running calls end and starts nothing more; a second one kills them; a third one exits at once.
The exit code is 0 if all tasks are finished, 1 if a task failed, 3 if an approval, a person or an agent is needed, \
4 if tasks are blocked otherwise.

Examples:
  taskpawl run-all-ready
  taskpawl run-all-ready release.yaml --jobs 8
  taskpawl run-all-ready --only label:nightly --format ndjson
  taskpawl run-all-ready --dry-run --what-if fail:build,done:review")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    /// Short for `--plan FILE`
    #[arg(value_name = "FILE", conflicts_with_all = ["plan", "only"])]
    file: Option<PathBuf>,
    /// Apply this plan, and run that plan alone; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    plan: Option<PathBuf>,
    /// Run only the tasks of a plan, with a label, or a task with all below it; may be given several times
    #[arg(long, value_name = "plan:NAME|label:NAME|ID", value_parser = parse::selector)]
    only: Vec<Selector>,
    /// With --plan: reopen every task of the plan first
    #[arg(long, conflicts_with_all = ["only", "retry_failed", "redo_changed", "keep_changed"])]
    fresh: bool,
    /// Start failed tasks again first; what succeeded in them is kept
    #[arg(long)]
    retry_failed: bool,
    /// Say what would be run, in which order, and how it would end; change nothing, also not by --plan
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: take as given that these tasks end so
    #[arg(long, requires = "dry_run", value_name = "done:ID|fail:ID|skip:ID", value_delimiter = ',', value_parser = parse::hypothesis)]
    what_if: Vec<Hypothesis>,
    /// Apply a plan that a planner wrote without asking; `plan new` writes such files
    #[arg(long, conflicts_with_all = ["only", "dry_run"])]
    yes: bool,
    /// After a failure: let the planner of your configuration propose a repair, and go on after your yes, at most 3 times. `retries` of a
    /// policy lets failed calls run again unasked
    #[arg(long, conflicts_with = "dry_run")]
    replan: bool,
    #[command(flatten)]
    takes: Takes,
    #[command(flatten)]
    run: RunArgs,
}

impl Args {
    /// Returns the plan file, however it was given.
    fn plan(&self) -> Option<&Path> {
        self.plan.as_deref().or(self.file.as_deref())
    }

    fn apply_options(&self, keeps_approvals: bool) -> ApplyOptions {
        ApplyOptions {
            fresh: self.fresh,
            on_changed: self.takes.on_changed(),
            retry_failed: self.retry_failed,
            keeps_approvals,
            ..ApplyOptions::default()
        }
    }
}

/// Runs all ready tasks, after applying the plan of `--plan`.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    if args.fresh && args.plan().is_none() {
        return Err(CliError::usage_with(
            "`--fresh` is about a plan, and none is given",
            "name its file: `--plan FILE`",
        ));
    }
    if args.yes && args.plan().is_none() {
        return Err(CliError::usage_with(
            "`--yes` is about a plan, and none is given",
            "name its file: `--plan FILE`",
        ));
    }
    if args.dry_run && args.run.takes_along() {
        return Err(CliError::usage("`--dry-run` runs nothing, and `--report` and `--otlp` are about a run"));
    }
    if args.dry_run {
        args.run.check_include()?;
        return dry_run(app, args);
    }
    let run = args.run.prepare(app)?;
    app.plan_project(AllowedRoots::All)?;
    app.check_apart(&args.run.sandbox)?;
    if args.replan {
        plan::refuse_replan(app)?;
    }
    let Some(path) = args.plan() else {
        args.takes.refuse_without_plan()?;
        let plans = app.runner(&args.run.sandbox)?;
        if args.retry_failed {
            retry_failed(&plans.engine().manager_for(&run.variables), &args.only)?;
        }
        let code = running::run(app, &plans, What::Ready(args.only.clone()), run, None)?;
        return replanned(app, args, &plans, &args.only, code);
    };
    let options = args.apply_options(app.was_started_by_task());
    let file = PlanFile::read(app, path, &args.takes)?;
    let only = vec![Selector::Plan(file.name.clone())];
    let (plans, code) = run_plan(app, path, &file, &args.takes, run, options, args.yes)?;
    replanned(app, args, &plans, &only, code)
}

/// With `--replan`: repairs the plan after a failed run and goes on, as long as the planner has a repair and the person says yes.
/// The plan file is not applied again: it does not have the repair.
fn replanned(
    app: &App,
    args: &Args,
    plans: &Taskpawl,
    only: &[Selector],
    mut code: ExitCode,
) -> Result<ExitCode, CliError> {
    let plan = match only {
        [Selector::Plan(name)] => Some(name.clone()),
        _ => None,
    };
    // The limit of repairs for a plan ends it.
    while args.replan && code == ExitCode::FAILURE && plan::replan(app, plan.as_deref()) {
        code = running::run(app, plans, What::Ready(only.to_vec()), args.run.prepare(app)?, None)?;
    }
    Ok(code)
}

/// Applies a plan file and runs that plan alone.
pub(super) fn run_file(
    app: &App,
    path: &Path,
    takes: &Takes,
    run: PreparedRun<'_>,
    options: ApplyOptions,
    is_yes: bool,
) -> Result<ExitCode, CliError> {
    let file = PlanFile::read(app, path, takes)?;
    Ok(run_plan(app, path, &file, takes, run, options, is_yes)?.1)
}

fn run_plan(
    app: &App,
    path: &Path,
    file: &PlanFile,
    takes: &Takes,
    mut run: PreparedRun<'_>,
    options: ApplyOptions,
    is_yes: bool,
) -> Result<(Taskpawl, ExitCode), CliError> {
    file.check(app)?;
    proposed::confirm(app, file, options, is_yes)?;
    let plans = app.runner(&run.args.sandbox)?;
    let only = vec![Selector::Plan(file.name.clone())];
    let manager = plans.engine().manager_for(&run.variables).with_origin(Origin::Plan);
    let applied = manager.apply(file.plan.clone(), &file.name, options);
    let report = applied.map_err(|error| file.placed(&manager, error))?;
    if let Some(told) = told_prefix(&report) {
        app.out().remark(&told);
    }
    if !report.gone.is_empty() {
        let gone: Vec<&str> =
            report.gone.iter().take(10).map(taskpawl::model::value::TaskId::as_str).collect();
        let more = report.gone.len().saturating_sub(gone.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        app.out()
            .warn(&format!("gone from the plan file, but still in the store: {}{more}", gone.join(", ")));
    }
    for task in &report.waiting {
        app.out().remark(&waiting_text(app, task));
    }
    run.gone = report.gone;
    let code = running::run(app, &plans, What::Ready(only), run, followed(path, &file.name, takes))?;
    Ok((plans, code))
}

/// Returns the plan file that suggested commands name, so that they follow what was changed in it.
fn followed(path: &Path, name: &str, takes: &Takes) -> Option<PlanWords> {
    if path.as_os_str() == "-" {
        return None;
    }
    let words = ["--plan".to_owned(), path_word(path)].into_iter().chain(takes.words());
    Some(PlanWords { name: name.to_owned(), words: words.collect() })
}

fn retry_failed(manager: &Manager, only: &[Selector]) -> Result<(), CliError> {
    let failed = manager.select(only, &[Status::Failed])?;
    if !failed.is_empty() {
        manager.retry(&failed, false)?;
    }
    Ok(())
}

/// Prints a forecast instead of running.
fn dry_run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let variables = args.run.variables.read(app)?;
    let mut options = ForecastOptions {
        only: args.only.clone(),
        jobs: args.run.jobs(app)?,
        means: running::means(app)?,
        what_if: args.what_if.clone(),
        ..ForecastOptions::default()
    };
    let Some(path) = args.plan() else {
        args.takes.refuse_without_plan()?;
        let plans = forecaster(app, args)?;
        plans.engine().check_variables(&args.only, &variables)?;
        let mut found = plans.manager().forecast(&options)?;
        // The user already chose the scope, so the suggested command gets the same `--only`.
        for action in found.next_actions.iter_mut().filter(|action| action.advice().is_run()) {
            *action = Advice::run_ready(&args.only).into();
        }
        let told = NotifyProgram::of_tasks(
            plans.manager(),
            found.waves.iter().flat_map(|wave| &wave.tasks).map(|planned| &planned.task),
        )?;
        return forecast::print(app, found, words(args), &told);
    };
    let plans = forecaster(app, args)?;
    let text = PlanText::read(app, path)?;
    if plan::accepted(app, &plans, &text, Origin::Plan, &variables)?.is_none() {
        return Ok(ExitCode::from(7));
    }
    let file = text.plan(app, &args.takes)?;
    file.check(app)?;
    refuse_missing(&plans, &file, &variables)?;
    options.only = vec![Selector::Plan(file.name.clone())];
    let keeps_approvals = app.was_started_by_task();
    let apply = args.apply_options(keeps_approvals);
    let manager = plans.manager().clone().with_origin(Origin::Plan);
    let told = NotifyProgram::of_file(&manager, &file.name, &file.plan.notify);
    let found = manager.forecast_plan(file.plan.clone(), &file.name, apply, &options);
    let mut found = found.map_err(|error| file.placed(&manager, error))?;
    // The forecast plan is not in the store, so commands on its tasks would fail.
    found.next_actions = vec![Advice::run_ready(&args.only).into()];
    forecast::print(app, found, words(args), told.as_slice())
}

/// Refuses a forecast of a plan whose run would lack a variable.
fn refuse_missing(plans: &Taskpawl, file: &PlanFile, variables: &RunVariables) -> Result<(), CliError> {
    let required = file.plan.all_required().env;
    let names = plans.engine().missing_variables(variables, required.iter().map(String::as_str));
    if names.is_empty() {
        return Ok(());
    }
    Err(RunError::MissingVariables { plan: file.name.clone(), names }.into())
}

/// Opens the store as the run would. The sandbox matters, because it decides which calls ask for approval.
/// Without a project the store is empty.
fn forecaster(app: &App, args: &Args) -> Result<Taskpawl, CliError> {
    if let Err(CliError::Placement(PlacementError::NoProject { .. })) = app.place() {
        app.out().remark("there is no project here; compared with an empty store");
        let builder = app.builder_at(Location::Memory, &app.environment().directory)?;
        return Ok(app.held(builder, &args.run.sandbox)?.open()?);
    }
    let plans = app.onlooker(&args.run.sandbox)?;
    app.remark_on_store(&plans)?;
    Ok(plans)
}

/// Returns the options of the command that runs the forecast, without its selection.
fn words(args: &Args) -> Vec<String> {
    let plan = args.plan().into_iter().flat_map(|plan| ["--plan".to_owned(), path_word(plan)]);
    let mut words: Vec<String> = plan.chain(args.takes.words()).collect();
    words.extend(args.fresh.then(|| "--fresh".to_owned()));
    words.extend(args.retry_failed.then(|| "--retry-failed".to_owned()));
    words.extend(args.run.words());
    words
}
