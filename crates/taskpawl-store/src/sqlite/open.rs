//! Opening a database: read-only so that nothing changes, or to write, under the lock.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::backup;
use super::schema::{Kind, Schema};
use super::session::Session;
use crate::StoreError;
use crate::faults::{self, Fault};
use crate::files::{self, LockFile, with_suffix};
use crate::medium::Medium;

/// Only programs that are not ours make us wait here: ours wait for the lock file.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a database is opened with. Tests put in other schemas and media.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    pub(super) schema: Schema,
    /// What the file is taken to lie on, instead of asking the system.
    pub(super) medium: Option<Medium>,
}

impl Setup {
    /// What programs use.
    pub(super) const REAL: Self = Self { schema: Schema::CURRENT, medium: None };

    pub(super) fn medium(self, path: &Path) -> Medium {
        self.medium.unwrap_or_else(|| Medium::of(path))
    }
}

/// A connection that can only read.
#[derive(Debug)]
pub(super) enum ReadOnly {
    /// There is no store yet.
    Absent,
    /// The database with what stands in its write-ahead log.
    Shared(Session),
    /// What will not change while it is looked at: a database without a write-ahead log, under the shared lock, or a copy. SQLite
    /// would make a log, even to read; so the file is read as one that cannot change, which the lock makes true.
    Frozen(Session, Option<LockFile>),
}

/// Opens the database at `path` to read. One of an older version is copied and brought to this one in the copy: a read does not
/// change the file.
pub(super) fn read_only(path: &Path, setup: Setup) -> Result<ReadOnly, StoreError> {
    match usable_length(path)? {
        0 => Ok(ReadOnly::Absent),
        _ if has_log(path)? && setup.medium(path) == Medium::Local => shared(path, setup),
        _ => frozen(path, setup),
    }
}

/// Opens the database at `path` to be asked whether others changed it; `None` if it has no write-ahead log, or is not there.
pub(super) fn watching(path: &Path, setup: Setup) -> Result<Option<Session>, StoreError> {
    if usable_length(path)? == 0 || !has_log(path)? || setup.medium(path) != Medium::Local {
        return Ok(None);
    }
    let session = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, "")?;
    let kind = setup.schema.identify(&session.connection, path)?;
    Ok(if kind == Kind::Empty { None } else { Some(session) })
}

fn shared(path: &Path, setup: Setup) -> Result<ReadOnly, StoreError> {
    let session = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, "")?;
    match setup.schema.identify(&session.connection, path)? {
        Kind::Empty => Ok(ReadOnly::Absent),
        Kind::Store(version) if version < setup.schema.version() => newer_copy(&session, setup, version),
        Kind::Store(_) => Ok(ReadOnly::Shared(session)),
    }
}

fn newer_copy(session: &Session, setup: Setup, version: i64) -> Result<ReadOnly, StoreError> {
    let path = &session.path;
    let mut copy = backup::private_copy(&session.connection, path)?;
    setup.schema.migrate(&mut copy, path, version)?;
    Ok(ReadOnly::Frozen(Session::new(copy, path), None))
}

fn frozen(path: &Path, setup: Setup) -> Result<ReadOnly, StoreError> {
    let mut lock = lock_shared(path)?;
    if has_log(path)? && setup.medium(path) == Medium::Local {
        // The writer that held the lock has made it.
        return shared(path, setup);
    }
    if needs_a_writer(path)? {
        drop(lock);
        settle(path, setup)?;
        lock = lock_shared(path)?;
    }
    let session = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
    match setup.schema.identify(&session.connection, path)? {
        Kind::Empty => Ok(ReadOnly::Absent),
        Kind::Store(version) if version < setup.schema.version() => newer_copy(&session, setup, version),
        Kind::Store(_) => Ok(ReadOnly::Frozen(session, lock)),
    }
}

fn lock_shared(path: &Path) -> Result<Option<LockFile>, StoreError> {
    let lock = LockFile::existing(path)?;
    if let Some(lock) = &lock {
        lock.lock_shared()?;
    }
    Ok(lock)
}

/// Returns whether the file alone does not say what the store holds: a writer that died left a journal, or somebody wrote on
/// another medium, with a log that cannot be shared here.
fn needs_a_writer(path: &Path) -> Result<bool, StoreError> {
    Ok(has_hot_journal(path)? || has_log(path)?)
}

/// Has a writer put the file in order.
fn settle(path: &Path, setup: Setup) -> Result<(), StoreError> {
    let lock = LockFile::open(path)?;
    lock.lock()?;
    let result = writing(path, setup);
    lock.unlock();
    result.map(drop)
}

/// Opens the database at `path` to write, makes it if it is not there, and brings it to the version of this program, with a copy
/// of what it was before. The caller holds the lock.
pub(super) fn writing(path: &Path, setup: Setup) -> Result<Session, StoreError> {
    // A log in which something stands was there before; one that is empty may be what a writer made that was killed.
    let has_old_log = files::length(&with_suffix(path, "-wal"))? > 0;
    if usable_length(path)? == 0 {
        let made = files::private_file().write(true).create(true).truncate(false).open(path);
        made.map_err(|error| StoreError::io("make", path, error))?;
    } else if !has_log(path)? && !has_hot_journal(path)? {
        // A file that is not ours must not get a write-ahead log from us.
        let check = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
        setup.schema.identify(&check.connection, path)?;
    }
    let mut session = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, "")?;
    let medium = setup.medium(path);
    if medium != Medium::Local {
        // A log of another medium is taken in without memory that is shared.
        set(&session, "locking_mode = EXCLUSIVE")?;
    }
    let from = match setup.schema.identify(&session.connection, path)? {
        Kind::Empty => 0,
        Kind::Store(version) => version,
    };
    choose_journal(&session, medium)?;
    if !has_old_log {
        // The names of new files have to last as long as what will be in them; SQLite is built to leave that to us.
        files::sync_directory(files::directory_of(path))?;
    }
    if from < setup.schema.version() {
        if from > 0 {
            backup::keep_version(&session.connection, path, from)?;
        }
        setup.schema.migrate(&mut session.connection, path, from)?;
    }
    Ok(session)
}

/// A write-ahead log needs memory that all processes share, which no network has. There the journal is emptied with every commit,
/// and that is synced: a journal that was only deleted may come back after a power cut.
fn choose_journal(session: &Session, medium: Medium) -> Result<(), StoreError> {
    if medium == Medium::Local {
        return set(session, "journal_mode = WAL");
    }
    set(session, "journal_mode = TRUNCATE")?;
    set(session, "locking_mode = NORMAL")?;
    // The lock is given back by the next use of the file.
    set(session, "user_version")
}

fn set(session: &Session, pragma: &str) -> Result<(), StoreError> {
    let run = session.connection.query_row(&format!("PRAGMA {pragma}"), [], |_| Ok(()));
    run.map_err(|error| session.error(error))
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
        return Err(StoreError::Corrupt { path: path.to_owned(), detail, has_log: true });
    }
    Ok(length)
}

/// Returns whether there is a write-ahead log. One that cannot be looked at is not taken for none: the file alone may be empty.
fn has_log(path: &Path) -> Result<bool, StoreError> {
    Ok(files::identity(&with_suffix(path, "-wal"))?.is_some())
}

/// Returns whether a transaction that was not finished stands in the file, to be undone with its journal.
fn has_hot_journal(path: &Path) -> Result<bool, StoreError> {
    Ok(files::length(&with_suffix(path, "-journal"))? > 0)
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
