//! References that runs have left on the git remote of their files.

use taskpawl::store::{Diagnostic, Severity};
use taskpawl::{Manager, RunFilter, RunState, Taskpawl};

use crate::app::App;
use crate::error::CliError;

/// Reports references of runs that are over, and removes them with `fix`. Only a user whose configuration names a remote is told; a
/// remote that does not answer is no fault of the store.
pub(super) fn check(app: &App, plans: &Taskpawl, fix: bool) -> Result<Vec<Diagnostic>, CliError> {
    let Some(remote) = app.config()?.restate().remote.clone() else { return Ok(Vec::new()) };
    let Ok(place) = app.place() else { return Ok(Vec::new()) };
    let Ok(found) = taskpawl::leftover_refs(&place.root, &remote) else { return Ok(Vec::new()) };
    let over = ended_runs(plans.manager())?;
    let is_left = |name: &String| {
        let run = name.rsplit('/').next().unwrap_or_default();
        over.iter().any(|id| {
            run.strip_prefix(id.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let left: Vec<String> = found.into_iter().filter(is_left).collect();
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let message = format!(
        "{} of runs that are over have files of this project",
        crate::text::count(left.len() as u64, "reference")
    );
    let remedy = "`taskpawl doctor --fix` removes them";
    let mut diagnostic =
        Diagnostic::new("files_remote", Severity::Repairable, remote.clone(), message, remedy);
    if fix && taskpawl::remove_refs(&place.root, &remote, &left).is_ok() {
        diagnostic.is_repaired = true;
    }
    Ok(vec![diagnostic])
}

/// Returns the ids of the runs of this store that are over. Killed ones may have calls that still return files.
fn ended_runs(manager: &Manager) -> Result<Vec<String>, CliError> {
    let runs = manager.runs(&RunFilter { limit: 0 })?;
    let is_over = |run: &taskpawl::model::task::RunRecord| manager.run_state(run) == RunState::Finished;
    Ok(runs.iter().filter(|run| is_over(run)).map(|run| run.id.to_string()).collect())
}
