use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use taskpawl::{CacheLayers, KeptWorktree, PruneOptions, PruneReport, Taskpawl, WorktreeState};

use crate::app::App;
use crate::byte_size;
use crate::commands::parse;
use crate::commands::print::count;
use crate::commands::sandbox::SandboxArgs;
use crate::error::CliError;

/// Remove data of old runs. Removes their records, and the output of their calls
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Tasks, their results and the history stay. Output of tasks that are still open, and of runs that go on, stays, too.
Commands that were given before that age cannot be undone any more, and requests of agents \
(`request_id`) that were done before it are forgotten: one that comes again is done again.
`taskpawl doctor` says how much the changes of programs to caches take. They are removed before a run if they take more than 8 GiB, \
and after 30 days without one.
`quota` in the section `[output]` of the configuration does the same as --quota at the end of every run.

Examples:
  taskpawl prune --older-than 30d
  taskpawl prune --quota 1GiB --dry-run
  taskpawl prune --caches
  taskpawl prune --worktrees")]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true).args(["older_than", "quota", "caches", "worktrees"])))]
pub(crate) struct Args {
    /// Forget runs that ended longer ago, as in 30d or 12h, with their output
    #[arg(long, value_name = "DURATION", value_parser = parse::age)]
    older_than: Option<Duration>,
    /// Remove the output of the runs that ended first until the rest fits, as in 500MB or 2GiB
    #[arg(long, value_name = "SIZE", value_parser = byte_size::parse)]
    quota: Option<u64>,
    /// Remove the changes of programs to caches, which lie in layers of the project; packages are downloaded again
    #[arg(long)]
    caches: bool,
    /// Remove the git worktrees that no task has any more; their branches stay
    #[arg(long)]
    worktrees: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
}

/// The result in `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pruned {
    #[serde(flatten)]
    report: PruneReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    caches: Option<CacheLayers>,
    /// The paths of the worktrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    worktrees: Option<Vec<PathBuf>>,
    /// Space that they took on the disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree_bytes: Option<u64>,
}

/// Removes data of old runs.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let plans = if args.dry_run { app.reader()? } else { app.writer()? };
    let options = PruneOptions { older_than: args.older_than, quota: args.quota, dry_run: args.dry_run };
    let report = plans.engine().prune(&options)?;
    let caches = match (args.caches, args.dry_run) {
        (false, _) => None,
        (true, true) => Some(plans.engine().cache_layers()),
        (true, false) => Some(plans.engine().remove_cache_layers()?),
    };
    let orphans = if args.worktrees { Some(orphans(app, args.dry_run)?) } else { None };
    let (orphans, worktree_bytes) = orphans.map_or((None, 0), |(all, bytes)| (Some(all), bytes));
    let out = app.out();
    if out.is_json {
        let worktrees: Option<Vec<PathBuf>> =
            orphans.map(|all| all.into_iter().map(|worktree| worktree.path).collect());
        let worktree_bytes = worktrees.is_some().then_some(worktree_bytes);
        return out.data(&Pruned { report, caches, worktrees, worktree_bytes });
    }
    if let Some(orphans) = &orphans {
        let done = if args.dry_run { "would remove" } else { "removed" };
        out.remark(&match orphans.len() {
            0 => "no worktree is without a task".to_owned(),
            _ => format!("{done} {}: {}", sized_of(orphans.len(), worktree_bytes), tasks_of(orphans)),
        });
        if args.older_than.is_none() && args.quota.is_none() && caches.is_none() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    if let Some(caches) = caches {
        let size = size(caches.bytes);
        out.remark(&match (args.dry_run, caches.is_removed) {
            (true, _) => format!("would remove {size} of changes to caches"),
            (false, true) => format!("removed {size} of changes to caches"),
            (false, false) => format!("{size} of changes to caches stay: a run uses them"),
        });
        if args.older_than.is_none() && args.quota.is_none() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    if args.quota.is_some_and(|quota| report.bytes_left > quota) {
        let left = size(report.bytes_left);
        out.remark(&format!("{left} stay: files of open tasks, running runs and results are not removed"));
    }
    out.print(format!("{}\n", said(&report, args.dry_run)))
}

/// Removes the worktrees that no task has, and returns them with the space that they took.
fn orphans(app: &App, is_dry: bool) -> Result<(Vec<KeptWorktree>, u64), CliError> {
    let plans = app.onlooker(&SandboxArgs::default())?;
    let mut kept = plans.engine().kept_worktrees()?;
    kept.retain(|worktree| worktree.state == WorktreeState::Orphan);
    let mut bytes = 0;
    kept.retain(|worktree| {
        let size = worktree.disk_bytes();
        let removed = if is_dry { Ok(()) } else { plans.engine().remove_worktree(worktree) };
        match removed {
            Ok(()) => {
                bytes += size;
                true
            }
            Err(why) => {
                app.out().warn(&format!("the worktree of `{}` stays: {why}", worktree.task));
                false
            }
        }
    });
    Ok((kept, bytes))
}

/// Returns the number of worktrees with the space that they take.
pub(super) fn sized(worktrees: &[KeptWorktree]) -> String {
    sized_of(worktrees.len(), worktrees.iter().map(KeptWorktree::disk_bytes).sum())
}

fn sized_of(number: usize, bytes: u64) -> String {
    format!("{} ({})", count(number as u64, "worktree"), size(bytes))
}

/// Lists the tasks of worktrees, at most five of them.
pub(super) fn tasks_of(worktrees: &[KeptWorktree]) -> String {
    let tasks: Vec<String> = worktrees.iter().map(|worktree| worktree.task.clone()).collect();
    taskpawl::model::value::bounded::list(tasks, ", ")
}

/// Prunes output down to the quota of the configuration, and reports the removal.
pub(super) fn keep_quota(app: &App, plans: &Taskpawl) -> Result<(), CliError> {
    let Some(quota) = app.config()?.output_quota else { return Ok(()) };
    let options = PruneOptions { quota: Some(quota), ..PruneOptions::default() };
    match plans.engine().prune(&options) {
        Ok(report) if report.is_empty() => {}
        Ok(report) => app.out().remark(&format!("{}: the quota is {}", said(&report, false), size(quota))),
        // Only a warning: the run has ended and is recorded, and must not look failed.
        Err(error) => app.out().warn(&format!("the output could not be kept within its quota: {error}")),
    }
    Ok(())
}

fn said(report: &PruneReport, is_dry: bool) -> String {
    let done = if is_dry { "would remove" } else { "removed" };
    let mut parts = Vec::new();
    if !report.runs.is_empty() {
        parts.push(count(report.runs.len() as u64, "run"));
    }
    if !report.outputs.is_empty() {
        parts.push(format!("the output of {}", count(report.outputs.len() as u64, "run")));
    }
    if report.files > 0 {
        parts.push(format!("{} ({})", count(report.files, "file"), size(report.bytes)));
    }
    if report.commands > 0 {
        parts.push(format!("the undo data of {}", count(report.commands, "command")));
    }
    if report.requests > 0 {
        parts.push(format!("the memory of {}", count(report.requests, "request")));
    }
    if parts.is_empty() { "nothing to remove".to_owned() } else { format!("{done} {}", parts.join(", ")) }
}

/// Formats a number of bytes for people.
pub(super) fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(*unit);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => count(bytes, "byte"),
    }
}
