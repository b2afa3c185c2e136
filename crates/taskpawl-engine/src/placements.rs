//! The workers to which a run has sent its calls, in a file beside its lock: another run joins the calls of a run that was killed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taskpawl_model::task::CallRecord;
use taskpawl_model::value::{CallId, RunId, TaskId};

use crate::call_executor::Ticket;

/// The ending of these files.
const ENDING: &str = "elsewhere";

/// A call that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Placement {
    pub(crate) task: TaskId,
    pub(crate) call: CallId,
    pub(crate) ticket: Ticket,
    pub(crate) worker: String,
}

/// The file of a run, which is created with the first call.
#[derive(Debug)]
pub(crate) struct Placements {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl Placements {
    pub(crate) fn new(files: &Path, run: &RunId) -> Self {
        Self { path: path(files, run), file: Mutex::default() }
    }

    /// Records that a call is about to be sent. Not synced: a kill of this process loses nothing, and after a loss of power the run
    /// is lost with the calls that it had sent in the last seconds, which then count as interrupted.
    pub(crate) fn note(&self, placement: &Placement) -> io::Result<()> {
        let mut text = serde_json::to_vec(placement)?;
        text.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_none() {
            let new = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
            *file = Some(new);
        }
        file.as_mut().map_or(Ok(()), |file| file.write_all(&text))
    }
}

/// The calls that dead runs had sent, read once for each run.
#[derive(Debug, Default)]
pub(crate) struct KnownPlacements(BTreeMap<RunId, BTreeMap<(TaskId, CallId, u32), Placement>>);

impl KnownPlacements {
    /// Returns the placement of the last start of a call.
    pub(crate) fn of(
        &mut self,
        files: &Path,
        run: &RunId,
        task: &TaskId,
        call: &CallRecord,
    ) -> Option<&Placement> {
        let known = self.0.entry(run.clone()).or_insert_with(|| read(&path(files, run)));
        known.get(&(task.clone(), call.id.clone(), call.body.attempts))
    }
}

/// Returns the files of the runs, alive or dead, that have sent calls and are not over.
pub(crate) fn paths(files: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(files.join("runs")).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == ENDING))
        .collect()
}

/// Removes the file of a run that is over.
pub(crate) fn forget(files: &Path, run: &RunId) {
    // A file that stays names calls that have ended, which nothing asks about.
    let _ = std::fs::remove_file(path(files, run));
}

fn path(files: &Path, run: &RunId) -> PathBuf {
    files.join("runs").join(format!("{run}.{ENDING}"))
}

/// Reads the placements of all starts: a store that was restored may not know the last ones. A line that was cut by a kill names a call
/// that was not sent.
fn read(path: &Path) -> BTreeMap<(TaskId, CallId, u32), Placement> {
    let Ok(file) = File::open(path) else { return BTreeMap::new() };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let placements = lines.filter_map(|line| serde_json::from_str::<Placement>(&line).ok());
    let start =
        |placement: &Placement| (placement.task.clone(), placement.call.clone(), placement.ticket.start);
    placements.map(|placement| (start(&placement), placement)).collect()
}

/// The placements of the calls of all runs that are not over, as text for a backup of the store.
pub(crate) fn export(files: &Path) -> Map<String, Value> {
    let mut runs = Map::new();
    for path in paths(files) {
        // A run that ends meanwhile removes its file, and its calls have ended.
        if let (Some(run), Ok(text)) = (path.file_stem().and_then(OsStr::to_str), fs::read_to_string(&path)) {
            runs.insert(run.to_owned(), Value::String(text));
        }
    }
    runs
}

/// Writes the placements of a backup, so that runs join the calls that were with workers when it was made.
pub(crate) fn import(files: &Path, runs: &Map<String, Value>) -> io::Result<()> {
    taskpawl_tools::make_private_directories(&files.join("runs"))?;
    for (run, text) in runs {
        let is_plain = !run.is_empty() && run.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        let Some(text) = text.as_str().filter(|_| is_plain) else { continue };
        let new = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path(files, &RunId::from(run.clone())));
        new?.write_all(text.as_bytes())?;
    }
    Ok(())
}
