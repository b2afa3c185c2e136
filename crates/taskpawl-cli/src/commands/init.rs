use std::process::ExitCode;

use taskpawl::model::advice::Hint;
use taskpawl::store::{CopyChoice, PlacementError, Rule, StorePlacement, initialize, locate, resolve_copy};

use crate::app::App;
use crate::commands::create::ask;
use crate::commands::{agents, placement};
use crate::error::CliError;
use crate::text::quoted;

/// Make this directory a project. Creates the store outside all directories that tools may write, and informs
/// coding agents about it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The store lies in the state directory of the user; `--store PATH` puts it elsewhere. A project stays as it is.

With --agent, the files that the agent reads in this project get an entry for `taskpawl mcp` and a marked block of \
instructions. The changes are shown first. All else in the files stays byte for byte, doing it again changes nothing, \
and --remove takes back these changes. docs/agents.md lists the files.

Examples:
  taskpawl init
  taskpawl init --store /srv/plans/tasks.db
  taskpawl init --new    without the tasks that a copied or an earlier project has
  taskpawl init --agent claude --hooks
  taskpawl init --agent codex,cursor --yes
  taskpawl init --agent claude --remove")]
pub(crate) struct Args {
    /// In a copy of a project: work on the tasks of the original
    #[arg(long, conflicts_with = "new")]
    share: bool,
    /// Begin without tasks, in a copy or where a project was; what was there is kept
    #[arg(long)]
    new: bool,
    #[command(flatten)]
    agents: agents::AgentArgs,
}

/// Creates a project, or sets up agents with `--agent`.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    if args.agents.is_asked() {
        let without_store = store_of_project(app);
        let root = match locate(&without_store) {
            Ok(place) => place.root,
            Err(PlacementError::NoProject { directory }) => directory,
            // `make` settles or reports any other problem, such as a copied project.
            Err(_) => make(app, args)?.root,
        };
        // A closure, so that the project is created only after the user has agreed to the changes.
        return agents::run(app, &args.agents, &root, || make(app, args).map(drop));
    }
    let place = make(app, args)?;
    placement::print(app, &place)
}

/// Creates the project, or keeps the existing one.
fn make(app: &App, args: &Args) -> Result<StorePlacement, CliError> {
    let environment = app.placement();
    let without_store = store_of_project(app);
    let place = match locate(&without_store) {
        Err(error @ PlacementError::Copied { .. }) => {
            let share = choose(app, args, error)?;
            let id = app.source()?.new_id();
            let choice = if share { CopyChoice::Share } else { CopyChoice::New(&id) };
            resolve_copy(&without_store, choice)?
        }
        _ if args.share => {
            return Err(CliError::usage_with(
                "this is no copy of a project, so there is nothing to share",
                Hint::default().command("init").text(" alone makes or keeps a project"),
            ));
        }
        known => {
            let place = initialize(&environment, &app.source()?.new_id(), environment.store_flag.as_deref())?;
            let was_known = known.is_ok_and(|known| known.project == place.project);
            own_or_found_again(app, args, place, was_known)?
        }
    };
    remark(app, &place);
    Ok(place)
}

/// Reports that a directory without its project file got its former store back. With `--new`, gives it a new
/// store instead.
fn own_or_found_again(
    app: &App,
    args: &Args,
    place: StorePlacement,
    was_known: bool,
) -> Result<StorePlacement, CliError> {
    if args.new && place.rule != Rule::StateDirectory {
        return Err(CliError::usage_with(
            "the store of this project was named, so there is no store in the state directory to replace",
            Hint::new("name another one with ").command("init --store PATH"),
        ));
    }
    let store = place.location.path().filter(|store| store.exists());
    let Some(store) = store.filter(|_| place.rule == Rule::StateDirectory) else { return Ok(place) };
    let store = quoted(&store.display().to_string());
    if !args.new {
        if !was_known {
            let again = Hint::new("a project was here before, and its tasks are here again; ");
            app.out().advise(&again.command("init --new").text(" begins without them"));
        }
        return Ok(place);
    }
    // A new id for a worktree would cut it off from its main tree.
    if place.project.as_ref() != Some(&place.root) {
        return Err(CliError::usage_with(
            "this is a worktree, and shares the tasks of its main tree",
            Hint::new("give ").command("init --new").text(" there, or name a store with `--store PATH`"),
        ));
    }
    let place = resolve_copy(&store_of_project(app), CopyChoice::New(&app.source()?.new_id()))?;
    app.out().remark(&format!("the tasks that were here are kept: `--store {store}` names them"));
    Ok(place)
}

/// Returns the environment without `--store` and `TASKPAWL_STORE`: `init` is about the project, not about the
/// store that other commands use.
fn store_of_project(app: &App) -> taskpawl::store::Environment {
    taskpawl::store::Environment { store_flag: None, store_variable: None, ..app.placement() }
}

fn choose(app: &App, args: &Args, error: PlacementError) -> Result<bool, CliError> {
    if args.share || args.new {
        return Ok(args.share);
    }
    if !app.terminal().can_ask() {
        return Err(error.into());
    }
    app.out().remark(&error.to_string());
    match ask(app, "share its tasks, or new ones (share/new)")?.as_str() {
        "share" => Ok(true),
        "new" => Ok(false),
        _ => Err(error.into()),
    }
}

fn remark(app: &App, place: &StorePlacement) {
    if let Some(variable) = app.placement().store_variable {
        app.out().warn(&format!(
            "`TASKPAWL_STORE` is set to `{variable}`: other commands use that, not `{}`",
            place.location
        ));
    }
}
