//! Which store is meant, and opening it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::committer::Backend;
use crate::handle::{Handle, Reader};
use crate::store::Store;
use crate::{json, memory, sqlite};

/// What a store is and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// A store that ends with its handle.
    Memory,
    /// A database file.
    Sqlite(PathBuf),
    /// A readable file.
    Json(PathBuf),
}

impl Location {
    /// Returns the location that `text` names: `:memory:`, `memory`, `json:PATH`, or the path of a database. A relative path
    /// begins at `directory`.
    pub fn parse(text: &str, directory: &Path) -> Self {
        match text {
            ":memory:" | "memory" => Self::Memory,
            path => match path.strip_prefix("json:") {
                Some(path) => Self::Json(directory.join(path)),
                None => Self::Sqlite(directory.join(path)),
            },
        }
    }

    /// Returns both sides of the store, with nothing touched.
    pub(crate) fn sides(&self) -> (Box<dyn Backend>, Box<dyn Reader>) {
        match self {
            Self::Memory => memory::open(),
            Self::Sqlite(path) => sqlite::open(path),
            Self::Json(path) => json::open(path),
        }
    }

    /// Returns what errors name.
    pub(crate) fn file(&self) -> &Path {
        self.path().unwrap_or(Path::new(":memory:"))
    }

    /// Returns the file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Memory => None,
            Self::Sqlite(path) | Self::Json(path) => Some(path),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str(":memory:"),
            Self::Sqlite(path) => path.display().fmt(f),
            Self::Json(path) => write!(f, "json:{}", path.display()),
        }
    }
}

/// Opens the store at `location`. Nothing is touched before the first use, and only a write makes the file.
pub fn open(location: &Location) -> Arc<dyn Store> {
    let (backend, reader) = location.sides();
    Arc::new(Handle::new(backend, reader, location.file()))
}
