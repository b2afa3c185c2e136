//! Copies of a database, made with the backup interface of SQLite. Opening the file with `std::fs` and
//! closing it again would release the POSIX locks that SQLite holds on it in this process.

use std::fs::{self, File};
use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::StoreError;
use crate::files::{self, with_suffix};

/// Copies the content of `from` into a temporary database, which only the returned connection can use.
pub(super) fn private_copy(from: &Connection, path: &Path) -> Result<Connection, StoreError> {
    // An empty name makes SQLite create a database in memory that can spill to a temporary file.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags("", flags).map_err(|error| StoreError::sql(path, error))?;
    copy_all(from, &mut copy).map_err(|error| StoreError::sql(path, error))?;
    Ok(copy)
}

/// Keeps a copy of a database of an older version beside it, under a name that is free.
///
/// # Durability
/// As for [`keep`].
pub(super) fn keep_version(from: &Connection, path: &Path, version: i64) -> Result<(), StoreError> {
    let fresh = with_suffix(&files::backup_path(path, version), ".new");
    let kept = write(from, &fresh).and_then(|()| {
        match files::free_backup_path(path, version, |existing| files::have_same_content(existing, &fresh)) {
            Some(free) => put_in_place(&fresh, &free),
            // An earlier migration, which failed, has made the same copy.
            None => fs::remove_file(&fresh).map_err(|error| StoreError::io("remove", &fresh, error)),
        }
    });
    settle(path, &fresh, kept)
}

/// Keeps a copy of the database at `kept`, replacing an existing copy.
///
/// # Durability
/// The copy is complete and durable on return. Until then it has a temporary name.
pub(super) fn keep(from: &Connection, kept: &Path) -> Result<(), StoreError> {
    let fresh = with_suffix(kept, ".new");
    let result = write(from, &fresh).and_then(|()| put_in_place(&fresh, kept));
    settle(kept, &fresh, result)
}

fn settle(beside: &Path, fresh: &Path, result: Result<(), StoreError>) -> Result<(), StoreError> {
    if let Err(error) = result {
        // A leftover is harmless, and `doctor --fix` removes it. The first error is the one to report.
        let _ = fs::remove_file(fresh);
        return Err(error);
    }
    files::sync_directory(files::directory_of(beside))
}

fn write(from: &Connection, fresh: &Path) -> Result<(), StoreError> {
    let made = files::private_file().write(true).create(true).truncate(true).open(fresh);
    made.map_err(|error| StoreError::io("make", fresh, error))?;
    let copy = || {
        let mut copy = Connection::open(fresh)?;
        // The temporary file needs no crash safety: it gets its name after one sync at the end.
        copy.query_row("PRAGMA journal_mode = OFF", [], |_| Ok(()))?;
        copy.pragma_update(None, "synchronous", "OFF")?;
        copy_all(from, &mut copy)
    };
    copy().map_err(|error| StoreError::sql(fresh, error))
}

fn put_in_place(fresh: &Path, kept: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::io("write", kept, error);
    File::open(fresh).and_then(|file| files::sync(&file)).map_err(failed)?;
    fs::rename(fresh, kept).map_err(failed)
}

/// Copies all pages in one step, so that no write can happen in between.
pub(super) fn copy_all(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    let done = Backup::new(from, to)?.step(-1)?;
    if done == StepResult::Done {
        return Ok(());
    }
    // Our own writers are excluded by the lock file, so another program holds the database.
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    Err(rusqlite::Error::SqliteFailure(code, Some("the copy is incomplete".to_owned())))
}
