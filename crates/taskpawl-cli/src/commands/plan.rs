use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;
use taskpawl::ApplyOptions;
use taskpawl::model::command::ApplyReport;
use taskpawl::model::plan::Plan;
use taskpawl::model::task::CallSpec;
use taskpawl::store::PlacementError;

use crate::app::App;
use crate::commands::apply::{PlanFile, Takes, text_of};
use crate::error::CliError;
use crate::shown::{Shown, shown};
use crate::text::{clean, style};

/// Check plan files, and rename plans
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl plan check plan.yaml
  taskpawl plan check plan.yaml --param region=eu --json
  taskpawl plan rename release release-2025")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List all faults of a plan, and the changes that applying it would make
    Check(Check),
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
    #[command(flatten)]
    takes: Takes,
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
        What::Check(check) => run_check(app, check),
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

fn run_check(app: &App, check: &Check) -> Result<ExitCode, CliError> {
    let file = PlanFile::read(app, &check.file, &check.takes)?;
    file.check(app)?;
    let plan = file.plan.clone();
    let name = file.name.clone();
    let apply = if has_store(app)? {
        Some(file.preview(app, ApplyOptions::default())?)
    } else {
        // Without a store there is nothing that could know these fields.
        file.refuse_unknown()?;
        None
    };
    let params = plan.params.iter().map(|(name, param)| {
        let value = plan.values.get(name).or(param.default.as_ref());
        Param { name, kind: param.kind.as_str(), value }
    });
    let reliances = reliances(app, &plan)?;
    let checked =
        Checked { plan: &name, tasks: plan.tasks.len(), params: params.collect(), reliances, apply };
    let out = app.out();
    if out.is_json {
        return out.data(&checked);
    }
    if checked.apply.is_none() {
        out.remark("there is no store here; nothing was compared with it");
    }
    out.print(told(app, &checked))
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

fn has_store(app: &App) -> Result<bool, CliError> {
    match app.place() {
        Ok(_) => Ok(true),
        Err(CliError::Placement(PlacementError::NoProject { .. })) => Ok(false),
        // Opening the store reports the actual problem, such as a copied project.
        Err(_) => app.reader().map(|_| true),
    }
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
            "  {:<9}  `{task}` runs on the word of whoever ends `{on}`; `assignee: person` there lets only a person end it",
            "trust"
        );
    }
    for Param { name, kind, value } in &checked.params {
        let value = value.map_or_else(|| "to be given".to_owned(), |value| clean(&value.to_string()));
        let _ = writeln!(text, "  {:<9}  {name}: {kind} = {value}", "param");
    }
    text
}
