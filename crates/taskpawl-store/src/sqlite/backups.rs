//! Backups of a database with a table for their facts, and restoring them.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::Value;

use super::backup;
use super::examine;
use super::open::{self, ReadOnly, Setup};
use super::session::Session;
use crate::StoreError;
use crate::backup::{BackupContent, BackupNote, kept_path};
use crate::examine::diagnostic::Severity;
use crate::files::{self, LockFile};

/// Writes the store at `path` to `file`, with the facts about the backup.
pub(crate) fn back_up(
    path: &Path,
    file: &Path,
    note: &mut dyn FnMut() -> BackupNote,
) -> Result<BackupContent, StoreError> {
    let (session, _lock) = match open::read_only(path, Setup::REAL)? {
        ReadOnly::Absent => return Err(StoreError::NotAStore { path: path.to_owned() }),
        ReadOnly::Shared(session) => (session, None),
        ReadOnly::Frozen(session, lock) => (session, lock),
    };
    let copy = backup::private_copy(&session.connection, path)?;
    let content = content_of(&copy).map_err(|error| StoreError::sql(path, error))?;
    // Facts that were read after the state include everything that belongs to it.
    let note = serde_json::to_string(&note()).expect("BUG: a note is plain data");
    let add = || {
        copy.execute_batch("CREATE TABLE backup (note TEXT NOT NULL)")?;
        copy.execute("INSERT INTO backup VALUES (?1)", [note])
    };
    add().map_err(|error| StoreError::sql(path, error))?;
    backup::keep(&copy, file)?;
    Ok(content)
}

/// Reads the facts of a backup, and checks the whole file.
pub(crate) fn read_backup(path: &Path) -> Result<(BackupNote, BackupContent), StoreError> {
    let copy = checked_copy(path)?;
    let failed = |error| StoreError::sql(path, error);
    let has_note = "SELECT count(*) FROM sqlite_schema WHERE name = 'backup' AND type = 'table'";
    let has_note: bool = copy.query_row(has_note, [], |row| row.get(0)).map_err(failed)?;
    if !has_note {
        return Err(StoreError::NotABackup { path: path.to_owned() });
    }
    let note: String = copy.query_row("SELECT note FROM backup", [], |row| row.get(0)).map_err(failed)?;
    let note = serde_json::from_str(&note).map_err(|_| StoreError::NotABackup { path: path.to_owned() })?;
    Ok((note, content_of(&copy).map_err(failed)?))
}

/// Replaces the store at `path` with a backup.
pub(crate) fn restore(from: &Path, path: &Path, fence: u64) -> Result<Option<PathBuf>, StoreError> {
    let copy = checked_copy(from)?;
    prepare(&copy, fence).map_err(|error| StoreError::sql(from, error))?;
    files::make_directory(files::directory_of(path))?;
    let lock = LockFile::open(path)?;
    lock.lock()?;
    let restored = replace(&copy, path);
    lock.unlock();
    restored
}

/// Replaces the pages of a store, which keeps its file: processes that have it open read the new content.
fn replace(copy: &Connection, path: &Path) -> Result<Option<PathBuf>, StoreError> {
    let is_there = files::length(path)? > 0;
    let mut session = open::writing(path, Setup::REAL)?;
    let kept = is_there.then(|| kept_path(path));
    if let Some(kept) = &kept {
        backup::keep(&session.connection, kept)?;
    }
    backup::copy_all(copy, &mut session.connection).map_err(|error| StoreError::sql(path, error))?;
    Ok(kept)
}

/// Makes the store of a backup one that runs may use.
fn prepare(copy: &Connection, fence: u64) -> rusqlite::Result<()> {
    copy.execute_batch("DROP TABLE backup")?;
    let record: Option<String> =
        copy.query_row("SELECT record FROM key_space", [], |row| row.get(0)).optional()?;
    // Without a record no call has ever started, so there is nothing to fence.
    let Some(mut record) = record.and_then(|text| serde_json::from_str::<Value>(&text).ok()) else {
        return Ok(());
    };
    record["fence"] = Value::from(fence);
    copy.execute("UPDATE key_space SET record = ?1", [record.to_string()]).map(drop)
}

/// Copies a backup into memory, migrated to this version, and refuses a damaged one.
fn checked_copy(path: &Path) -> Result<Connection, StoreError> {
    let session = match open::read_only(path, Setup::REAL)? {
        ReadOnly::Absent => return Err(StoreError::NotABackup { path: path.to_owned() }),
        ReadOnly::Shared(session) | ReadOnly::Frozen(session, _) => session,
    };
    let session = Session::new(backup::private_copy(&session.connection, path)?, path);
    let found = examine::all(&session).map_err(StoreError::from_view)?;
    match found.into_iter().find(|diagnostic| diagnostic.severity == Severity::Damage) {
        Some(damage) => {
            let detail = damage.message;
            Err(StoreError::Corrupt { path: path.to_owned(), detail, has_log: false })
        }
        None => Ok(session.connection),
    }
}

fn content_of(copy: &Connection) -> rusqlite::Result<BackupContent> {
    let revision = copy.query_row("SELECT * FROM counters", [], super::rows::counters)?.revision;
    let record: Option<String> =
        copy.query_row("SELECT record FROM key_space", [], |row| row.get(0)).optional()?;
    let record = record.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let project = record.and_then(|record| record["project"].as_str().map(str::to_owned));
    Ok(BackupContent { revision, project })
}
