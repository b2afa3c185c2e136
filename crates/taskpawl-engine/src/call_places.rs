//! The workers on which calls run now, for commands that show a plan.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use taskpawl_model::task::{CallStatus, Task};
use taskpawl_model::value::{CallId, TaskId};

use crate::placements::{self, Placement};

/// The workers of the calls that runs have sent and that have not ended, as of the last [`refresh`](Self::refresh).
///
/// The store gets the worker of a call with its end. Until then only the run knows it, in a file beside its lock.
#[derive(Debug, Default)]
pub struct CallPlaces {
    files: PathBuf,
    runs: BTreeMap<PathBuf, RunPlaces>,
}

/// The file of one run, as far as it was read.
#[derive(Debug, Default)]
struct RunPlaces {
    read: u64,
    calls: BTreeMap<(TaskId, CallId), Placement>,
}

impl CallPlaces {
    /// Returns the places of the runs whose files are in `files`.
    pub(crate) fn of(files: PathBuf) -> Self {
        let mut places = Self { files, runs: BTreeMap::new() };
        places.refresh();
        places
    }

    /// Reads the calls that were sent since the last time.
    pub fn refresh(&mut self) {
        let paths = placements::paths(&self.files);
        self.runs.retain(|path, _| paths.contains(path));
        for path in paths {
            // The end of a run removes its file. A file that cannot be read names no worker.
            let _ = self.runs.entry(path.clone()).or_default().read(&path);
        }
    }

    /// Returns the worker that runs a start of a call.
    pub fn worker(&self, task: &TaskId, call: &CallId, start: u32) -> Option<&str> {
        let place = (task.clone(), call.clone());
        let mut known = self.runs.values().filter_map(|run| run.calls.get(&place));
        known.find(|placement| placement.ticket.start == start).map(|placement| placement.worker.as_str())
    }

    /// Sets the workers of the running calls of a task.
    pub fn fill(&self, task: &mut Task) {
        if self.runs.is_empty() {
            return;
        }
        for call in &mut task.metadata.tool_calls {
            if call.status == CallStatus::Running {
                call.worker = self.worker(&task.id, &call.id, call.attempts).map(str::to_owned);
            }
        }
    }
}

impl RunPlaces {
    fn read(&mut self, path: &Path) -> io::Result<()> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.read))?;
        let (mut reader, mut line) = (BufReader::new(file), String::new());
        loop {
            line.clear();
            let bytes = reader.read_line(&mut line)?;
            // A line without its end is still being written.
            if !line.ends_with('\n') {
                return Ok(());
            }
            self.read += bytes as u64;
            if let Ok(placement) = serde_json::from_str::<Placement>(&line) {
                self.calls.insert((placement.task.clone(), placement.call.clone()), placement);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use taskpawl_model::value::RunId;

    use super::*;
    use crate::call_executor::Ticket;
    use crate::placements::Placements;

    #[test]
    fn the_last_start_of_a_call_names_its_worker() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("runs")).unwrap();
        let placements = Placements::new(directory.path(), &RunId::from("r".to_owned()));
        let note = |start, worker: &str| {
            let (task, call) = (TaskId::from("t"), CallId::from("c".to_owned()));
            let ticket = Ticket { key: "k".to_owned(), start };
            placements.note(&Placement { task, call, ticket, worker: worker.to_owned() }).unwrap();
        };
        let mut places = CallPlaces::of(directory.path().to_owned());
        let worker = |places: &CallPlaces, start| {
            places.worker(&TaskId::from("t"), &CallId::from("c".to_owned()), start).map(str::to_owned)
        };
        assert_eq!(worker(&places, 1), None);
        note(1, "w1");
        places.refresh();
        assert_eq!(worker(&places, 1).as_deref(), Some("w1"));
        note(2, "w2");
        places.refresh();
        assert_eq!((worker(&places, 1), worker(&places, 2).as_deref()), (None, Some("w2")));
        placements::forget(directory.path(), &RunId::from("r".to_owned()));
        places.refresh();
        assert_eq!(worker(&places, 2), None, "the run is over");
    }
}
