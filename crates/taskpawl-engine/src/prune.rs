//! Removes leftovers of finished runs: their records, and the output files of their calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use taskpawl_model::command::{Command, Prune};
use taskpawl_model::task::EventKind;
use taskpawl_model::task::{CallRecord, RunRecord, StatusKind};
use taskpawl_model::value::Timestamp;
use taskpawl_model::value::{CallId, Key, RunId, TaskId};
use taskpawl_model::view::{EventQuery, UndoSnapshot, View, ViewResult};

use crate::artifacts::{ArtifactStore, runs_in_use};
use crate::engine::Engine;
use crate::error::RunError;
use crate::output::{OutputFile, OutputKind};

/// Age below which files are kept even if the store does not refer to them: a run may be about to record that it needs
/// them.
const GRACE: Duration = Duration::from_secs(3600);

/// Criteria of a prune. Open runs and open tasks always keep all of their output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneOptions {
    /// Remove the records of runs that ended longer ago than this, and their output.
    pub older_than: Option<Duration>,
    /// Remove the output of the runs that ended first until the rest has at most this many bytes.
    pub quota: Option<u64>,
    /// Only report, without removing anything.
    pub dry_run: bool,
}

/// Result of a prune, or of its dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PruneReport {
    /// Runs whose records are removed.
    pub runs: Vec<RunId>,
    /// Other runs, whose output is removed.
    pub outputs: Vec<RunId>,
    /// Number of commands that cannot be undone any more.
    pub commands: u64,
    /// Number of idempotent requests that are forgotten. Repeating one of them executes it again.
    pub requests: u64,
    /// Number of removed files.
    pub files: u64,
    /// Total size of the removed files.
    pub bytes: u64,
    /// Total size of the remaining output.
    pub bytes_left: u64,
}

impl PruneReport {
    /// Returns whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        let of_store = self.runs.is_empty() && self.commands == 0 && self.requests == 0;
        of_store && self.outputs.is_empty() && self.files == 0
    }
}

impl Engine {
    /// Removes the records of old runs and the output files of their calls. The history of the tasks stays.
    ///
    /// # Durability
    /// The store is written first, then the files are removed. Files that remain after a crash are removed by the next
    /// prune.
    ///
    /// # Concurrency
    /// Runs may be active meanwhile. A call is recorded before its files exist, and files of open runs are kept.
    pub fn prune(&self, options: &PruneOptions) -> Result<PruneReport, RunError> {
        let output = self.output();
        let mut files = output.files().map_err(|source| output.error("list", source))?;
        files.extend(self.artifacts.iter().flat_map(ArtifactStore::files));
        let total: u64 = files.iter().map(|file| file.bytes).sum();
        if options.older_than.is_none() && options.quota.is_none_or(|quota| total <= quota) {
            return Ok(PruneReport { bytes_left: total, ..PruneReport::default() });
        }
        let now = self.manager().source().now();
        let plan = self.manager().read(|view| Ok(Plan::new(view, files, options, now)?))?;
        let report = plan.report(total);
        if options.dry_run || report.is_empty() {
            return Ok(report);
        }
        let before = options.older_than.map(|age| back(now, age));
        let PruneReport { runs, outputs, files, bytes, .. } = report.clone();
        let commands = plan.until;
        let prune = Prune { runs, outputs, commands, before, files, bytes };
        self.manager().command(Command::Prune(Box::new(prune)))?;
        // Partial results are in the same directory, so they need the lock as well.
        let is_result = |file: &OutputFile| matches!(file.kind, OutputKind::Result(_) | OutputKind::Scrap);
        let has_results = plan.remove.iter().any(is_result);
        let lock = has_results.then(|| output.lock_results()).transpose();
        let _lock = lock.map_err(|source| output.error("lock", source))?;
        let mut result = Ok(());
        for file in &plan.remove {
            // A file that cannot be removed does not stop the others; the next prune tries again.
            result = result.and(remove(file));
        }
        if let Some(store) = &self.artifacts {
            store.forget_emptied(&plan.remove);
        }
        result.map(|()| report)
    }
}

/// Removes a file unless it was modified since it was listed.
fn remove(file: &OutputFile) -> Result<(), RunError> {
    let removed = fs::symlink_metadata(&file.path).and_then(|data| {
        if data.modified()? == file.modified { fs::remove_file(&file.path) } else { Ok(()) }
    });
    match removed {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(RunError::Files { action: "remove", path: file.path.clone(), source })
        }
        _ => Ok(()),
    }
}

/// The owner of a file, which decides if it may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    /// An open run, an open task, or a reference in the store.
    InUse,
    /// A finished run.
    Run(RunId),
    /// A run whose output was already pruned. A crash left this file, or its task was still open at that time.
    Forgotten,
    /// No owner: the task was deleted, or nothing refers to the file any more.
    Nobody,
}

/// Everything that a prune removes.
#[derive(Debug, Default)]
struct Plan {
    runs: Vec<RunId>,
    outputs: Vec<RunId>,
    /// Commands up to this revision, `commands` in number, cannot be undone any more.
    until: Option<u64>,
    commands: u64,
    requests: u64,
    remove: Vec<OutputFile>,
    stay: Vec<(OutputFile, Owner)>,
}

impl Plan {
    fn new(
        view: &dyn View,
        files: Vec<OutputFile>,
        options: &PruneOptions,
        now: Timestamp,
    ) -> ViewResult<Self> {
        let mut plan = Self::default();
        let before = options.older_than.map(|age| back(now, age));
        plan.requests = before.map(|before| view.requests_before(before)).transpose()?.unwrap_or_default();
        plan.until = before.map(|before| last_before(view, before)).transpose()?;
        let mut owners = Owners::new(view, &files)?;
        let until = plan.until.unwrap_or(0);
        let mut take_image = |revision, undo_snapshot: Arc<UndoSnapshot>| {
            if revision <= until {
                plan.commands += 1;
            } else {
                // The command can still be undone, which would restore these results.
                owners.results.extend(results_of(&undo_snapshot));
            }
        };
        if before.is_some() || owners.has_results {
            view.each_undo_snapshot(&mut take_image)?;
        }
        for file in files {
            let owner = owners.of(view, &file)?;
            plan.stay.push((file, owner));
        }
        let grace = back(now, GRACE);
        let runs = owners.runs;
        if let Some(before) = before {
            plan.take_old(&runs, before, grace);
        }
        if let Some(quota) = options.quota {
            plan.take_above(&runs, quota, grace);
        }
        Ok(plan)
    }

    fn take_old(&mut self, runs: &BTreeMap<RunId, RunRecord>, before: Timestamp, grace: Timestamp) {
        let is_old = |run: &&RunRecord| run.ended_at().is_some_and(|end| end < before);
        let old: BTreeSet<RunId> = runs.values().filter(is_old).map(|run| run.id.clone()).collect();
        self.take(|file, owner| match owner {
            Owner::InUse => false,
            Owner::Run(run) => old.contains(run),
            Owner::Forgotten => true,
            Owner::Nobody => time(file.modified) < before.min(grace),
        });
        self.runs.extend(old);
    }

    /// Removes the output of one run after another, in the order in which they ended, until the rest is within the
    /// quota.
    fn take_above(&mut self, runs: &BTreeMap<RunId, RunRecord>, quota: u64, grace: Timestamp) {
        if self.bytes_left() > quota {
            self.take(|file, owner| match owner {
                Owner::InUse | Owner::Run(_) => false,
                Owner::Forgotten => true,
                Owner::Nobody => time(file.modified) < grace,
            });
        }
        let mut by_end: Vec<&RunRecord> = runs.values().filter(|run| !run.is_open()).collect();
        // The id makes the order deterministic for runs that ended at the same time.
        by_end.sort_by_key(|run| (run.ended_at(), run.id.clone()));
        for run in by_end {
            if self.bytes_left() <= quota {
                return;
            }
            let before = self.remove.len();
            self.take(|_, owner| matches!(owner, Owner::Run(id) if *id == run.id));
            if self.remove.len() > before {
                self.outputs.push(run.id.clone());
            }
        }
    }

    fn take(&mut self, is_taken: impl Fn(&OutputFile, &Owner) -> bool) {
        let all = std::mem::take(&mut self.stay).into_iter();
        let (taken, stay): (Vec<_>, Vec<_>) = all.partition(|(file, owner)| is_taken(file, owner));
        self.remove.extend(taken.into_iter().map(|(file, _)| file));
        self.stay = stay;
    }

    fn bytes_left(&self) -> u64 {
        self.stay.iter().map(|(file, _)| file.bytes).sum()
    }

    fn report(&self, total: u64) -> PruneReport {
        let bytes = self.remove.iter().map(|file| file.bytes).sum();
        PruneReport {
            runs: self.runs.clone(),
            outputs: self.outputs.clone(),
            commands: self.commands,
            requests: self.requests,
            files: self.remove.len() as u64,
            bytes,
            bytes_left: total - bytes,
        }
    }
}

/// Determines the owners of files.
struct Owners {
    runs: BTreeMap<RunId, RunRecord>,
    /// Names of large results that the store refers to.
    results: BTreeSet<String>,
    /// Runs whose artifacts a plan that is not over refers to, or in which an open task has begun.
    artifacts: BTreeSet<RunId>,
    /// True if any file is a large result. If not, no task needs to be read for references.
    has_results: bool,
    /// Cache by task id; `None` if the task does not exist.
    tasks: BTreeMap<TaskId, Option<Starts>>,
}

/// The calls of an existing task.
struct Starts {
    is_open: bool,
    /// The run that made each start of each call.
    runs: BTreeMap<(CallId, u32), RunId>,
}

impl Owners {
    fn new(view: &dyn View, files: &[OutputFile]) -> ViewResult<Self> {
        let has_results = files.iter().any(|file| matches!(file.kind, OutputKind::Result(_)));
        let runs = view.runs(0)?.into_iter().map(|run| (run.id.clone(), run)).collect();
        let results = if has_results { results_in_use(view)? } else { BTreeSet::new() };
        let has_artifacts = files.iter().any(|file| matches!(file.kind, OutputKind::Artifact(_)));
        let artifacts = if has_artifacts { runs_in_use(view)? } else { BTreeSet::new() };
        Ok(Self { runs, results, artifacts, has_results, tasks: BTreeMap::new() })
    }

    fn of(&mut self, view: &dyn View, file: &OutputFile) -> ViewResult<Owner> {
        let (task, call, start) = match &file.kind {
            OutputKind::Result(name) if self.results.contains(name) => return Ok(Owner::InUse),
            OutputKind::Result(_) | OutputKind::Scrap => return Ok(Owner::Nobody),
            OutputKind::Artifact(run) if self.artifacts.contains(run) => return Ok(Owner::InUse),
            OutputKind::Artifact(run) => return Ok(self.of_run(run)),
            OutputKind::Stream { task, call, start } => (task, call, *start),
        };
        if !self.tasks.contains_key(task) {
            self.tasks.insert(task.clone(), starts(view, task)?);
        }
        let Some(Some(starts)) = self.tasks.get(task) else { return Ok(Owner::Nobody) };
        if starts.is_open {
            return Ok(Owner::InUse);
        }
        let Some(run) = starts.runs.get(&(call.clone(), start)) else { return Ok(Owner::Nobody) };
        Ok(self.of_run(run))
    }

    fn of_run(&self, run: &RunId) -> Owner {
        match self.runs.get(run) {
            Some(record) if record.is_open() => Owner::InUse,
            Some(record) if record.output_pruned_at.is_none() => Owner::Run(run.clone()),
            _ => Owner::Forgotten,
        }
    }
}

fn starts(view: &dyn View, task: &TaskId) -> ViewResult<Option<Starts>> {
    let Some(key) = view.key(task.as_str())? else { return Ok(None) };
    let status_kind = view.node(key)?.map(|node| node.status_kind);
    let is_over = matches!(
        status_kind,
        Some(StatusKind::Done | StatusKind::Failed | StatusKind::Cancelled | StatusKind::Skipped)
    );
    let mut runs = BTreeMap::new();
    for event in view.events(0, Some(key), 0)? {
        if let (EventKind::CallStarted { call, start, .. }, Some(run)) = (event.kind, event.run) {
            // A replaced call may have the same id as its predecessor. The files belong to the last one.
            runs.insert((call, start), run);
        }
    }
    Ok(Some(Starts { is_open: !is_over, runs }))
}

/// Returns the names of all large results that tasks refer to.
fn results_in_use(view: &dyn View) -> ViewResult<BTreeSet<String>> {
    let (mut keys, mut names) = (Vec::<Key>::new(), BTreeSet::new());
    view.each_node(&mut |node| keys.push(node.key))?;
    for key in keys {
        names.extend(view.calls(key)?.iter().filter_map(result_name));
    }
    Ok(names)
}

fn results_of(undo_snapshot: &UndoSnapshot) -> impl Iterator<Item = String> {
    let deleted = undo_snapshot.deleted.iter().flat_map(|task| &task.calls);
    let changed =
        undo_snapshot.tasks.iter().flat_map(|task| &task.calls).filter_map(|(_, call)| call.as_ref());
    deleted.chain(changed).filter_map(result_name)
}

/// Returns the last revision before a point in time.
fn last_before(view: &dyn View, time: Timestamp) -> ViewResult<u64> {
    let first = EventQuery { since: Some(time), limit: 1, ..EventQuery::default() };
    match view.find_events(&first)?.first() {
        Some(event) => Ok(event.revision - 1),
        None => view.revision(),
    }
}

fn result_name(call: &CallRecord) -> Option<String> {
    call.body.result.as_ref()?.get("sha256")?.as_str().map(str::to_owned)
}

fn back(now: Timestamp, by: Duration) -> Timestamp {
    let by = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
    Timestamp::from_timestamp_nanos(now.timestamp_nanos_opt().unwrap_or(i64::MAX).saturating_sub(by))
}

fn time(modified: SystemTime) -> Timestamp {
    let since_1970 = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_timestamp_nanos(i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX))
}
