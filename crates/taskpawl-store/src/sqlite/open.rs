//! Opening a database: for reading, without any change to it, or for writing, under the lock.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::backup;
use super::schema::{Kind, Schema};
use super::session::Session;
use crate::StoreError;
use crate::faults::{self, Fault};
use crate::file_system::FileSystemKind;
use crate::files::{self, LockFile, with_suffix};

/// Busy timeout. Only other programs can cause it to pass, because our own processes wait for the lock file
/// instead.
const PATIENCE: Duration = Duration::from_secs(10);

/// Parameters for opening a database. Tests replace the schema and the file system kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    pub(super) schema: Schema,
    /// The assumed file system kind; `None` asks the system.
    pub(super) file_system_kind: Option<FileSystemKind>,
}

impl Setup {
    /// The setup outside of tests.
    pub(super) const REAL: Self = Self { schema: Schema::CURRENT, file_system_kind: None };

    pub(super) fn file_system_kind(self, path: &Path) -> FileSystemKind {
        self.file_system_kind.unwrap_or_else(|| FileSystemKind::of(path))
    }
}

/// A read-only connection.
#[derive(Debug)]
pub(super) enum ReadOnly {
    /// There is no store yet.
    Absent,
    /// The database with its write-ahead log, shared with writers.
    Shared(Session),
    /// Data that cannot change during the read: a copy, or a database without a log, under the shared lock.
    /// It is opened as immutable, because SQLite would otherwise create a log even for a read. The shared
    /// lock keeps writers out meanwhile.
    Frozen(Session, Option<LockFile>),
}

/// Opens the database at `path` for reading. A database of an older version is migrated in a private copy,
/// because a read must not change the file.
pub(super) fn read_only(path: &Path, setup: Setup) -> Result<ReadOnly, StoreError> {
    match usable_length(path)? {
        0 => Ok(ReadOnly::Absent),
        _ if has_log(path)? && setup.file_system_kind(path) == FileSystemKind::Local => shared(path, setup),
        _ => frozen(path, setup),
    }
}

/// Opens the database at `path` to watch for changes. Returns `None` if it does not exist or has no
/// write-ahead log.
pub(super) fn watching(path: &Path, setup: Setup) -> Result<Option<Session>, StoreError> {
    if usable_length(path)? == 0 || !has_log(path)? || setup.file_system_kind(path) != FileSystemKind::Local {
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
    if has_log(path)? && setup.file_system_kind(path) == FileSystemKind::Local {
        // The writer that held the lock until now has created the log.
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

/// Returns whether the database file alone is incomplete: a crashed writer left a journal, or a log was
/// written on another file system kind and cannot be shared on this one.
fn needs_a_writer(path: &Path) -> Result<bool, StoreError> {
    Ok(has_hot_journal(path)? || has_log(path)?)
}

/// Opens the database for writing once, which applies the journal or the log.
fn settle(path: &Path, setup: Setup) -> Result<(), StoreError> {
    let lock = LockFile::open(path)?;
    lock.lock()?;
    let result = writing(path, setup);
    lock.unlock();
    result.map(drop)
}

/// Opens the database at `path` for writing. Creates it if it does not exist, and migrates an older version
/// after keeping a copy. The caller holds the lock.
pub(super) fn writing(path: &Path, setup: Setup) -> Result<Session, StoreError> {
    // A log with content existed before. An empty one may come from a writer that was killed before it synced
    // the directory.
    let has_old_log = files::length(&with_suffix(path, "-wal"))? > 0;
    if usable_length(path)? == 0 {
        let made = files::private_file().write(true).create(true).truncate(false).open(path);
        made.map_err(|error| StoreError::io("make", path, error))?;
    } else if !has_log(path)? && !has_hot_journal(path)? {
        // Identify the file first: opening a foreign database for writing could create a log beside it.
        let check = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
        setup.schema.identify(&check.connection, path)?;
    }
    let mut session = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, "")?;
    let file_system_kind = setup.file_system_kind(path);
    if file_system_kind != FileSystemKind::Local {
        // In exclusive mode SQLite reads an existing log without shared memory.
        set(&session, "locking_mode = EXCLUSIVE")?;
    }
    let from = match setup.schema.identify(&session.connection, path)? {
        Kind::Empty => 0,
        Kind::Store(version) => version,
    };
    choose_journal(&session, file_system_kind)?;
    if !has_old_log {
        // New directory entries must be as durable as the commits. The bundled SQLite is compiled without
        // directory syncs.
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

/// Chooses the journal mode. A write-ahead log needs shared memory, which network file systems do not have.
/// They get a rollback journal in TRUNCATE mode: the truncation is synced, while a deleted journal could
/// reappear after a power failure.
fn choose_journal(session: &Session, file_system_kind: FileSystemKind) -> Result<(), StoreError> {
    if file_system_kind == FileSystemKind::Local {
        return set(session, "journal_mode = WAL");
    }
    set(session, "journal_mode = TRUNCATE")?;
    set(session, "locking_mode = NORMAL")?;
    // SQLite releases the exclusive lock only on the next access to the file.
    set(session, "user_version")
}

fn set(session: &Session, pragma: &str) -> Result<(), StoreError> {
    let run = session.connection.query_row(&format!("PRAGMA {pragma}"), [], |_| Ok(()));
    run.map_err(|error| session.error(error))
}

/// Returns the length of the database file, 0 if it does not exist.
///
/// An empty file with a nonempty log is an error. SQLite would treat it as a new database and delete the log,
/// which may hold the only remaining data of a truncated database.
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

/// Returns whether there is a write-ahead log. A failed `stat` is an error, not "no log": the database file
/// alone may be empty.
fn has_log(path: &Path) -> Result<bool, StoreError> {
    Ok(files::identity(&with_suffix(path, "-wal"))?.is_some())
}

/// Returns whether an unfinished transaction must be rolled back from its journal.
fn has_hot_journal(path: &Path) -> Result<bool, StoreError> {
    Ok(files::length(&with_suffix(path, "-journal"))? > 0)
}

/// Opens a connection, to be used by one thread at a time. It never checkpoints when it closes: by default
/// the last connection writes the log back and deletes it, with three syncs, even after a read.
fn connect(path: &Path, access: OpenFlags, parameters: &str) -> Result<Session, StoreError> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let open = || {
        let connection = Connection::open_with_flags(uri(path, parameters), flags)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // The bundled SQLite has `STAT4`, which replans a statement whenever a parameter changes. That took
        // half of all time.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.busy_timeout(PATIENCE)?;
        let synchronous = if faults::is_on(Fault::SkipSync) { "OFF" } else { "FULL" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        Ok(connection)
    };
    Ok(Session::new(open().map_err(|error| StoreError::sql(path, error))?, path))
}

/// Returns the `file:` URI of a path, which can carry parameters.
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
