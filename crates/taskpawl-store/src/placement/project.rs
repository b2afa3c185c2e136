//! The two small files that tie a project to its store.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::PlacementError;
use crate::files::read_text;
use crate::{StoreError, files};

/// `.taskpawl/project.json`, which moves with the project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ProjectFile {
    pub(super) id: String,
    /// The path of the project at the time of writing.
    pub(super) path: PathBuf,
    /// The store named with `init --store`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<String>,
    #[serde(flatten)]
    pub(super) extra: Map<String, Value>,
}

impl ProjectFile {
    pub(super) fn new(id: &str, project: &Path) -> Result<Self, PlacementError> {
        let file = Self { id: id.to_owned(), path: project.to_owned(), store: None, extra: Map::new() };
        file.checked(&path_in(project))
    }

    /// Returns whether `directory` is a project.
    pub(super) fn exists(directory: &Path) -> bool {
        path_in(directory).is_file()
    }

    pub(super) fn read(project: &Path) -> Result<Self, PlacementError> {
        let path = path_in(project);
        read::<Self>(&path)?.checked(&path)
    }

    /// Validates the id. It becomes the name of a directory, and the file may come from an untrusted
    /// repository.
    fn checked(self, path: &Path) -> Result<Self, PlacementError> {
        let is_plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
        if self.id.is_empty() || self.id.len() > 64 || !self.id.bytes().all(is_plain) {
            let detail = format!("`{}` is not a valid project id", self.id.escape_default());
            return Err(PlacementError::BadProjectFile { path: path.to_owned(), detail });
        }
        Ok(self)
    }

    /// Writes the file, with a `.gitignore` beside it that excludes both from git. An identical file is not
    /// rewritten.
    pub(super) fn write(&self, project: &Path) -> Result<(), PlacementError> {
        let path = path_in(project);
        let content = to_text(self);
        if read_text(&path).is_ok_and(|old| old == content) {
            return Ok(());
        }
        write_file(&path, content.as_bytes())?;
        write_file(&path.with_file_name(".gitignore"), b"*\n")
    }
}

fn path_in(project: &Path) -> PathBuf {
    project.join(".taskpawl").join("project.json")
}

/// `project.json` in the state directory, which records the path of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StateRecord {
    pub(super) id: String,
    pub(super) path: PathBuf,
    /// Copies of the project that share this store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) copies: Vec<PathBuf>,
    /// True if the directory has another store by now. `init` does not return to this one.
    #[serde(rename = "former", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_former: bool,
}

impl StateRecord {
    pub(super) fn new(id: &str, project: &Path) -> Self {
        Self { id: id.to_owned(), path: project.to_owned(), copies: Vec::new(), is_former: false }
    }

    pub(super) fn exists(state: &Path) -> bool {
        state.join("project.json").is_file()
    }

    pub(super) fn read(state: &Path) -> Result<Option<Self>, PlacementError> {
        if Self::exists(state) { read(&state.join("project.json")).map(Some) } else { Ok(None) }
    }

    pub(super) fn write(&self, state: &Path) -> Result<(), PlacementError> {
        write_file(&state.join("project.json"), to_text(self).as_bytes())
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, PlacementError> {
    let text = read_text(path).map_err(|error| StoreError::io("read", path, error))?;
    serde_json::from_str(&text)
        .map_err(|error| PlacementError::BadProjectFile { path: path.to_owned(), detail: error.to_string() })
}

fn to_text(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).expect("BUG: paths that were read are written again");
    text + "\n"
}

/// Writes a file, and creates its directory if necessary. Only the owner can access them.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<(), PlacementError> {
    files::make_directory(files::directory_of(path))?;
    Ok(files::replace(path, content)?)
}
