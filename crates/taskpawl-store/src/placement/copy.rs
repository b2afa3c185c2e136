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

/// Returns where the project was before, if it was moved.
///
/// # Errors
/// It is still there: this is a copy.
pub(super) fn moved_from(found: &Found, state: &Path) -> Result<Option<PathBuf>, PlacementError> {
    let record = StateRecord::read(state)?;
    let record = record.unwrap_or_else(|| StateRecord::new(&found.file.id, &found.file.path));
    if record.path == found.project || record.copies.contains(&found.project) {
        return Ok(None);
    }
    let is_there = ProjectFile::exists(&record.path) && ProjectFile::read(&record.path)?.id == found.file.id;
    if is_there {
        return Err(PlacementError::Copied { original: record.path, copy: found.project.clone() });
    }
    Ok(Some(record.path))
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
