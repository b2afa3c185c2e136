//! Checks for leftovers of runs and calls, and repairs them: the engine's part of `doctor`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use taskpawl_manager::Error;
use taskpawl_model::run::recovery::Recovered;
use taskpawl_model::value::RunId;
use taskpawl_model::view::{View, ViewResult};
use taskpawl_store::{Diagnostic, Severity, StoreError, narrow_mode, wide_mode};

use crate::engine::Engine;
use crate::{liveness, private_tmp};

impl Engine {
    /// Reports dead runs, expired leases, and files that runs and calls left behind. With `repair`, repairs them, except
    /// for files that an undo may still need.
    ///
    /// # Errors
    /// The store failed, or a file cannot be inspected, changed or removed.
    pub fn examine(&self, repair: bool) -> Result<Vec<Diagnostic>, Error> {
        // The report is taken before the recovery, which would leave nothing to report.
        let mut found = diagnostics(&self.left_behind()?);
        if repair {
            self.recover()?;
            mark_repaired(&mut found);
        }
        let files = &self.project().files;
        found.extend(self.ownerless_files()?);
        for (path, diagnostic) in removable(files)? {
            found.push(diagnostic);
            if repair {
                let removed = match run_of_lock(&path) {
                    Some(run) => liveness::remove_lock(files, &run),
                    None => fs::remove_file(&path),
                };
                removed.map_err(|error| failed("remove", &path, error))?;
                mark_repaired(found.last_mut());
            }
        }
        // Runs after the removals, so that a mode is not reported for a file that is gone.
        for path in files_of_store(files)? {
            found.extend(wide_mode(&path));
            if repair {
                narrow_mode(&path)?;
            }
        }
        if repair {
            mark_repaired(found.iter_mut().filter(|diagnostic| diagnostic.check == "mode"));
        }
        Ok(found)
    }

    /// Reports output files and results whose task no longer exists. These are never removed: undoing a deletion brings
    /// the task back.
    fn ownerless_files(&self) -> Result<Vec<Diagnostic>, Error> {
        let output = self.project().files.join("output");
        let files = entries(&output)?;
        let results: Vec<PathBuf> = entries(&output.join("results"))?
            .into_iter()
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect();
        self.manager().read(|view| {
            let wanted = if results.is_empty() { BTreeSet::new() } else { results_of_calls(view)? };
            let mut found = Vec::new();
            for path in files {
                if let Some(task) = task_of(&path)
                    && view.key(task)?.is_none()
                {
                    found.push(ownerless(&path, &format!("no task `{task}`")));
                }
            }
            let is_wanted = |path: &&PathBuf| path.file_name().is_some_and(|name| wanted.contains(name));
            let unwanted = results.iter().filter(|path| !is_wanted(path));
            found.extend(unwanted.map(|path| ownerless(path, "no call has this result")));
            Ok(found)
        })
    }
}

fn ownerless(path: &Path, why: &str) -> Diagnostic {
    let message = format!("it is unused: {why}");
    let remedy = "remove it yourself, unless you want to undo the deletion of its task";
    Diagnostic::new("output", Severity::Note, path.display(), message, remedy)
}

fn diagnostics(left: &Recovered) -> Vec<Diagnostic> {
    let diagnostic = |check, place: String, message: &str, remedy: &str| {
        Diagnostic::new(check, Severity::Repairable, place, message, remedy)
    };
    let task = |id: &taskpawl_model::value::TaskId| format!("task `{id}`");
    let mut found = Vec::new();
    for run in &left.runs {
        let message = "it ended without finishing";
        found.push(diagnostic(
            "dead_run",
            format!("run `{run}`"),
            message,
            "reclaim its tasks and close its record",
        ));
    }
    for id in &left.returned {
        let message = "its run has died; it can continue";
        found.push(diagnostic("orphan", task(id), message, "release it: the next run continues it"));
    }
    for id in &left.interrupted {
        let message = "its run has died during a call that may not be repeated";
        found.push(diagnostic(
            "orphan",
            task(id),
            message,
            "block it until the outcome of the call is reported",
        ));
    }
    for id in &left.expired {
        found.push(diagnostic(
            "lease",
            task(id),
            "its lease has ended",
            "release it, so that it can be claimed",
        ));
    }
    for id in &left.undecided {
        found.push(diagnostic(
            "question",
            task(id),
            "its approval has expired",
            "apply the default of its plan",
        ));
    }
    found
}

fn mark_repaired<'a>(diagnostics: impl IntoIterator<Item = &'a mut Diagnostic>) {
    diagnostics.into_iter().for_each(|diagnostic| diagnostic.is_repaired = true);
}

/// Returns files that can be removed: locks of runs that are over, and partial results whose writers died.
fn removable(files: &Path) -> Result<Vec<(PathBuf, Diagnostic)>, Error> {
    let mut found = Vec::new();
    for path in entries(&files.join("runs"))? {
        let Some(run) = run_of_lock(&path) else { continue };
        if !liveness::is_alive(files, &run) {
            let message = "this lock of a run is not held by any process";
            let diagnostic =
                Diagnostic::new("run_lock", Severity::Repairable, path.display(), message, "remove it");
            found.push((path, diagnostic));
        }
    }
    for path in entries(&files.join("output").join("results"))? {
        if path.extension().is_some_and(|end| end == "part") && !writer_lives(&path) {
            let message = "its writer died before it was complete";
            let diagnostic =
                Diagnostic::new("left_over", Severity::Repairable, path.display(), message, "remove it");
            found.push((path, diagnostic));
        }
    }
    Ok(found)
}

fn run_of_lock(path: &Path) -> Option<RunId> {
    name(path).strip_suffix(".lock").map(RunId::new)
}

/// Parses `SHA256.PROCESS-NUMBER.part`. If an unrelated process has reused the process id, the file is kept until a
/// later check.
fn writer_lives(path: &Path) -> bool {
    let process = name(path).rsplit('.').nth(1).and_then(|middle| middle.split('-').next());
    process.is_some_and(|process| Path::new("/proc").join(process).exists())
}

fn results_of_calls(view: &dyn View) -> ViewResult<BTreeSet<OsString>> {
    let mut keys = Vec::new();
    view.each_node(&mut |node| keys.push(node.key))?;
    let mut wanted = BTreeSet::new();
    for key in keys {
        let results = view.calls(key)?.into_iter().filter_map(|call| call.body.into_inner().result);
        // Only the file name is compared, because the store may have been moved since the path was recorded.
        let file =
            |result: Value| Path::new(result.get("resultFile")?.as_str()?).file_name().map(OsString::from);
        wanted.extend(results.filter_map(file));
    }
    Ok(wanted)
}

/// Returns the task id in the name of an output file, `TASK@CALL@START.STREAM`.
fn task_of(path: &Path) -> Option<&str> {
    let (task, call) = name(path).split_once('@')?;
    call.contains('@').then_some(task)
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Returns the entries of a directory, sorted; none if it does not exist.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let list = || fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    match list() {
        Ok(mut paths) => {
            paths.sort();
            Ok(paths)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed("list", directory, error)),
    }
}

/// Returns the directory of a store's files with everything below it; nothing if it does not exist. Does not follow symbolic links.
fn files_of_store(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    // Programs may give their own temporary files any mode, below a directory that only the user can enter.
    let of_programs = directory.join(private_tmp::DIRECTORY);
    while let Some(path) = waiting.pop() {
        let Ok(data) = fs::symlink_metadata(&path) else { continue };
        if data.is_dir() && path != of_programs {
            waiting.extend(entries(&path)?);
        }
        found.push(path);
    }
    Ok(found)
}

fn failed(action: &'static str, path: &Path, error: io::Error) -> Error {
    Error::from(StoreError::Io { action, path: path.to_owned(), source: std::sync::Arc::new(error) })
}
