//! The last search for new files that other programs obey: after all programs of a run have ended, and for runs that were killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taskpawl_model::value::RunId;
use taskpawl_tools::{Confinement, LateFiles, ScanBounds, ScanStopped};

use crate::faults::{self, Fault};
use crate::liveness;
use crate::observer::{Observer, RunEvent};
use crate::summary::LateFilesOfRun;

/// Time limit of one search. It only produces a report, and the next run makes up for it.
const MAX_LOOK: Duration = Duration::from_secs(10);

/// The searches of one run.
pub(crate) struct LateSearch {
    run: RunId,
    /// The directory with the records of runs.
    files: PathBuf,
    confinement: Arc<Confinement>,
    observer: Option<Arc<dyn Observer>>,
}

impl LateSearch {
    pub(crate) fn new(
        run: &RunId,
        files: &Path,
        confinement: &Arc<Confinement>,
        observer: Option<&Arc<dyn Observer>>,
    ) -> Self {
        let (confinement, observer) = (Arc::clone(confinement), observer.cloned());
        Self { run: run.clone(), files: files.to_owned(), confinement, observer }
    }

    /// Searches after the last program of the run has ended, and warns of the files.
    pub(crate) async fn of_this_run(&self) -> Option<LateFilesOfRun> {
        // Without programs nothing else writes files for others.
        if !cfg!(feature = "programs") || faults::is_on(Fault::NoLastLook) {
            return None;
        }
        let confinement = Arc::clone(&self.confinement);
        let bounds = ScanBounds::default().at_most(MAX_LOOK);
        let late = reported(&self.run, bounds.run(move |bounds| confinement.last_look(bounds)).await);
        self.warn(late.as_ref());
        late
    }

    /// Compares the project with the records of runs that were killed, and warns of the files.
    pub(crate) async fn of_killed_runs(&self) -> Vec<LateFilesOfRun> {
        let mut found = Vec::new();
        let runs = liveness::unfinished_looks(&self.files).into_iter();
        for run in runs.filter(|_| !faults::is_on(Fault::NoLastLook)) {
            let confinement = Arc::clone(&self.confinement);
            let baseline = liveness::baseline_path(&self.files, &run);
            let bounds = ScanBounds::default().at_most(MAX_LOOK);
            let left = bounds.run(move |bounds| confinement.left_by(&baseline, bounds)).await;
            let late = reported(&run, left);
            self.warn(late.as_ref());
            found.extend(late);
        }
        found
    }

    fn warn(&self, late: Option<&LateFilesOfRun>) {
        let Some(observer) = &self.observer else { return };
        for message in late.into_iter().flat_map(|late| late.warnings(&self.run)) {
            observer.event(&RunEvent::Warning { message });
        }
    }
}

fn reported(run: &RunId, looked: Result<LateFiles, ScanStopped>) -> Option<LateFilesOfRun> {
    let run = run.clone();
    match looked {
        Ok(LateFiles { files, .. }) if files.is_empty() => None,
        Ok(LateFiles { files, more }) => {
            let unlisted = u64::try_from(more).unwrap_or(u64::MAX);
            Some(LateFilesOfRun { run, files, unlisted, unknown: None })
        }
        Err(stopped) => {
            Some(LateFilesOfRun { run, files: Vec::new(), unlisted: 0, unknown: Some(stopped.to_string()) })
        }
    }
}

impl LateFilesOfRun {
    fn warnings(&self, this: &RunId) -> Vec<String> {
        let found = if self.run == *this {
            "created in this run and found only after its calls had ended".to_owned()
        } else {
            format!("new since run {}, which was killed, began", self.run)
        };
        let more = usize::try_from(self.unlisted).unwrap_or(usize::MAX);
        let files = LateFiles { files: self.files.clone(), more }.warning(&found);
        let unknown = self.unknown.as_ref().map(|why| {
            format!(
                "new files of run {} that other programs run or load may have been missed: {why}; the next run searches again",
                self.run
            )
        });
        files.into_iter().chain(unknown).collect()
    }
}
