//! The directories of runs for artifacts: `STORE/RUN`, outside of the project and of everything that is hidden from programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use taskpawl_manager::Manager;
use taskpawl_model::task::{Cause, EventKind};
use taskpawl_model::value::{Key, RunId, SharedText};
use taskpawl_model::view::{View, ViewResult};
use taskpawl_tools::{ArtifactDirs, SHARED_TEMPORARY, make_private_directories};

use crate::engine::Project;
use crate::error::RunError;
use crate::output::{OutputFile, OutputKind};
use crate::worktrees::ref_part;

/// The artifacts of the runs of one store.
#[derive(Debug, Clone)]
pub(crate) struct ArtifactStore {
    base: PathBuf,
}

impl ArtifactStore {
    /// Returns that of a project in the directory `all`, which stores share; `None` if that lies in a directory for temporary files, of
    /// which programs of the project see one of their own.
    pub(crate) fn new(all: &Path, project: &Project) -> Option<Self> {
        let is_replaced = |tmp: &&str| all.starts_with(tmp) && !project.root.starts_with(tmp);
        if SHARED_TEMPORARY.iter().any(is_replaced) {
            return None;
        }
        // By the files of the store: the runs of another store of the project are unknown to this one.
        let digest = format!("{:x}", Sha256::digest(project.files.as_os_str().as_encoded_bytes()));
        let name = project
            .root
            .file_name()
            .map_or_else(|| "project".to_owned(), |name| ref_part(&name.to_string_lossy()));
        Some(Self { base: all.join(format!("{name}-{}", &digest[..12])) })
    }

    /// Makes the directory of a run; `None` where nothing can be written beside the state directory, as within the sandbox of another
    /// run. Only tasks with `artifacts` fail for that.
    pub(crate) fn open(&self, run: &RunId) -> Result<Option<Arc<ArtifactDirs>>, RunError> {
        let of_run = self.base.join(run.as_str());
        match make_private_directories(&of_run) {
            Ok(()) => Ok(Some(Arc::new(ArtifactDirs { of_run, all: self.base.clone() }))),
            Err(error)
                if matches!(error.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) =>
            {
                Ok(None)
            }
            Err(source) => Err(RunError::Files { action: "create", path: of_run, source }),
        }
    }

    /// Removes the directory of a run if nothing is in it.
    pub(crate) fn forget_empty(&self, run: &RunId) {
        // A directory with artifacts is not empty, so that the removal fails.
        drop(fs::remove_dir(self.base.join(run.as_str())));
    }

    /// Returns the directories of the run in which a task began; `None` if nothing is known of it. Blocks.
    pub(crate) fn of_task(&self, manager: &Manager, key: Key) -> Option<ArtifactDirs> {
        let run = manager.read(|view| Ok(first_run(view, key)?)).ok().flatten()?;
        let of_run = self.base.join(run.as_str());
        make_private_directories(&of_run).ok()?;
        Some(ArtifactDirs { of_run, all: self.base.clone() })
    }

    /// Returns the artifacts of all runs, and everything else that their programs left beside them.
    pub(crate) fn files(&self) -> Vec<OutputFile> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.base).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            add_files(&entry.path(), &RunId::from(name), &mut files);
        }
        files
    }

    /// Removes the directories from which all of these files were removed.
    pub(crate) fn forget_emptied(&self, removed: &[OutputFile]) {
        let mut above = BTreeSet::new();
        for file in removed.iter().filter(|file| matches!(file.kind, OutputKind::Artifact(_))) {
            let beneath = |path: &&Path| path.starts_with(&self.base) && *path != self.base;
            above.extend(file.path.ancestors().skip(1).take_while(beneath).map(Path::to_owned));
        }
        // The inner ones first.
        for directory in above.into_iter().rev() {
            drop(fs::remove_dir(directory));
        }
    }
}

/// Adds the files beneath a directory. Links are files of their own, and are not followed.
fn add_files(directory: &Path, run: &RunId, files: &mut Vec<OutputFile>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(data) = entry.metadata() else { continue };
        if data.is_dir() {
            add_files(&entry.path(), run, files);
        } else if let Ok(modified) = data.modified() {
            let kind = OutputKind::Artifact(run.clone());
            files.push(OutputFile { path: entry.path(), bytes: data.len(), modified, kind });
        }
    }
}

/// Returns the run that made the first start of a task since it was last cleared.
fn first_run(view: &dyn View, key: Key) -> ViewResult<Option<RunId>> {
    let mut first = None;
    for event in view.events(0, Some(key), 0)? {
        let is_start = matches!(event.kind, EventKind::CallStarted { .. });
        if matches!(event.kind, EventKind::Status { cause: Cause::Reopen, .. }) {
            first = None;
        } else if is_start && first.is_none() {
            first = event.run;
        }
    }
    Ok(first)
}

/// Returns the runs whose artifacts are still needed: an open task began in them, or a plan with open tasks refers to a file of theirs.
pub(crate) fn runs_in_use(view: &dyn View) -> ViewResult<BTreeSet<RunId>> {
    let mut keys = Vec::new();
    view.each_node(&mut |node| keys.push((node.key, node.status_kind.status().is_finished())))?;
    let mut in_use = BTreeSet::new();
    let mut of_plans: BTreeMap<Option<SharedText>, (bool, BTreeSet<RunId>)> = BTreeMap::new();
    for (key, is_over) in keys {
        if !is_over {
            in_use.extend(first_run(view, key)?);
        }
        let Some(record) = view.task(key)? else { continue };
        let (is_open, runs) = of_plans.entry(record.plan.clone()).or_default();
        *is_open |= !is_over;
        if view.calls(key)?.iter().any(|call| call.body.artifacts.is_some()) {
            runs.extend(first_run(view, key)?);
        }
    }
    in_use.extend(of_plans.into_values().filter(|(is_open, _)| *is_open).flat_map(|(_, runs)| runs));
    Ok(in_use)
}
