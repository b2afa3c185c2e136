//! Moved and copied projects.

use std::path::{Path, PathBuf};

use super::discover;
use super::project::{ProjectFile, StateRecord};
use super::{Environment, PlacementError, StorePlacement, locate, state_directory};

/// The decision of a user about a copied project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyChoice<'a> {
    /// The copy shares the tasks of the original.
    Share,
    /// The copy gets a store of its own, with this random id.
    New(&'a str),
}

/// Changes to a project since its path was last recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Since {
    /// The recorded path, if the project was moved.
    pub(super) moved_from: Option<PathBuf>,
    /// True if the records assign another store to the directory, because an older `.taskpawl` was restored.
    pub(super) is_back: bool,
}

/// Compares a project with the path that is recorded for it.
///
/// # Errors
/// [`PlacementError::Copied`] if the project also still exists at the recorded path.
pub(super) fn since(file: &ProjectFile, project: &Path, state: &Path) -> Result<Since, PlacementError> {
    let record = StateRecord::read(state)?;
    let record = record.unwrap_or_else(|| StateRecord::new(&file.id, &file.path));
    if record.path == project {
        return Ok(Since { moved_from: None, is_back: record.is_former });
    }
    if record.copies.iter().any(|copy| copy == project) {
        return Ok(Since::default());
    }
    let is_there = ProjectFile::exists(&record.path) && ProjectFile::read(&record.path)?.id == file.id;
    if is_there {
        return Err(PlacementError::Copied { original: record.path, copy: project.to_owned() });
    }
    Ok(Since { moved_from: Some(record.path), is_back: false })
}

/// Records the new path of a project, and that this is its store now. The records of its copies do not
/// change.
pub(super) fn settle(state: &Path, id: &str, project: &Path) -> Result<(), PlacementError> {
    let record = StateRecord::read(state)?.unwrap_or_else(|| StateRecord::new(id, project));
    // The record of this project comes last: until it is written, `since` reports the change again, so that
    // an interrupted update is repeated.
    for (other, mut left) in records(state.parent().unwrap_or(state)) {
        if left.path == project && left.id != id && !left.is_former {
            left.is_former = true;
            left.write(&other)?;
        }
    }
    StateRecord { path: project.to_owned(), is_former: false, ..record }.write(state)
}

/// Returns all records of a state directory with their paths. Unreadable ones are left out.
pub(super) fn records(directory: &Path) -> Vec<(PathBuf, StateRecord)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let read = |path: PathBuf| StateRecord::read(&path).ok().flatten().map(|record| (path, record));
    entries.filter_map(|entry| read(entry.path())).collect()
}

/// Records the decision about a copied project, and returns its new place. The previous store is kept.
///
/// # Errors
/// There is no project here, or a file cannot be written.
pub fn resolve_copy(
    environment: &Environment,
    choice: CopyChoice<'_>,
) -> Result<StorePlacement, PlacementError> {
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

/// Marks the previous store of a project as its former one, or removes the project from the copies that share
/// it.
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
