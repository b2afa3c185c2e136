use std::path::{Path, PathBuf};

use super::PlacementError;
use super::discover;

/// The inputs of the location rules. The command line reads them once; this module never reads the process
/// environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The home directory of the user; ignored unless absolute.
    pub home: Option<PathBuf>,
    /// `XDG_STATE_HOME`; ignored unless absolute, as its specification demands.
    pub xdg_state_home: Option<PathBuf>,
    /// The directory where the search starts.
    pub directory: PathBuf,
    /// The value of `--store`.
    pub store_flag: Option<String>,
    /// The value of `TASKPAWL_STORE`.
    pub store_variable: Option<String>,
}

/// The rule that determined the location of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// The `--store` flag.
    Flag,
    /// The `TASKPAWL_STORE` variable.
    Variable,
    /// The `TASKPAWL_FD` variable: this process belongs to a call.
    Call,
    /// The store named with `init --store`, recorded in the project.
    Project,
    /// The default: the state directory of the user, by the id of the project.
    StateDirectory,
}

/// Returns the directory of this program in the state directory of the user.
pub fn state_directory(environment: &Environment) -> Result<PathBuf, PlacementError> {
    let xdg = environment.xdg_state_home.as_ref().filter(|path| path.is_absolute()).cloned();
    let home = environment.home.as_ref().filter(|home| home.is_absolute());
    let home = || home.map(|home| home.join(".local/state"));
    xdg.or_else(home).map(|state| state.join("taskpawl")).ok_or(PlacementError::NoStateDirectory)
}

/// Refuses a project whose path is not UTF-8, because JSON cannot record it.
pub(super) fn check_text(project: &Path) -> Result<(), PlacementError> {
    if project.to_str().is_none() {
        return Err(PlacementError::NotUtf8 { directory: project.to_owned() });
    }
    Ok(())
}

pub(super) fn check_outside(state: &Path, project: &Path) -> Result<(), PlacementError> {
    // Compares resolved paths: a symbolic link could otherwise lead into the project.
    let existing = state.ancestors().find(|path| path.exists()).unwrap_or(state);
    if discover::real(existing)?.starts_with(project) {
        return Err(PlacementError::StateInsideProject {
            state: state.to_owned(),
            project: project.to_owned(),
        });
    }
    Ok(())
}
