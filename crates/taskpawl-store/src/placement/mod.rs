//! Locates the store of a project, outside every directory that tools of the project may write.

mod candidate;
mod copy;
mod discover;
mod environment;
mod error;
mod planned;
mod project;
mod unsuitable;

use std::path::{Path, PathBuf};

pub use candidate::{AllowedRoots, RootKind};
pub use copy::{CopyChoice, resolve_copy};
pub use environment::{Environment, Rule, state_directory};
pub use error::PlacementError;
pub use planned::plan_project;
pub use unsuitable::UnsuitableRoot;

use self::copy::Since;
use self::discover::DiscoveredProject;
use self::environment::{check_outside, check_text};
use self::project::{ProjectFile, StateRecord};
use crate::{Location, PlanSocket};

/// The location of a store, with its project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorePlacement {
    /// The location of the store.
    pub location: Location,
    /// The rule that led to it.
    pub rule: Rule,
    /// The working directory of the tasks: the root of the project, its counterpart in a git worktree, or the
    /// current directory if there is no project.
    pub root: PathBuf,
    /// The directory that contains `.taskpawl`.
    pub project: Option<PathBuf>,
    /// The id of the project.
    pub id: Option<String>,
    /// The recorded path of the project, if it was moved since.
    pub moved_from: Option<PathBuf>,
    /// The state directory of the project, which has the record of its path.
    state: Option<PathBuf>,
    /// True if the record names another store for this project.
    is_back: bool,
    /// The kind of the root, if the project is not made yet.
    new: Option<RootKind>,
}

impl StorePlacement {
    /// Returns the place for a process that belongs to a call and works in `directory`.
    pub fn of_call(door: PlanSocket, directory: &Path) -> Self {
        // A sandbox may hide parts of the project from the call. Its root is then its working directory.
        let found = discover::find(directory).ok().flatten();
        named_place(Location::Call(door), Rule::Call, found, directory)
    }

    /// Makes the project of [`plan_project`], records the current path of a moved project, and records that this is its
    /// store again. Only commands that write call this. Returns the kind of the root if this call made the project.
    ///
    /// # Errors
    /// A file cannot be written, or another process made the project with another store.
    pub fn record(&self) -> Result<Option<RootKind>, PlacementError> {
        let (Some(state), Some(project), Some(id)) = (&self.state, &self.project, &self.id) else {
            return Ok(None);
        };
        if let Some(kind) = self.new {
            return Ok(planned::make(project, id)?.then_some(kind));
        }
        if self.moved_from.is_some() {
            ProjectFile { path: project.clone(), ..ProjectFile::read(project)? }.write(project)?;
        }
        if self.moved_from.is_some() || self.is_back {
            copy::settle(state, id, project)?;
        }
        Ok(None)
    }

    /// Returns the kind of the root of a project that [`plan_project`] placed and that is perhaps not made yet.
    pub fn new_root(&self) -> Option<RootKind> {
        self.new
    }

    /// Fails if another process made the planned project with another store.
    pub fn check_unchanged(&self) -> Result<(), PlacementError> {
        let (Some(_), Some(project), Some(id)) = (self.new, &self.project, &self.id) else { return Ok(()) };
        planned::is_made(project, id).map(drop)
    }
}

/// Locates the store for this environment. Writes nothing.
///
/// # Errors
/// There is neither a project nor a named store, or the project is a copy of another one that still exists.
pub fn locate(environment: &Environment) -> Result<StorePlacement, PlacementError> {
    let directory = discover::real(&environment.directory)?;
    let found = discover::find(&directory);
    let named = [(&environment.store_flag, Rule::Flag), (&environment.store_variable, Rule::Variable)];
    for (text, rule) in named {
        if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
            let location = Location::parse(text, &directory);
            // A named store does not need the project file, so damage to it is no error. Only the root of the
            // project is used.
            let root = if found.is_err() { discover::root(&directory) } else { directory };
            return Ok(named_place(location, rule, found.ok().flatten(), &root));
        }
    }
    match found? {
        Some(found) => place_of(environment, found),
        None => Err(PlacementError::NoProject { directory }),
    }
}

fn named_place(
    location: Location,
    rule: Rule,
    found: Option<DiscoveredProject>,
    directory: &Path,
) -> StorePlacement {
    let (root, project, id) = match found {
        Some(found) => (found.root, Some(found.project), Some(found.file.id)),
        None => (directory.to_owned(), None, None),
    };
    StorePlacement {
        location,
        rule,
        root,
        project,
        id,
        moved_from: None,
        state: None,
        is_back: false,
        new: None,
    }
}

fn place_of(environment: &Environment, found: DiscoveredProject) -> Result<StorePlacement, PlacementError> {
    check_text(&found.project)?;
    if let Some(text) = &found.file.store {
        let location = Location::parse(text, &found.project);
        let directory = found.project.clone();
        return Ok(named_place(location, Rule::Project, Some(found), &directory));
    }
    let state = state_directory(environment)?.join(&found.file.id);
    let Since { moved_from, is_back } = copy::since(&found.file, &found.project, &state)?;
    Ok(StorePlacement {
        location: Location::Sqlite(state.join("tasks.db")),
        rule: Rule::StateDirectory,
        root: found.root,
        project: Some(found.project),
        id: Some(found.file.id),
        moved_from,
        state: Some(state),
        is_back,
        new: None,
    })
}

/// Makes the current directory a project and returns the place of its store. An existing project stays as it
/// is, except that a named store is recorded. In a git worktree the project of the main tree is used.
///
/// `fresh_id` is a random id for a new project.
///
/// # Errors
/// The state directory is inside the project, where tools could modify the store.
pub fn initialize(
    environment: &Environment,
    fresh_id: &str,
    store: Option<&str>,
) -> Result<StorePlacement, PlacementError> {
    let directory = discover::real(&environment.directory)?;
    check_text(&directory)?;
    let remembered = remembered_id(environment, &directory);
    let known = match (discover::at(&directory), &remembered) {
        // The project file is damaged, but the state directory still has the id of the project at this path.
        // Write the file again.
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
        let state = state_directory(environment)?;
        check_outside(&state, &project)?;
        // A refusal leaves no file that makes the directory a copy.
        copy::since(&file, &project, &state.join(&file.id))?;
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

/// Returns the recorded id of the project at `directory`. The project file may be missing: `git clean -fdx`
/// removes it.
fn remembered_id(environment: &Environment, directory: &Path) -> Option<String> {
    let mut records =
        copy::records(&state_directory(environment).ok()?).into_iter().map(|(_, record)| record);
    records.find(|record| record.path == directory && !record.is_former).map(|record| record.id)
}
