mod asking;
mod change;
mod checking;
mod library;
mod new;

pub(super) use self::change::{refuse_replan, replan};

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;
use taskpawl::model::command::ApplyReport;
use taskpawl::model::plan::{Plan, PlanFiles, inspect_plan};
use taskpawl::model::task::{CallSpec, Origin};
use taskpawl::{ApplyOptions, CheckOptions, CheckProblem, CheckSeverity, RunVariables, Taskpawl};

use self::checking::{checker, explain_tool, has_store};
use crate::app::App;
use crate::commands::apply_report::text_of;
use crate::commands::plan_file::{PlanText, Takes};
use crate::commands::policy::OriginWord;
use crate::commands::variables::VariableArgs;
use crate::error::{CliError, Problem};
use crate::schedules;
use crate::shown::{Shown, shown};
use crate::text::{clean, count, style};

/// Make plans from goals, check, list and copy plan files, and rename plans
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl plan new \"Publish version 2\" -o release.yaml
  taskpawl plan check plan.yaml
  taskpawl plan check plan.yaml --param region=eu --json
  taskpawl plan list
  taskpawl plan copy release release.yaml
  taskpawl plan rename release release-2025")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Let a planner make a plan for a goal; it is printed, written or applied, and nothing runs
    New(new::New),
    /// Let a planner change a plan after a failure; the change is shown and applied after a yes, and nothing runs
    Repair(change::Repair),
    /// Let a planner split a manual task into subtasks; they are shown and applied after a yes, and nothing runs
    Expand(change::Expand),
    /// List all faults of a plan, and the changes that applying it would make
    Check(Check),
    /// List the plans that have a name: of the project, of the user, and those that taskpawl brings
    List,
    /// Copy a plan with a name to a file, to change it
    Copy(library::Copy),
    /// Give a plan another name; its tasks keep their ids
    Rename {
        /// The present name
        #[arg(value_name = "OLD")]
        from: String,
        /// The new name
        #[arg(value_name = "NEW")]
        to: String,
    },
}

#[derive(Debug, clap::Args)]
struct Check {
    /// The plan, as JSON or YAML; `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The author of the calls in the eyes of the policy: `cli`, `library`, `plan`, `mcp` or `agent`. Notes list the calls
    /// that ask a person
    #[arg(long, value_name = "ORIGIN", value_enum, default_value_t = OriginWord::Plan, hide_possible_values = true)]
    origin: OriginWord,
    #[command(flatten)]
    takes: Takes,
    #[command(flatten)]
    variables: VariableArgs,
}

/// Result of `plan rename`.
#[derive(Serialize)]
struct Renamed<'n> {
    from: &'n str,
    plan: &'n str,
}

/// Result of `plan check` for a plan without errors.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked<'c> {
    plan: &'c str,
    tasks: usize,
    /// Parameters with type and value; no value if it must be given.
    params: Vec<Param<'c>>,
    /// Tasks whose calls depend on the report of a manual task that a model may end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reliances: Vec<Relied>,
    /// Changes that applying the plan would make; `None` without a store.
    #[serde(skip_serializing_if = "Option::is_none")]
    apply: Option<ApplyReport>,
    /// Warnings and notes; a plan with errors has no other result than its problems.
    #[serde(flatten)]
    problems: &'c Problems,
}

/// A task that acts on the report of another task.
#[derive(Serialize)]
struct Relied {
    task: String,
    on: String,
}

#[derive(Serialize)]
struct Param<'c> {
    name: &'c str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'c Value>,
}

/// Checks or renames a plan.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    match &args.what {
        What::New(new) => new::run(app, new),
        What::Repair(repair) => change::repair(app, repair),
        What::Expand(expand) => change::expand(app, expand),
        What::Check(check) => run_check(app, check),
        What::List => library::list(app),
        What::Copy(copy) => library::copy(app, copy),
        What::Rename { from, to } => rename(app, from, to),
    }
}

fn rename(app: &App, from: &str, to: &str) -> Result<ExitCode, CliError> {
    app.manager()?.rename_plan(from, to)?;
    let out = app.out();
    if out.is_json {
        return out.data(&Renamed { from, plan: to });
    }
    out.print(shown!["renamed plan ", clean(from), " to ", clean(to), "\n"])
}

/// Checks a plan file. All problems are on standard output, with exit code 7 if one of them is an error.
fn run_check(app: &App, check: &Check) -> Result<ExitCode, CliError> {
    let variables = check.variables.read(app)?;
    let text = PlanText::read(app, &check.file)?;
    let Some(problems) = accepted(app, &checker(app)?, &text, check.origin.of_calls(), &variables)? else {
        return Ok(ExitCode::from(7));
    };
    let file = text.plan(app, &check.takes)?;
    // Warns about tools of servers that did not run yet.
    file.check(app)?;
    let options = ApplyOptions { on_changed: check.takes.on_changed(), ..ApplyOptions::default() };
    let (plan, name) = (file.plan.clone(), file.name.clone());
    let apply = if has_store(app)? { Some(file.preview(app, options)?) } else { None };
    let params = plan.params.iter().map(|(name, param)| {
        let value = plan.values.get(name).or(param.default.as_ref());
        Param { name, kind: param.kind.as_str(), value }
    });
    let reliances = reliances(app, &plan)?;
    let checked = Checked {
        plan: &name,
        tasks: plan.tasks.len(),
        params: params.collect(),
        reliances,
        apply,
        problems: &problems,
    };
    let out = app.out();
    if out.is_json {
        return out.data(&checked);
    }
    if checked.apply.is_none() {
        out.remark("there is no store here; nothing was compared with it");
    }
    let mut text = told(app, &checked);
    text.push(problem_lines(app, &problems));
    out.print(text)
}

/// Checks the text of a plan, and prints the problems if one of them is an error. Otherwise returns the other problems.
pub(super) fn accepted(
    app: &App,
    plans: &Taskpawl,
    text: &PlanText,
    origin: Origin,
    variables: &RunVariables,
) -> Result<Option<Problems>, CliError> {
    let files = text.files(app);
    let files = files.as_ref().map(|files| files as &dyn PlanFiles);
    let options = CheckOptions { origin, variables, explain: &|name| explain_tool(app, name), files };
    let found = plans.blocking().check_text(&text.text, options)?;
    let lines = found.problems.iter().map(|problem| PlanProblemLine::new(&text.shown, problem));
    let of_schedule = PlanProblemLine::of_schedule(text);
    let errors = found.errors + usize::from(of_schedule.is_some());
    let problems = Problems { problems: lines.chain(of_schedule).collect(), omitted: found.omitted };
    if errors > 0 {
        report_problems(app, &problems, errors)?;
        return Ok(None);
    }
    Ok(Some(problems))
}

/// A problem of a plan, as it is printed.
#[derive(Serialize)]
struct PlanProblemLine {
    severity: &'static str,
    code: &'static str,
    #[serde(flatten)]
    problem: Problem,
}

impl PlanProblemLine {
    fn new(file: &str, found: &CheckProblem) -> Self {
        let problem = Problem::at(Some(file), found.at, found.path.clone(), found.message.clone());
        let problem = Problem { hint: found.hint.clone(), ..problem };
        Self { severity: found.severity.as_str(), code: found.code, problem }
    }

    /// Returns the fault of the schedule, which the library does not check: it has no calendar.
    fn of_schedule(text: &PlanText) -> Option<Self> {
        let plan = inspect_plan(&text.text).plan?;
        let problem = schedules::check::fault(&plan, &text.shown)?;
        Some(Self { severity: CheckSeverity::Error.as_str(), code: "schedule", problem })
    }
}

/// The problems of a plan.
#[derive(Serialize)]
pub(super) struct Problems {
    problems: Vec<PlanProblemLine>,
    /// The number of problems that are not listed.
    omitted: usize,
}

fn report_problems(app: &App, problems: &Problems, errors: usize) -> Result<(), CliError> {
    let out = app.out();
    if out.is_json {
        out.data(problems)?;
        return Ok(());
    }
    let mut text = problem_lines(app, problems);
    text.push(format!("{}: nothing of this plan can be applied\n", count(errors as u64, "error")));
    out.print(text)?;
    Ok(())
}

fn problem_lines(app: &App, problems: &Problems) -> Shown {
    let (out, mut text) = (app.out(), Shown::new());
    for line in &problems.problems {
        let colour = match line.severity {
            "error" => style::ERROR,
            "warning" => style::WARNING,
            _ => style::DIM,
        };
        text.push(shown![out.paint.style(colour, line.severity), ": ", clean(&line.problem.line()), "\n"]);
        if let Some(hint) = &line.problem.hint {
            let hint = hint.format_with(&*out.line);
            text.push(shown!["  ", out.paint.style(style::HINT, "hint:"), " ", clean(&hint), "\n"]);
        }
    }
    if problems.omitted > 0 {
        let _ = writeln!(text, "and {} more", problems.omitted);
    }
    text
}

fn reliances(app: &App, plan: &Plan) -> Result<Vec<Relied>, CliError> {
    let registry = app.toolbox()?.registry();
    let is_read_only =
        |call: &CallSpec| registry.get(&call.tool_name).is_some_and(|tool| tool.spec().hints.read_only);
    let name = |position: usize| {
        let task = &plan.tasks[position];
        task.id.as_ref().map_or_else(|| task.spec.name.clone(), ToString::to_string)
    };
    let found = plan.reliances(is_read_only).into_iter();
    Ok(found.map(|found| Relied { task: name(found.task), on: name(found.on) }).collect())
}

fn told(app: &App, checked: &Checked) -> Shown {
    let paint = app.out().paint;
    let mut text = if let Some(report) = &checked.apply {
        text_of(app, report)
    } else {
        shown!["plan ", paint.style(style::BOLD, &clean(checked.plan)), "\n"]
    };
    let _ = writeln!(text, "  {:<9}  {:>5}", "tasks", checked.tasks);
    for Relied { task, on } in &checked.reliances {
        let (task, on) = (clean(task), clean(on));
        let _ = writeln!(
            text,
            "  {:<9}  `{task}` runs on the report of any actor that ends `{on}`; `assignee: person` there lets only a person end it",
            "trust"
        );
    }
    for Param { name, kind, value } in &checked.params {
        let value = value.map_or_else(|| "to be given".to_owned(), |value| clean(&value.to_string()));
        let _ = writeln!(text, "  {:<9}  {name}: {kind} = {value}", "param");
    }
    text
}
