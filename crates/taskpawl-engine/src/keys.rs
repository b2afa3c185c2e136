//! The first part of idempotency keys: the id of the project, else an id that the store keeps.

use std::path::{Path, PathBuf};

use taskpawl_manager::Manager;
use taskpawl_model::{Command, KeyRequest, KeySpace, RunRecord, RunStart};
use taskpawl_store::{Location, open};

use crate::engine::Engine;
use crate::error::RunError;

/// Where the first part of idempotency keys comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySource {
    /// The id of the project; without one the store keeps a random id of its own.
    pub project: Option<String>,
    /// The store, as it is opened: a store that lies elsewhere than before may be a copy.
    pub location: Location,
    /// The name under which the store was asked for. Stores without a recorded id took it for one.
    pub name: String,
}

impl KeySource {
    /// Returns a source that takes the id of a project.
    pub fn of_project(id: impl Into<String>) -> Self {
        Self { project: Some(id.into()), location: Location::Memory, name: String::new() }
    }

    /// Returns what to record, where the store has recorded `known`. `fresh` is an id that nobody has.
    fn request(&self, known: Option<&KeySpace>, fresh: &str) -> KeyRequest {
        let path = self.location.path().map(|path| path.to_string_lossy().into_owned());
        let copied = known.filter(|_| self.project.is_none()).and_then(|known| self.original_of(known));
        KeyRequest {
            given: self.project.clone(),
            fresh: fresh.to_owned(),
            before: self.project.clone().unwrap_or_else(|| self.name.clone()),
            path,
            copy_of: copied.and(known).map(|known| known.project.clone()),
        }
    }

    /// Returns the store of which this one is a copy: it lies where this one lay before, and its keys begin alike. A store that was
    /// moved left nothing there.
    fn original_of(&self, known: &KeySpace) -> Option<PathBuf> {
        let before = PathBuf::from(known.path.as_ref()?);
        if self.location.path()? == before || !before.is_file() {
            return None;
        }
        // What cannot be read may still be the original: sharing its keys would be worse than an id of its own.
        let read = open(&self.at(&before)).view(|view| view.key_space());
        let is_other = matches!(read, Ok(Some(other)) if other.project != known.project);
        (!is_other).then_some(before)
    }

    fn at(&self, path: &Path) -> Location {
        let is_json = matches!(self.location, Location::Json(_));
        if is_json { Location::Json(path.to_owned()) } else { Location::Sqlite(path.to_owned()) }
    }
}

impl Engine {
    /// Gives a store that is a copy of another one an id of its own, as its next run would, and returns the original. Calls that have
    /// started keep their keys. A store that is no copy is not written to.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn settle_copy(&self) -> Result<Option<PathBuf>, RunError> {
        let known = self.manager.read(|view| Ok(view.key_space()?))?;
        let request = self.project.keys.request(known.as_ref(), &self.manager.source().new_id());
        if request.copy_of.is_none() {
            return Ok(None);
        }
        self.manager.command(Command::SettleKeys(Box::new(request)))?;
        Ok(known.and_then(|known| known.path).map(PathBuf::from))
    }

    /// Records that a run starts, and returns the keys that hold for its calls.
    pub(crate) fn start_run(&self, manager: &Manager, run: RunRecord) -> Result<KeySpace, RunError> {
        let known = manager.read(|view| Ok(view.key_space()?))?;
        // The id of a run is random: the first run of a store gives it its id.
        let request = self.project.keys.request(known.as_ref(), run.id.as_str());
        let keys = (!request.is_settled(known.as_ref())).then_some(request);
        let settled = known.filter(|_| keys.is_none());
        manager.command(Command::StartRun(Box::new(RunStart { run, keys })))?;
        settled.map_or_else(|| recorded(manager), Ok)
    }
}

fn recorded(manager: &Manager) -> Result<KeySpace, RunError> {
    Ok(manager.read(|view| Ok(view.key_space()?))?.unwrap_or_default())
}
