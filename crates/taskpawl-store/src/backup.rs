//! Backups of a store in one file, made while runs go on, and restoring them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taskpawl_model::value::Timestamp;

use crate::{Location, StoreError, files, json, sqlite};

/// The facts about a backup that its file has beside the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupNote {
    /// The time at which it was made.
    pub made_at: Timestamp,
    /// The host on which it was made.
    pub host: String,
    /// The path of the store.
    pub store: PathBuf,
    /// Data of the program, such as the places of running calls.
    #[serde(default)]
    pub beside: Map<String, Value>,
}

/// A backup that was written or restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupContent {
    /// The revision of the store.
    pub revision: u64,
    /// The first part of the idempotency keys of its calls; `None` before the first run.
    pub project: Option<String>,
}

/// A backup that is open for being restored.
#[derive(Debug)]
pub struct OpenBackup {
    /// The file.
    pub path: PathBuf,
    /// Its facts.
    pub note: BackupNote,
    /// Its content.
    pub content: BackupContent,
    is_database: bool,
}

/// Writes the store at `location`, as it is now, to `file`. `note` is called after the store was read.
///
/// # Errors
/// The store is in memory or cannot be read, or the file cannot be written. An existing file is then unchanged.
///
/// # Concurrency
/// Others read and write meanwhile; the file has the state of one revision.
///
/// # Durability
/// The file is complete and durable on return. Until then it has a temporary name.
pub fn back_up(
    location: &Location,
    file: &Path,
    note: &mut dyn FnMut() -> BackupNote,
) -> Result<BackupContent, StoreError> {
    match location.resolved() {
        Location::Sqlite(path) => sqlite::back_up(&path, file, note),
        Location::Json(path) => json::back_up(&path, file, note),
        Location::Memory | Location::Call(_) => {
            Err(StoreError::NotAStore { path: location.file().to_owned() })
        }
    }
}

/// Opens a backup and checks it.
///
/// # Errors
/// The file is no backup, is damaged, or is of a later version.
pub fn open_backup(path: &Path) -> Result<OpenBackup, StoreError> {
    let is_database = files::start_of(path)?.starts_with(b"SQLite format 3\0");
    let (note, content) = if is_database { sqlite::read_backup(path)? } else { json::read_backup(path)? };
    Ok(OpenBackup { path: path.to_owned(), note, content, is_database })
}

impl OpenBackup {
    /// Replaces the store at `location` with the backup, under a new fencing number. A store that is there is kept as a copy, whose
    /// path is returned.
    ///
    /// # Errors
    /// The store is of another kind than the backup, or cannot be written. It is then unchanged.
    ///
    /// # Concurrency
    /// Other processes wait, and read the restored state afterwards.
    ///
    /// # Durability
    /// After a crash the store has the old or the new state. The new one is durable on return.
    pub fn restore(&self, location: &Location, fence: u64) -> Result<Option<PathBuf>, StoreError> {
        match location.resolved() {
            Location::Sqlite(path) if self.is_database => sqlite::restore(&self.path, &path, fence),
            Location::Json(path) if !self.is_database => json::restore(&self.path, &path, fence),
            Location::Memory | Location::Call(_) | Location::Sqlite(_) | Location::Json(_) => {
                Err(StoreError::NotAStore { path: self.path.clone() })
            }
        }
    }

    /// Returns whether a store at `location` can be replaced with it: both are databases, or both are readable files.
    pub fn fits(&self, location: &Location) -> bool {
        match location {
            Location::Sqlite(_) => self.is_database,
            Location::Json(_) => !self.is_database,
            Location::Memory | Location::Call(_) => false,
        }
    }
}

/// Returns the path of the copy that a restore keeps of the store at `path`.
pub(crate) fn kept_path(path: &Path) -> PathBuf {
    let mut names = (1_u32..).map(|number| files::with_suffix(path, &format!(".replaced-{number}.bak")));
    names.find(|name| !name.exists()).expect("BUG: there are enough numbers")
}
