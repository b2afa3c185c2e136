//! The location of a store, and opening it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::access::{NoBackend, PlanSocket, RemoteStore};
use crate::backend::{Backend, Reader};
use crate::committer::Committer;
use crate::handle::Handle;
use crate::store::Store;
use crate::{json, memory, sqlite};

/// Limit for chains of symbolic links, as in the kernel.
const MAX_LINKS: u32 = 40;

/// The kind and the path of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// A store in memory, which is lost with its handle.
    Memory,
    /// A SQLite database at this path.
    Sqlite(PathBuf),
    /// A readable JSON file at this path.
    Json(PathBuf),
    /// The plan of the call that this process belongs to. All reads, and the additions that the call may
    /// make, go to the run.
    Call(PlanSocket),
}

impl Location {
    /// Parses `:memory:`, `memory`, `json:PATH`, or the path of a database. A relative path is resolved
    /// against `directory`.
    pub fn parse(text: &str, directory: &Path) -> Self {
        match text {
            ":memory:" | "memory" => Self::Memory,
            path => match path.strip_prefix("json:") {
                Some(path) => Self::Json(directory.join(path)),
                None => Self::Sqlite(directory.join(path)),
            },
        }
    }

    /// Returns the canonical form of the location: absolute, with symbolic links resolved. All names of one
    /// file must lead to the same lock file, log and output directory.
    #[must_use]
    pub fn resolved(&self) -> Self {
        match self {
            Self::Memory => Self::Memory,
            Self::Sqlite(path) => Self::Sqlite(resolve(path, MAX_LINKS)),
            Self::Json(path) => Self::Json(resolve(path, MAX_LINKS)),
            Self::Call(door) => Self::Call(door.clone()),
        }
    }

    /// Creates both sides of the store without opening any file.
    pub(crate) fn sides(&self) -> (Box<dyn Backend>, Box<dyn Reader>) {
        match self {
            Self::Memory => memory::open(),
            Self::Sqlite(path) => sqlite::open(path),
            Self::Json(path) => json::open(path),
            Self::Call(_) => (Box::new(NoBackend), Box::new(NoBackend)),
        }
    }

    /// Returns the path that errors show.
    pub(crate) fn file(&self) -> &Path {
        self.path().unwrap_or(Path::new(":memory:"))
    }

    /// Returns the path of the store file, if it is a file.
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

/// Resolves symbolic links, also those to files that do not exist yet. On an error the path stays as it is,
/// because opening it reports the error.
fn resolve(path: &Path, links: u32) -> PathBuf {
    if let Ok(canonical) = path.canonicalize() {
        return canonical;
    }
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return path };
    match path.read_link() {
        Ok(target) if links > 0 => resolve(&directory.join(target), links - 1),
        _ => directory.canonicalize().map(|directory| directory.join(name)).unwrap_or(path),
    }
}

/// Opens the store at `location`. No file is opened before the first use, and only a write creates the file.
pub fn open(location: &Location) -> Arc<dyn Store> {
    let location = location.resolved();
    if let Location::Call(door) = location {
        return Arc::new(RemoteStore::new(door));
    }
    let (backend, reader) = location.sides();
    Arc::new(Handle::new(backend, reader, location.file()))
}

impl Committer {
    /// Creates a committer without a [`Store`](crate::Store) around it, for simulations and one-shot writes.
    /// Opens no file yet.
    pub fn open(location: &Location) -> Self {
        let (backend, _) = location.sides();
        Self::new(backend, location.file())
    }
}
