//! Prefix of idempotency keys: the id of the project, or else an id that the store keeps.

use std::path::{Path, PathBuf};

use taskpawl_model::task::{KeyRequest, KeySpace};
use taskpawl_store::{Location, open};

/// Source of the prefix of idempotency keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySource {
    /// Id of the project. `None` uses a random id that the store keeps.
    pub project: Option<String>,
    /// Location of the store as it was opened. If it differs from the recorded one, the store may be a copy.
    pub location: Location,
    /// Name under which the store was requested. Stores of old versions have no recorded id and used this name.
    pub name: String,
}

impl KeySource {
    /// Returns a source that uses the id of a project.
    pub fn of_project(id: impl Into<String>) -> Self {
        Self { project: Some(id.into()), location: Location::Memory, name: String::new() }
    }

    /// Returns the request to record for a store that has recorded `known`. `fresh` has to be an unused id.
    pub(crate) fn request(&self, known: Option<&KeySpace>, fresh: &str) -> KeyRequest {
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

    /// Returns the original if this store is a copy. That is the case if a store with the same key prefix exists at the
    /// recorded location. A store that was moved left no file there.
    fn original_of(&self, known: &KeySpace) -> Option<PathBuf> {
        let before = PathBuf::from(known.path.as_ref()?);
        if self.location.path()? == before || !before.is_file() {
            return None;
        }
        // An unreadable file counts as the original: two stores with equal keys would be worse than an unnecessary new
        // id.
        let read = open(&self.at(&before)).view(|view| view.key_space());
        let is_other = matches!(read, Ok(Some(other)) if other.project != known.project);
        (!is_other).then_some(before)
    }

    fn at(&self, path: &Path) -> Location {
        let is_json = matches!(self.location, Location::Json(_));
        if is_json { Location::Json(path.to_owned()) } else { Location::Sqlite(path.to_owned()) }
    }
}
