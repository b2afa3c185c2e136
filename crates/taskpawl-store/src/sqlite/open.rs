//! Opening a database: read-only so that nothing changes, or to write, under the lock.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::schema::{self, Kind};
use super::session::Session;
use crate::StoreError;
use crate::faults::{self, Fault};
use crate::files::{self, LockFile, with_suffix};

/// Only programs that are not ours make us wait here: ours wait for the lock file.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that can only read.
#[derive(Debug)]
pub(super) enum ReadOnly {
    /// There is no store yet.
    Absent,
    /// The database with what stands in its write-ahead log.
    Shared(Session),
    /// There is no write-ahead log. SQLite would make one, even to read; so the file is read as one that cannot change, which
    /// the shared lock makes true.
    Frozen(Session, Option<LockFile>),
}

/// Opens the database at `path` to read.
pub(super) fn read_only(path: &Path) -> Result<ReadOnly, StoreError> {
    match usable_length(path)? {
        0 => Ok(ReadOnly::Absent),
        _ if has_log(path) => shared(path),
        _ => frozen(path),
    }
}

fn shared(path: &Path) -> Result<ReadOnly, StoreError> {
    let session = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, "")?;
    Ok(match schema::identify(&session.connection, path)? {
        Kind::Store(_) => ReadOnly::Shared(session),
        Kind::Empty => ReadOnly::Absent,
    })
}

fn frozen(path: &Path) -> Result<ReadOnly, StoreError> {
    let lock = LockFile::existing(path)?;
    if let Some(lock) = &lock {
        lock.lock_shared()?;
    }
    if has_log(path) {
        // The writer that held the lock has made it.
        return shared(path);
    }
    let session = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
    Ok(match schema::identify(&session.connection, path)? {
        Kind::Store(_) => ReadOnly::Frozen(session, lock),
        Kind::Empty => ReadOnly::Absent,
    })
}

/// Opens the database at `path` to write, makes it if it is not there, and brings it to the version of this program.
/// The caller holds the lock.
pub(super) fn writing(path: &Path) -> Result<Session, StoreError> {
    if usable_length(path)? == 0 {
        let made = files::private_file().write(true).create(true).truncate(false).open(path);
        made.map_err(|error| StoreError::io("make", path, error))?;
    } else if !has_log(path) {
        // A file that is not ours must not get a write-ahead log from us.
        let check = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
        schema::identify(&check.connection, path)?;
    }
    let mut session = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, "")?;
    let kind = schema::identify(&session.connection, path)?;
    schema::migrate(&mut session.connection, path, kind)?;
    Ok(session)
}

/// Returns the length of the database file; 0 if there is none.
///
/// SQLite takes an empty file for a new database and throws its write-ahead log away. A file that was cut down to nothing is
/// not new, and its log may hold what is left.
fn usable_length(path: &Path) -> Result<u64, StoreError> {
    let length = files::length(path)?;
    if path.is_dir() {
        return Err(StoreError::NotAStore { path: path.to_owned() });
    }
    if length == 0 && files::length(&with_suffix(path, "-wal"))? > 0 {
        let detail = "it is empty, but its write-ahead log is not".to_owned();
        return Err(StoreError::Corrupt { path: path.to_owned(), detail });
    }
    Ok(length)
}

fn has_log(path: &Path) -> bool {
    with_suffix(path, "-wal").exists()
}

/// Every connection is used by one thread at a time, and none cleans up when it closes: the last one would write the log back
/// and delete it, with three syncs, even after a read.
fn connect(path: &Path, access: OpenFlags, parameters: &str) -> Result<Session, StoreError> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let open = || {
        let connection = Connection::open_with_flags(uri(path, parameters), flags)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // The bundled SQLite is built with `STAT4` and plans statements anew whenever a parameter changes: half of all time.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.busy_timeout(PATIENCE)?;
        let synchronous = if faults::is_on(Fault::SkipSync) { "OFF" } else { "FULL" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        Ok(connection)
    };
    Ok(Session::new(open().map_err(|error| StoreError::sql(path, error))?, path))
}

/// Returns the address of a file in the form that takes parameters.
fn uri(path: &Path, parameters: &str) -> String {
    let mut uri = String::from("file:");
    if path.is_absolute() {
        uri.push_str("//");
    }
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                uri.push(char::from(*byte));
            }
            other => uri.extend(format!("%{other:02X}").chars()),
        }
    }
    uri + parameters
}
