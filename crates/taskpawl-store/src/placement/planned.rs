//! Projects that commands make where there is none.

use std::path::Path;

use super::candidate::{self, AllowedRoots, Candidate, User};
use super::discover;
use super::project::{ProjectFile, StateRecord};
use super::{
    Environment, PlacementError, Rule, StorePlacement, check_outside, check_text, remembered_id,
    state_directory,
};
use crate::Location;
use crate::files::{self, LockFile};

/// Places the project that a command makes where there is none: at the git root, otherwise in the working directory.
/// The first write makes it, through [`StorePlacement::record`]; until then only its id is recorded in the state
/// directory, so that all processes give the project the same store.
///
/// `fresh_id` is a random id for a new project.
///
/// # Errors
/// [`PlacementError::NotMade`] for directories that become a project only if a person asks for it. The state directory
/// is inside the project, or cannot be written.
pub fn plan_project(
    environment: &Environment,
    fresh_id: &str,
    allowed: AllowedRoots,
) -> Result<StorePlacement, PlacementError> {
    let directory = discover::real(&environment.directory)?;
    let home = environment.home.as_ref().filter(|home| home.is_absolute());
    let home = home.map(|home| discover::real(home).unwrap_or_else(|_| home.clone()));
    let candidate = candidate::candidate(&directory);
    let user = User { home: home.as_deref(), id: user_id() };
    if let Some(reason) = candidate::unsuitable(&candidate, allowed, user)? {
        return Err(PlacementError::NotMade { directory, root: candidate.directory, reason });
    }
    let Candidate { directory: root, kind } = candidate;
    check_text(&root)?;
    let home_of_state = state_directory(environment)?;
    check_outside(&home_of_state, &root)?;
    let id = reserve_id(environment, &home_of_state, &root, fresh_id)?;
    let state = home_of_state.join(&id);
    Ok(StorePlacement {
        location: Location::Sqlite(state.join("tasks.db")),
        rule: Rule::StateDirectory,
        root: root.clone(),
        project: Some(root),
        id: Some(id),
        moved_from: None,
        state: Some(state),
        is_back: false,
        new: Some(kind),
    })
}

/// Returns whether the project is made.
pub(super) fn is_made(project: &Path, id: &str) -> Result<bool, PlacementError> {
    match discover::at(project)? {
        None => Ok(false),
        Some(found) if found.file.id == id => Ok(true),
        Some(_) => Err(PlacementError::MadeElsewhere { project: project.to_owned() }),
    }
}

/// Makes a planned project. Returns false if it was made before.
pub(super) fn make(project: &Path, id: &str) -> Result<bool, PlacementError> {
    if is_made(project, id)? {
        return Ok(false);
    }
    ProjectFile::new(id, project)?.write(project)?;
    Ok(true)
}

/// Returns the recorded id of the project at `root`, after recording a fresh one if there is none.
fn reserve_id(
    environment: &Environment,
    state: &Path,
    root: &Path,
    fresh_id: &str,
) -> Result<String, PlacementError> {
    files::make_directory(state)?;
    // Two processes that reserve an id at the same time would give the project two stores.
    let lock = LockFile::open(&state.join("projects"))?;
    lock.lock()?;
    if let Some(id) = remembered_id(environment, root) {
        return Ok(id);
    }
    StateRecord::new(fresh_id, root).write(&state.join(fresh_id))?;
    Ok(fresh_id.to_owned())
}

#[cfg(unix)]
fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn user_id() -> u32 {
    0
}
