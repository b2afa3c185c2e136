//! Where the store of a project is: outside everything that a tool of the project may write.

mod copy;
mod discover;
mod error;
mod project;

use std::path::{Path, PathBuf};

pub use copy::{CopyChoice, resolve_copy};
pub use error::PlacementError;

use self::copy::Since;
use self::discover::Found;
use self::project::{ProjectFile, StateRecord};
use crate::files;
use crate::{Door, Location};

/// What placement depends on. The border reads it once; nothing here looks at the environment of the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The directory of the user; ignored unless it is absolute.
    pub home: Option<PathBuf>,
    /// `XDG_STATE_HOME`; ignored unless it is absolute, as its specification asks.
    pub xdg_state_home: Option<PathBuf>,
    /// The directory to begin at.
    pub directory: PathBuf,
    /// `--store`.
    pub store_flag: Option<String>,
    /// `TASKPAWL_STORE`.
    pub store_variable: Option<String>,
}

/// Why a store is where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// `--store` says so.
    Flag,
    /// `TASKPAWL_STORE` says so.
    Variable,
    /// `TASKPAWL_FD` says so: this is part of a call.
    Call,
    /// `init --store` said so; it stands in the project.
    Project,
    /// The project has an id, and its store lies in the state directory of the user.
    StateDirectory,
}

/// Where a store is, and the project that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The store.
    pub location: Location,
    /// Why there.
    pub rule: Rule,
    /// The directory in which the tasks work: that of the project, or what corresponds to it in a git worktree, or without a
    /// project the current one.
    pub root: PathBuf,
    /// The directory that holds `.taskpawl`.
    pub project: Option<PathBuf>,
    /// The id of the project.
    pub id: Option<String>,
    /// Where the project was when its path was last recorded, if it was moved since.
    pub moved_from: Option<PathBuf>,
    /// Where the path of the project is recorded.
    state: Option<PathBuf>,
    /// Whether what is recorded names another store for it.
    is_back: bool,
}

impl Place {
    /// Returns the place of what belongs to a call and works in `directory`.
    pub fn of_call(door: Door, directory: &Path) -> Self {
        // The call may not see the whole of its project: then its root is where it works.
        let found = discover::find(directory).ok().flatten();
        named_place(Location::Call(door), Rule::Call, found, directory)
    }

    /// Records where the project is now, if it was moved, and that this is its store, if another one was noted. Commands that write call
    /// it; those that read do not.
    pub fn record(&self) -> Result<(), PlacementError> {
        let (Some(state), Some(project), Some(id)) = (&self.state, &self.project, &self.id) else {
            return Ok(());
        };
        if self.moved_from.is_some() {
            ProjectFile { path: project.clone(), ..ProjectFile::read(project)? }.write(project)?;
        }
        if self.moved_from.is_some() || self.is_back { copy::settle(state, id, project) } else { Ok(()) }
    }
}

/// Finds the store that commands in this environment mean. Reads only.
///
/// # Errors
/// There is neither a project nor a store named; or the project is a copy of another one that still exists.
pub fn locate(environment: &Environment) -> Result<Place, PlacementError> {
    let directory = discover::real(&environment.directory)?;
    let found = discover::find(&directory);
    let named = [(&environment.store_flag, Rule::Flag), (&environment.store_variable, Rule::Variable)];
    for (text, rule) in named {
        if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
            let location = Location::parse(text, &directory);
            // A damaged file of the project says nothing that is needed then, but where the project is.
            let root = if found.is_err() { discover::root(&directory) } else { directory };
            return Ok(named_place(location, rule, found.ok().flatten(), &root));
        }
    }
    match found? {
        Some(found) => place_of(environment, found),
        None => Err(PlacementError::NoProject { directory }),
    }
}

fn named_place(location: Location, rule: Rule, found: Option<Found>, directory: &Path) -> Place {
    let (root, project, id) = match found {
        Some(found) => (found.root, Some(found.project), Some(found.file.id)),
        None => (directory.to_owned(), None, None),
    };
    Place { location, rule, root, project, id, moved_from: None, state: None, is_back: false }
}

fn place_of(environment: &Environment, found: Found) -> Result<Place, PlacementError> {
    check_text(&found.project)?;
    if let Some(text) = &found.file.store {
        let location = Location::parse(text, &found.project);
        let directory = found.project.clone();
        return Ok(named_place(location, Rule::Project, Some(found), &directory));
    }
    let state = state_directory(environment)?.join(&found.file.id);
    let Since { moved_from, is_back } = copy::since(&found, &state)?;
    Ok(Place {
        location: Location::Sqlite(state.join("tasks.db")),
        rule: Rule::StateDirectory,
        root: found.root,
        project: Some(found.project),
        id: Some(found.file.id),
        moved_from,
        state: Some(state),
        is_back,
    })
}

/// Makes the current directory a project, and returns where its store is. A directory that is one already stays as it is, but
/// for a store that is named; and a worktree of a project belongs to that.
///
/// `fresh_id` is random; it is used if the project is new.
///
/// # Errors
/// The state directory lies inside the project, where tools could reach the store.
pub fn initialize(
    environment: &Environment,
    fresh_id: &str,
    store: Option<&str>,
) -> Result<Place, PlacementError> {
    let directory = discover::real(&environment.directory)?;
    check_text(&directory)?;
    let remembered = remembered_id(environment, &directory);
    let known = match (discover::at(&directory), &remembered) {
        // The file is damaged, but the state directory knows what belongs here.
        (Err(PlacementError::BadProjectFile { .. }), Some(_)) => None,
        (known, _) => known?,
    };
    let project = known.as_ref().map_or(&directory, |found| &found.project).clone();
    let mut file = match known {
        Some(found) => found.file,
        None => ProjectFile::new(remembered.as_deref().unwrap_or(fresh_id), &directory)?,
    };
    if let Some(store) = store {
        file.store = Some(store.to_owned());
    }
    if file.store.is_none() {
        check_outside(&state_directory(environment)?, &project)?;
    }
    file.write(&project)?;
    let environment =
        Environment { directory, store_flag: None, store_variable: None, ..environment.clone() };
    let place = locate(&environment)?;
    place.record()?;
    if let Some(state) = place.state.as_ref().filter(|state| !StateRecord::exists(state)) {
        StateRecord::new(&file.id, &project).write(state)?;
    }
    Ok(place)
}

/// Returns the id under which the state directory knows the project at `directory`, whose own file may be gone: `git clean -fdx`
/// removes it.
fn remembered_id(environment: &Environment, directory: &Path) -> Option<String> {
    let mut records =
        copy::records(&state_directory(environment).ok()?).into_iter().map(|(_, record)| record);
    records.find(|record| record.path == directory && !record.is_former).map(|record| record.id)
}

/// Returns the directory of this program beneath the state directory of the user.
pub fn state_directory(environment: &Environment) -> Result<PathBuf, PlacementError> {
    let xdg = environment.xdg_state_home.as_ref().filter(|path| path.is_absolute()).cloned();
    let home = environment.home.as_ref().filter(|home| home.is_absolute());
    let home = || home.map(|home| home.join(".local/state"));
    xdg.or_else(home).map(|state| state.join("taskpawl")).ok_or(PlacementError::NoStateDirectory)
}

/// Refuses a project whose path is no text: it could not be recorded.
fn check_text(project: &Path) -> Result<(), PlacementError> {
    if project.to_str().is_none() {
        return Err(PlacementError::NotUtf8 { directory: project.to_owned() });
    }
    Ok(())
}

fn check_outside(state: &Path, project: &Path) -> Result<(), PlacementError> {
    let existing = state.ancestors().find(|path| path.exists()).unwrap_or(state);
    if discover::real(existing)?.starts_with(project) {
        return Err(PlacementError::StateInsideProject {
            state: state.to_owned(),
            project: project.to_owned(),
        });
    }
    Ok(())
}

/// Makes the directory of a file and the file, for their owner alone.
fn write_file(path: &Path, content: &[u8]) -> Result<(), PlacementError> {
    files::make_directory(files::directory_of(path))?;
    Ok(files::replace(path, content)?)
}
