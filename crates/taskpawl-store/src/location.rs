//! Which store is meant, and opening it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::access::{Door, Nowhere, RemoteStore};
use crate::committer::Backend;
use crate::handle::{Handle, Reader};
use crate::store::Store;
use crate::{json, memory, sqlite};

/// As many as the kernel follows.
const MOST_LINKS: u32 = 40;

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
    /// The store of whoever runs the call that this process belongs to: it shows the plan and, where the call may add tasks, takes
    /// these.
    Call(Door),
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

    /// Returns the same location as every other name of it comes to: absolute, with links resolved, so that all who mean one file use
    /// one lock, one log and one directory of output.
    #[must_use]
    pub fn resolved(&self) -> Self {
        match self {
            Self::Memory => Self::Memory,
            Self::Sqlite(path) => Self::Sqlite(resolve(path, MOST_LINKS)),
            Self::Json(path) => Self::Json(resolve(path, MOST_LINKS)),
            Self::Call(door) => Self::Call(door.clone()),
        }
    }

    /// Returns both sides of the store, with nothing touched.
    pub(crate) fn sides(&self) -> (Box<dyn Backend>, Box<dyn Reader>) {
        match self {
            Self::Memory => memory::open(),
            Self::Sqlite(path) => sqlite::open(path),
            Self::Json(path) => json::open(path),
            Self::Call(_) => (Box::new(Nowhere), Box::new(Nowhere)),
        }
    }

    /// Returns what errors name.
    pub(crate) fn file(&self) -> &Path {
        self.path().unwrap_or(Path::new(":memory:"))
    }

    /// Returns the file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Memory | Self::Call(_) => None,
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
            Self::Call(_) => f.write_str("the plan of this call"),
        }
    }
}

/// Follows links, also to files that are not there yet. Where that fails the path stays: opening it tells why.
fn resolve(path: &Path, links: u32) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return path };
    match path.read_link() {
        Ok(target) if links > 0 => resolve(&directory.join(target), links - 1),
        _ => directory.canonicalize().map(|directory| directory.join(name)).unwrap_or(path),
    }
}

/// Opens the store at `location`. Nothing is touched before the first use, and only a write makes the file.
pub fn open(location: &Location) -> Arc<dyn Store> {
    let location = location.resolved();
    if let Location::Call(door) = location {
        return Arc::new(RemoteStore::new(door));
    }
    let (backend, reader) = location.sides();
    Arc::new(Handle::new(backend, reader, location.file()))
}
