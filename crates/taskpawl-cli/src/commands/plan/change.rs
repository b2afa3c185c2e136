//! `plan repair` and `plan expand`: a planner changes a stored plan, which a person sees as differences.

use std::collections::BTreeSet;
use std::process::ExitCode;

use serde_json::json;
use taskpawl::model::advice::Hint;
use taskpawl::model::task::{Origin, Status};
use taskpawl::model::view::Query;
use taskpawl::tools::{Power, Redactor, Ruling, SecretSource as _, ToolSpec};
use taskpawl::{ChangeRequest, CheckOptions, NoChange, PlanChange, RunVariables, Taskpawl};

use taskpawl_planner::Budget;
use taskpawl_text::error_chain;

use super::asking::{self, Asking};
use super::checking::explain_tool;
use super::new::spent;
use crate::app::App;
use crate::commands::sandbox::SandboxArgs;
use crate::error::CliError;
use crate::output::write_err;
use crate::planner::Configured;
use crate::shown::{Shown, shown};
use crate::text::{clean, style};

/// Names of the callers in messages.
const REPAIR: &str = "plan repair";
const REPLAN: &str = "--replan";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The planner gets the plan in short, and the error and the end of the output of each failed call, where `[planner] send_output = true` \
lets it. It may add tasks, change tasks that failed or have not started, run failed tasks again as they are, and skip tasks, both with a \
reason. A plan is repaired at most 3 \
times, and never twice for the same error. `taskpawl undo` takes a repair back as a whole. Nothing runs.

Examples:
  taskpawl plan repair release
  taskpawl plan repair --print-prompt")]
pub(super) struct Repair {
    /// The plan [default: the one with failed tasks]
    #[arg(value_name = "PLAN")]
    plan: Option<String>,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The planner gets the task, and the results of the tasks that it needs, where `[planner] send_output = true` lets it. The task keeps its id. \
`taskpawl undo` takes the subtasks back as a whole. Nothing runs.

Examples:
  taskpawl plan expand migrate
  taskpawl plan expand migrate --max-tasks 5 --print-prompt")]
pub(super) struct Expand {
    /// A manual task of a plan
    #[arg(value_name = "TASK")]
    task: String,
    #[command(flatten)]
    asking: Asking,
}

impl From<NoChange> for CliError {
    fn from(error: NoChange) -> Self {
        match error {
            NoChange::Store(error) => error.into(),
            error @ (NoChange::NothingFailed { .. }
            | NoChange::TooOften { .. }
            | NoChange::SameError { .. }
            | NoChange::NotManual { .. }
            | _) => {
                let hint = Hint::new("change the plan yourself: edit its file, or use `taskpawl update`");
                Self::NoPlan { message: error.to_string(), problems: Vec::new(), hint }
            }
        }
    }
}

/// Repairs a plan after a failure.
pub(super) fn repair(app: &App, args: &Repair) -> Result<ExitCode, CliError> {
    let plans = app.onlooker(&SandboxArgs::default())?;
    let plan = args.plan.clone().map_or_else(|| failed_plan(&plans), Ok)?;
    // Printing a prompt sends nothing.
    if !args.asking.print_prompt {
        refuse_output(app, REPAIR)?;
    }
    let tools = asking::tools(app, &plans)?;
    let request = repair_request(app, &plans, &plan, &tools, args.asking.budget())?;
    match change(app, &plans, &args.asking, &request, &tools, REPAIR)? {
        Ended::With(code) => Ok(code),
        Ended::Changed | Ended::Left => Ok(ExitCode::SUCCESS),
    }
}

/// Refuses to replan where that could not work, before the run starts.
pub(crate) fn refuse_replan(app: &App) -> Result<(), CliError> {
    Configured::of(app)?;
    refuse_output(app, REPLAN)?;
    if retries_unasked(app)? {
        return Ok(());
    }
    Asking::default().refuse_unasked(app, "leave out `--replan`; `taskpawl plan repair` asks later")
}

/// Returns whether a policy lets a planner run failed calls again without a question.
fn retries_unasked(app: &App) -> Result<bool, CliError> {
    Ok(app.ruling(Power::Retries)?.ruling == Ruling::Allow)
}

/// Lets the planner repair the failed tasks of a run, after a person's yes; `plan` is the plan that ran, if it was one alone. Returns
/// whether the plan was changed. A planner without a usable answer ends the run as it would have ended.
pub(crate) fn replan(app: &App, plan: Option<&str>) -> bool {
    match try_replan(app, plan) {
        Ok(ended) => matches!(ended, Ended::Changed),
        Err(error) => {
            app.out().warn(&format!("the plan was not repaired: {}", error_chain(&error)));
            false
        }
    }
}

fn try_replan(app: &App, plan: Option<&str>) -> Result<Ended, CliError> {
    let plans = app.onlooker(&SandboxArgs::default())?;
    let plan = plan.map_or_else(|| failed_plan(&plans), |plan| Ok(plan.to_owned()))?;
    let (asking, tools) = (Asking::default(), asking::tools(app, &plans)?);
    let request = repair_request(app, &plans, &plan, &tools, asking.budget())?;
    change(app, &plans, &asking, &request, &tools, REPLAN)
}

fn repair_request(
    app: &App,
    plans: &Taskpawl,
    plan: &str,
    tools: &[ToolSpec],
    budget: Budget,
) -> Result<ChangeRequest, CliError> {
    let (facts, redactor) = (asking::facts(app)?, redactor(app)?);
    Ok(plans.blocking().repair_request(plan, tools, &facts, budget.max_tasks, &redactor)?)
}

fn refuse_output(app: &App, by: &str) -> Result<(), CliError> {
    if sends_output(app)? {
        return Ok(());
    }
    Err(CliError::usage_with(
        format!("`{by}` sends output of calls, and your configuration does not let it"),
        "`send_output = true` in `[planner]` lets it; `taskpawl plan repair --print-prompt` shows what is sent",
    ))
}

/// Expands a manual task.
pub(super) fn expand(app: &App, args: &Expand) -> Result<ExitCode, CliError> {
    let plans = app.onlooker(&SandboxArgs::default())?;
    let tools = asking::tools(app, &plans)?;
    let facts = asking::facts(app)?;
    let (max_tasks, has_output) = (args.asking.budget().max_tasks, sends_output(app)?);
    let redactor = redactor(app)?;
    let request = plans.blocking().expand_request(
        &args.task,
        &tools,
        &facts,
        max_tasks,
        has_output.then_some(&redactor),
    )?;
    match change(app, &plans, &args.asking, &request, &tools, "plan expand")? {
        Ended::With(code) => Ok(code),
        Ended::Changed | Ended::Left => Ok(ExitCode::SUCCESS),
    }
}

/// The end of a planning.
enum Ended {
    /// The plan was changed.
    Changed,
    /// The plan was left as it is.
    Left,
    /// Something else was done, with this exit code.
    With(ExitCode),
}

fn change(
    app: &App,
    plans: &Taskpawl,
    asking: &Asking,
    request: &ChangeRequest,
    tools: &[ToolSpec],
    by: &'static str,
) -> Result<Ended, CliError> {
    if asking.print_prompt {
        return asking::print_prompt(app, &request.prompt).map(Ended::With);
    }
    if by != REPLAN {
        asking.refuse_unasked(app, "`--yes` applies it and approves nothing")?;
    }
    let configured = asking.planner(app, by, request.has_output)?;
    let (variables, explain) = (RunVariables::default(), |name: &str| explain_tool(app, name));
    let options =
        CheckOptions { origin: Origin::Agent, variables: &variables, explain: &explain, files: None };
    let planner = &*configured.planner;
    let result = plans.blocking().propose_change(request, tools, planner, asking.budget(), options);
    match asking::outcome(app, &planner.name(), None, result)? {
        Ok(change) => {
            let is_allowed = by == REPLAN && change.only_retries && retries_unasked(app)?;
            settle(app, asking.yes || is_allowed, &planner.name(), &change)
        }
        Err(code) => Ok(Ended::With(code)),
    }
}

/// Shows a change, and applies it after a yes.
fn settle(app: &App, is_yes: bool, planner: &str, change: &PlanChange) -> Result<Ended, CliError> {
    let out = app.out();
    out.remark(&spent("changed", planner, change.proposal.turns, change.proposal.usage));
    if !out.is_json {
        out.print(shown_difference(app, change))?;
    }
    let can_ask = app.terminal().can_ask() && !out.is_json;
    if !is_yes && !can_ask {
        out.warn("the plan was not repaired: this change needs a person's yes, at a terminal");
        return Ok(Ended::Left);
    }
    if !is_yes && !is_wanted(&change.plan) {
        out.remark("nothing was changed");
        return Ok(Ended::Left);
    }
    let report = app.writer()?.blocking().apply_change(change)?;
    if out.is_json {
        out.data(&json!({"plan": report.plan, "created": report.created, "changed": report.changed, "difference": change.difference}))?;
        return Ok(Ended::Changed);
    }
    let hint = Hint::new("changed the plan; ")
        .command("undo")
        .text(" takes it back, and its calls ask as those of an agent");
    out.advise(&hint);
    Ok(Ended::Changed)
}

fn shown_difference(app: &App, change: &PlanChange) -> Shown {
    let (paint, mut text) = (app.out().paint, Shown::new());
    for line in &change.difference {
        let line = clean(line);
        let shown = match line.chars().next() {
            Some('+') => paint.style(style::HINT, &line),
            Some('-') => paint.style(style::ERROR, &line),
            _ => line.into(),
        };
        text.push(shown![shown, "\n"]);
    }
    text
}

fn is_wanted(plan: &str) -> bool {
    // If the question cannot be printed, the answer is no.
    let asked = write_err(&shown!["Change plan `", clean(plan), "` so? [y/N] "]);
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    asked.is_ok() && read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

/// Returns the plan with failed tasks, if there is exactly one.
fn failed_plan(plans: &Taskpawl) -> Result<String, CliError> {
    let query = Query { status: vec![Status::Failed], ..Query::default() };
    let failed = plans.manager().list(&query)?.tasks;
    let names: BTreeSet<String> = failed.into_iter().filter_map(|task| task.plan).collect();
    let mut names = names.into_iter();
    match (names.next(), names.next()) {
        (Some(name), None) => Ok(name),
        (Some(_), Some(_)) => Err(CliError::usage_with(
            "several plans have failed tasks",
            "name one: `taskpawl plan repair PLAN`",
        )),
        (None, _) => {
            let hint = Hint::default().command("status").text(" shows where the plan stands");
            Err(CliError::NoPlan {
                message: "no task of a plan has failed".to_owned(),
                problems: Vec::new(),
                hint,
            })
        }
    }
}

fn sends_output(app: &App) -> Result<bool, CliError> {
    Ok(app.config()?.planner().is_some_and(|planner| planner.send_output))
}

/// Returns a redactor of the secrets that are at hand, and of tokens with a known shape.
fn redactor(app: &App) -> Result<Redactor, CliError> {
    let known = app.secrets(app.root(), app.config()?.sandbox())?.at_hand();
    Ok(Redactor::new(known.iter().map(|(name, value)| (name.as_str(), value.as_str()))))
}
