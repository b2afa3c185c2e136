//! `plan list` and `plan copy`: plans by name.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Value, json};
use taskpawl::PlanDirectory;
use taskpawl::model::advice::Hint;
use taskpawl::model::plan::plan_value;

use crate::app::App;
use crate::error::CliError;
use crate::plan_library::{self, NamedPlan, PlanOwner};
use crate::shown::{Shown, shown};
use crate::text::{Cell, Table, clean, nearest, quoted};

#[derive(Debug, clap::Args)]
pub(super) struct Copy {
    /// The name, as `plan list` prints it
    #[arg(value_name = "NAME")]
    name: String,
    /// The new file, which must not exist; by default NAME.yaml
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// A plan in the list.
#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    owner: PlanOwner,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

impl From<NamedPlan> for Listed {
    fn from(plan: NamedPlan) -> Self {
        let description = plan.description();
        Self { name: plan.name, owner: plan.owner, path: plan.path, description }
    }
}

/// Lists the plans that have a name.
pub(super) fn list(app: &App) -> Result<ExitCode, CliError> {
    let plans: Vec<Listed> = plan_library::all(app)?.into_iter().map(Listed::from).collect();
    let out = app.out();
    if out.is_json {
        return out.data(&plans);
    }
    let mut table = Table::new(0);
    for plan in &plans {
        let owner = match plan.owner {
            PlanOwner::Project => "project",
            PlanOwner::User => "user",
            PlanOwner::Bundled => "bundled",
        };
        let description = plan.description.as_deref().unwrap_or_default();
        let cells = [clean(&plan.name), owner.to_owned(), clean(description)];
        table.row(cells.iter().map(Cell::new).collect());
    }
    out.print(table.render(out.paint, out.width))
}

/// Copies a plan to a file.
pub(super) fn copy(app: &App, args: &Copy) -> Result<ExitCode, CliError> {
    let plan = plan_library::find(app, &args.name)?.ok_or_else(|| unknown(app, &args.name))?;
    let file = args.file.clone().unwrap_or_else(|| PathBuf::from(format!("{}.yaml", args.name)));
    let written = fs::File::create_new(&file).and_then(|mut written| written.write_all(plan.text.as_bytes()));
    written.map_err(|source| CliError::File { action: "write", path: file.clone(), source })?;
    let out = app.out();
    let includes = included_paths(&plan.text);
    if out.is_json {
        let mut data = json!({"plan": plan.name, "file": file});
        if !includes.is_empty() {
            data["includes"] = json!(includes);
        }
        return out.data(&data);
    }
    for path in includes {
        out.warn(&format!("it includes `{path}`, which is not copied"));
    }
    let text: Shown = shown!["wrote ", clean(&file.display().to_string()), "\n"];
    out.print(text)
}

/// Returns the paths of the files that a plan includes itself. Plans that it includes by name are found from everywhere.
fn included_paths(text: &str) -> Vec<String> {
    fn add(task: &Value, paths: &mut Vec<String>) {
        let include = &task["include"];
        let path = include.as_str().or_else(|| include["file"].as_str());
        paths.extend(path.filter(|path| !PlanDirectory::is_name(path)).map(str::to_owned));
        task["subtasks"].as_array().into_iter().flatten().for_each(|task| add(task, paths));
    }
    let (plan, mut paths) = (plan_value(text).unwrap_or_default(), Vec::new());
    let tasks = plan["tasks"].as_array().or_else(|| plan.as_array());
    tasks.into_iter().flatten().for_each(|task| add(task, &mut paths));
    paths.sort();
    paths.dedup();
    paths
}

fn unknown(app: &App, name: &str) -> CliError {
    let plans = plan_library::all(app).unwrap_or_default();
    let near = nearest(name, plans.iter().map(|plan| plan.name.as_str()));
    let hint = match near {
        Some(near) => Hint::new("did you mean ").data(near).text("?"),
        None => Hint::default().command("plan list").text(" lists them"),
    };
    CliError::usage_with(format!("no plan is named {}", quoted(name)), hint)
}
