use std::process::ExitCode;

use serde::Serialize;
use taskpawl::store::{Rule, StorePlacement};

use crate::app::App;
use crate::error::CliError;
use crate::text::{Cell, Table, style};

/// Show the location of the store, and why
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl where
  taskpawl where --fields store")]
pub(crate) struct Args {}

/// The location of the store in `--json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    store: String,
    exists: bool,
    rule: &'static str,
    #[serde(skip)]
    because: &'static str,
    root: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    copy_of: Option<String>,
}

/// Prints the location of the store, and the rule that chose it.
pub(crate) fn run(app: &App, _: &Args) -> Result<ExitCode, CliError> {
    let place = app.place()?;
    // Copies of projects are settled by `init`: only a store that was named directly can still be an
    // unsettled copy.
    let original = if place.id.is_none() && is_file(place) { settle_copy(app)? } else { None };
    print_with(app, Shown { copy_of: original, ..Shown::of(place) })
}

/// Gives a copied store its own id, and returns the path of the original. With the same id, its calls would
/// use the original's idempotency keys.
fn settle_copy(app: &App) -> Result<Option<String>, CliError> {
    let original = app.reader()?.engine().settle_copy()?;
    Ok(original.map(|path| path.display().to_string()))
}

fn is_file(place: &StorePlacement) -> bool {
    place.location.path().is_some_and(std::path::Path::is_file)
}

/// Prints the location of a store.
pub(super) fn print(app: &App, place: &StorePlacement) -> Result<ExitCode, CliError> {
    print_with(app, Shown::of(place))
}

fn print_with(app: &App, shown: Shown) -> Result<ExitCode, CliError> {
    let out = app.out();
    if out.is_json {
        return out.data(&shown);
    }
    let store = if shown.exists { shown.store } else { format!("{} (made by the first write)", shown.store) };
    let copy_of = shown
        .copy_of
        .map(|path| format!("{path} (it has an id of its own now; calls that have started keep their keys)"));
    let fields = [
        ("store", Some(store)),
        ("because", Some(shown.because.to_owned())),
        ("root", Some(shown.root)),
        ("project", shown.project),
        ("id", shown.id),
        ("moved from", shown.moved_from),
        ("copy of", copy_of),
    ];
    let mut table = Table::new(2);
    for (label, value) in fields {
        if let Some(value) = value {
            table.row(vec![Cell::styled(label, style::DIM), Cell::new(value)]);
        }
    }
    out.print(table.render(out.paint, None))
}

impl Shown {
    fn of(place: &StorePlacement) -> Self {
        let path = |path: &std::path::PathBuf| path.display().to_string();
        Self {
            store: place.location.to_string(),
            // A call reaches its store through a socket, so there is no path to check.
            exists: place.rule == Rule::Call || place.location.path().is_some_and(std::path::Path::exists),
            rule: word(place.rule),
            because: meaning(place.rule),
            root: path(&place.root),
            project: place.project.as_ref().map(path),
            id: place.id.clone(),
            moved_from: place.moved_from.as_ref().map(path),
            copy_of: None,
        }
    }
}

fn word(rule: Rule) -> &'static str {
    match rule {
        Rule::Flag => "flag",
        Rule::Variable => "variable",
        Rule::Call => "call",
        Rule::Project => "project",
        Rule::StateDirectory => "state_directory",
        _ => "unknown",
    }
}

fn meaning(rule: Rule) -> &'static str {
    match rule {
        Rule::Flag => "`--store` says so",
        Rule::Variable => "`TASKPAWL_STORE` says so",
        Rule::Call => "`TASKPAWL_FD` says so: this runs within a call that has access to its plan",
        Rule::Project => "`taskpawl init --store` said so",
        Rule::StateDirectory => {
            "the project has an id, and its store lies in the state directory of the user"
        }
        _ => "",
    }
}
