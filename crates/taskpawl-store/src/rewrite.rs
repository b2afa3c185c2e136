//! Rewrites all texts of a store: tasks, calls, history and undo snapshots alike. No undo reverts it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files::{self, with_suffix};
use crate::text_change::{Check, TextChange};
use crate::{Location, StoreError, json, sqlite};

/// The number of texts that a rewrite has changed, and the copies beside the store that it has reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Number of changed texts.
    pub texts: u64,
    /// Copies of older versions of the store that had such texts.
    pub copies: Vec<PathBuf>,
}

/// Rewrites all texts of a store, and of the copies beside it that migrations and repairs have kept. Afterwards no file of the store
/// has the old bytes. Opens the store if it exists.
///
/// # Errors
/// `check` refuses it, another process reads an older state, or the store would be damaged. In these cases nothing is changed in the
/// store, but for the second: there the old bytes may be left in its log.
///
/// # Concurrency
/// Other processes wait. A process that has parts of the store in memory may write them again.
pub fn rewrite(
    location: &Location,
    check: Check<'_>,
    change: TextChange<'_>,
) -> Result<Rewritten, StoreError> {
    let location = location.resolved();
    let Some(path) = location.path() else { return Ok(Rewritten::default()) };
    let mut done = Rewritten {
        texts: match &location {
            Location::Memory | Location::Call(_) => 0,
            Location::Sqlite(path) => sqlite::rewrite(path, check, change)?,
            Location::Json(path) => json::rewrite(path, check, change)?,
        },
        copies: Vec::new(),
    };
    for copy in copies(path)? {
        let is_database = files::start_of(&copy)?.starts_with(b"SQLite format 3\0");
        let rewrite = if is_database { sqlite::rewrite_copy } else { json::rewrite_copy };
        let texts = rewrite(&copy, change)?;
        if texts > 0 {
            done.texts += texts;
            done.copies.push(copy);
        }
    }
    Ok(done)
}

/// Returns the copies of a store beside it.
fn copies(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let start = with_suffix(path, ".").file_name().map(std::ffi::OsStr::to_os_string).unwrap_or_default();
    let directory = files::directory_of(path);
    let entries = match fs::read_dir(directory) {
        Err(error) if files::is_absent(&error) => return Ok(Vec::new()),
        entries => entries.map_err(|error| StoreError::io("list", directory, error))?,
    };
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| StoreError::io("list", directory, error))?;
        let name = entry.file_name();
        let is_copy = Path::new(&name).extension().is_some_and(|end| end == "bak" || end == "new");
        let is_beside = name.as_encoded_bytes().starts_with(start.as_encoded_bytes());
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_beside && is_copy {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
