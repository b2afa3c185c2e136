use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;
use taskpawl::model::advice::Hint;
use taskpawl::model::value::Timestamp;
use taskpawl::store::{self, Location, OpenBackup, PlacementError, StorePlacement, initialize, locate};
use taskpawl::{RunFilter, RunState};

use crate::app::App;
use crate::caller::Caller;
use crate::error::CliError;
use crate::person;
use crate::text::{clean, count, time};

/// Name of the command in refusals.
const BY: &str = "restore";

/// Make a store of a backup, so that its plans go on here
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A directory that is no project yet becomes one, with the id of the project that was backed up. A store that is here already is only \
replaced with --replace, and kept as a copy.

Changes after the backup are lost: the command prints its time. Runs that were at work count as killed. Their calls on workers \
are joined by `run-all-ready --engine restate`, also those that started after the backup. Calls that ran on the lost machine are handled \
as after a crash: those that may be repeated run again, others wait for a decision.

The restored store gets a new fencing number: workers that have seen it refuse calls of the old store.

Examples:
  taskpawl restore /mnt/backups/app.db
  taskpawl restore /mnt/backups/app.db --replace")]
pub(crate) struct Args {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace the store of this project; it is kept as a copy
    #[arg(long)]
    replace: bool,
}

/// A restored store.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Restored {
    store: String,
    revision: u64,
    /// The time at which the backup was made: commits after it are lost.
    made_at: Timestamp,
    host: String,
    fence: u64,
    /// Commits of the replaced store that the backup does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_commits: Option<u64>,
    /// The copy of the replaced store.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<PathBuf>,
    /// Runs that were at work.
    killed_runs: usize,
}

/// Restores a backup.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    person::refuse_within_call(app, BY)?;
    if let Caller::Agent(sign) = app.caller() {
        return Err(CliError::ByAgent { by: BY, sign: sign.clone() });
    }
    let backup = store::open_backup(&args.file).map_err(taskpawl::Error::from)?;
    let place = place(app, &backup)?;
    let location = place.location.resolved();
    check_kind(&backup, &location)?;
    let replaced = location.path().filter(|path| std::fs::metadata(path).is_ok_and(|data| data.len() > 0));
    let before = match replaced {
        Some(path) if !args.replace => return Err(has_store(path)),
        Some(_) => Some(revision_at_rest(app)?),
        None => None,
    };
    let fence = u64::try_from(app.source()?.now().timestamp_millis()).unwrap_or_default();
    let kept = backup.restore(&location, fence).map_err(taskpawl::Error::from)?;
    // A handle of its own, which has not read the replaced store.
    let plans = app.builder()?.without_builtin_tools().open()?;
    let mut runs = plans.manager().runs(&RunFilter { limit: 0 })?;
    runs.retain(|run| plans.manager().run_state(run) == RunState::Killed && run.exit.is_none());
    if let Some(Value::Object(places)) = backup.note.beside.get("places") {
        let of_open = places.iter().filter(|(id, _)| runs.iter().any(|run| run.id.as_str() == *id));
        let places = of_open.map(|(id, text)| (id.clone(), text.clone())).collect();
        let failed = |source| CliError::File { action: "write", path: args.file.clone(), source };
        plans.engine().import_places(&places).map_err(failed)?;
    }
    let revision = backup.content.revision;
    let restored = Restored {
        store: location.to_string(),
        revision,
        made_at: backup.note.made_at,
        host: backup.note.host.clone(),
        fence,
        lost_commits: before.map(|before| before.saturating_sub(revision)),
        kept,
        killed_runs: runs.len(),
    };
    print(app, &restored)
}

/// Returns the place of the store; a directory without a project gets the id of the project that was backed up.
fn place(app: &App, backup: &OpenBackup) -> Result<StorePlacement, CliError> {
    let environment = app.placement();
    match locate(&environment) {
        Err(PlacementError::NoProject { .. }) => {
            let id = backup
                .content
                .project
                .clone()
                .map_or_else(|| app.source().map(|source| source.new_id()), Ok)?;
            let made = initialize(&environment, &id, None);
            if let Err(PlacementError::Copied { original, .. }) = &made {
                return Err(is_here(original));
            }
            Ok(made?)
        }
        known => Ok(known?),
    }
}

/// Returns the error for a backup of a project that is on this machine, too.
fn is_here(original: &Path) -> CliError {
    let original = clean(&original.display().to_string());
    let hint = "restore it there with `--replace`, or make another store of it with `--store PATH`";
    CliError::usage_with(format!("the project of this backup is in `{original}`"), hint)
}

fn check_kind(backup: &OpenBackup, location: &Location) -> Result<(), CliError> {
    if backup.fits(location) {
        return Ok(());
    }
    let (is, hint) = if matches!(location, Location::Json(_)) {
        ("a database", "name a database with `--store PATH`")
    } else {
        ("a JSON store", "name a file with `--store json:PATH`")
    };
    Err(CliError::usage_with(format!("the backup is {is}, and `{location}` is not"), hint))
}

fn has_store(path: &Path) -> CliError {
    let path = clean(&path.display().to_string());
    let hint = "add `--replace`: the store that is here is kept as a copy";
    CliError::usage_with(format!("refusing to replace `{path}`: it is a store"), hint)
}

/// Returns the revision of the store that is replaced, in which no run is at work.
fn revision_at_rest(app: &App) -> Result<u64, CliError> {
    // Its own handle, closed before the store is replaced.
    let plans = app.builder()?.without_builtin_tools().open()?;
    let manager = plans.manager();
    let runs = manager.runs(&RunFilter { limit: 0 })?;
    match runs.iter().find(|run| manager.run_state(run) == RunState::Running) {
        Some(run) => Err(CliError::RunAtWork { by: BY, run: run.id.clone() }),
        None => Ok(manager.revision()?),
    }
}

fn print(app: &App, restored: &Restored) -> Result<ExitCode, CliError> {
    let out = app.out();
    if out.is_json {
        return out.data(restored);
    }
    let Restored { store, revision, made_at, host, .. } = restored;
    let at = time(*made_at, out.now);
    let code = out.print(format!(
        "restored {}: revision {revision}, as of {at} on {}\n",
        clean(store),
        clean(host)
    ))?;
    match (restored.lost_commits, &restored.kept) {
        (Some(lost), Some(kept)) => out.remark(&format!(
            "{} of the replaced store are lost; it is kept as `{}`",
            count(lost, "commit"),
            clean(&kept.display().to_string())
        )),
        _ => out.remark(&format!("commits after {at} are lost")),
    }
    if restored.killed_runs > 0 {
        let killed = count(restored.killed_runs as u64, "run");
        let hint = Hint::new(format!("{killed} at work then, which counts as killed; "));
        out.advise(&hint.command("run-all-ready").text(" goes on, with the engine that it had"));
    }
    Ok(code)
}
