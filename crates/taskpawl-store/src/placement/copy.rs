//! Projects that were moved, and projects that were copied.

use std::path::{Path, PathBuf};

use super::discover::{self, Found};
use super::project::{ProjectFile, StateRecord};
use super::{Environment, Place, PlacementError, locate, state_directory};

/// What becomes of a copied project, or of one whose tasks nobody wants there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyChoice<'a> {
    /// It works on the tasks of the original.
    Share,
    /// It gets a store of its own, under this random id.
    New(&'a str),
}

/// What has become of a project since its place was last recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Since {
    /// Where it was before, if it was moved.
    pub(super) moved_from: Option<PathBuf>,
    /// Whether another store belongs to the directory by what is recorded: an older `.taskpawl` was put back.
    pub(super) is_back: bool,
}

/// Returns what has become of a project.
///
/// # Errors
/// It is still where it was recorded: this is a copy.
pub(super) fn since(found: &Found, state: &Path) -> Result<Since, PlacementError> {
    let record = StateRecord::read(state)?;
    let record = record.unwrap_or_else(|| StateRecord::new(&found.file.id, &found.file.path));
    if record.path == found.project {
        return Ok(Since { moved_from: None, is_back: record.is_former });
    }
    if record.copies.contains(&found.project) {
        return Ok(Since::default());
    }
    let is_there = ProjectFile::exists(&record.path) && ProjectFile::read(&record.path)?.id == found.file.id;
    if is_there {
        return Err(PlacementError::Copied { original: record.path, copy: found.project.clone() });
    }
    Ok(Since { moved_from: Some(record.path), is_back: false })
}

/// Records that a project is at a place, whatever it was before. Its copies stay as they are.
pub(super) fn settle(state: &Path, id: &str, project: &Path) -> Result<(), PlacementError> {
    let record = StateRecord::read(state)?.unwrap_or_else(|| StateRecord::new(id, project));
    // Until the last of them is written it says that the project has yet to be settled.
    for (other, mut left) in records(state.parent().unwrap_or(state)) {
        if left.path == project && left.id != id && !left.is_former {
            left.is_former = true;
            left.write(&other)?;
        }
    }
    StateRecord { path: project.to_owned(), is_former: false, ..record }.write(state)
}

/// Returns what is recorded in a state directory, with the place of each; what cannot be read is left out.
pub(super) fn records(directory: &Path) -> Vec<(PathBuf, StateRecord)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let read = |path: PathBuf| StateRecord::read(&path).ok().flatten().map(|record| (path, record));
    entries.filter_map(|entry| read(entry.path())).collect()
}

/// Writes down what becomes of the project that the environment is in, and returns its place then. The store that it had before stays.
///
/// # Errors
/// There is no project, or files cannot be written.
pub fn resolve_copy(environment: &Environment, choice: CopyChoice<'_>) -> Result<Place, PlacementError> {
    let directory = discover::real(&environment.directory)?;
    let found = discover::find(&directory)?.ok_or(PlacementError::NoProject { directory })?;
    match choice {
        CopyChoice::New(id) => {
            let state = state_directory(environment)?;
            StateRecord::new(id, &found.project).write(&state.join(id))?;
            ProjectFile::new(id, &found.project)?.write(&found.project)?;
            leave(&state.join(&found.file.id), &found.project)?;
        }
        CopyChoice::Share => {
            let state = state_directory(environment)?.join(&found.file.id);
            let record = StateRecord::read(&state)?;
            let mut record = record.unwrap_or_else(|| StateRecord::new(&found.file.id, &found.file.path));
            record.copies.push(found.project);
            record.write(&state)?;
        }
    }
    locate(environment)
}

/// Notes with the store that a project had that it has another one now.
fn leave(state: &Path, project: &Path) -> Result<(), PlacementError> {
    let Some(mut record) = StateRecord::read(state)? else { return Ok(()) };
    if record.path == project {
        record.is_former = true;
    } else if record.copies.iter().any(|copy| copy == project) {
        record.copies.retain(|copy| copy != project);
    } else {
        return Ok(());
    }
    record.write(state)
}
