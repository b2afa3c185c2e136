//! The store in a SQLite database, the default.

mod backup;
mod backups;
mod cache;
mod examine;
mod excerpt;
mod find;
mod history;
mod insert;
mod nodes;
mod open;
mod rewrite;
mod rows;
mod schema;
mod session;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_open;
#[cfg(test)]
mod tests_options;
mod view;
mod write;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use taskpawl_model::view::{Changes, View, ViewResult};

use self::cache::{DATA_VERSION, TransactionCache};

pub(crate) use self::backups::{back_up, read_backup, restore};
pub(crate) use self::examine::{examine, repair};
use self::open::{ReadOnly, Setup};
pub(crate) use self::rewrite::{rewrite, rewrite_copy};
use self::session::{Counters, Live, Session};
use crate::StoreError;
use crate::backend::{Backend, Reader, Watch};
use crate::file_system::FileSystemKind;
use crate::files::{self, Identity, LockFile};
use crate::memory::State;

/// A log longer than this, in bytes, is truncated when a writer closes. Reading 128 frames costs about as
/// much as starting a program.
const LONG_LOG: u64 = 128 * 4096;

/// Idle reading connections that are kept for reuse; further ones are closed.
const MAX_IDLE: usize = 4;

/// Returns both sides of the store at `path`. Opens no file before the first use.
pub(crate) fn open(path: &Path) -> (Box<dyn Backend>, Box<dyn Reader>) {
    open_with(path, Setup::REAL)
}

fn open_with(path: &Path, setup: Setup) -> (Box<dyn Backend>, Box<dyn Reader>) {
    let backend = SqliteBackend { path: path.to_owned(), setup, writer: None };
    let reader = SqliteReader { path: path.to_owned(), setup, idle: Mutex::default() };
    (Box::new(backend), Box::new(reader))
}

#[derive(Debug)]
struct SqliteBackend {
    path: PathBuf,
    setup: Setup,
    writer: Option<Writer>,
}

#[derive(Debug)]
struct Writer {
    session: Session,
    lock: LockFile,
    /// True if this process holds the lock: from before a transaction until its end.
    is_locked: bool,
    identity: Option<Identity>,
    /// The schema version that this program writes.
    version: i64,
    /// True if the database has a write-ahead log, so that readers never block writers.
    has_log: bool,
    /// `PRAGMA data_version` at the start of the transaction.
    data_version: i64,
    /// The cache of the last committed transaction.
    kept: Option<CachedState>,
    /// True if every commit succeeded. After a failed sync nothing more is written, not even a checkpoint.
    is_sound: bool,
}

/// A cache of the file that is valid until another connection commits.
#[derive(Debug)]
struct CachedState {
    /// `PRAGMA data_version` at the time of the cache.
    data_version: i64,
    counters: Counters,
    known: TransactionCache,
}

impl SqliteBackend {
    fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().expect("BUG: a transaction was begun")
    }

    /// Takes the lock, and opens the database on the first call.
    fn lock(&mut self) -> Result<(), StoreError> {
        if let Some(writer) = &mut self.writer {
            if !writer.is_locked {
                writer.lock.lock()?;
                writer.is_locked = true;
            }
            return Ok(());
        }
        files::make_directory(files::directory_of(&self.path))?;
        let lock = LockFile::open(&self.path)?;
        lock.lock()?;
        let session = open::writing(&self.path, self.setup)?;
        let (identity, version) = (files::identity(&self.path)?, self.setup.schema.version());
        let has_log = self.setup.file_system_kind(&self.path) == FileSystemKind::Local;
        self.writer = Some(Writer {
            session,
            lock,
            is_locked: true,
            identity,
            version,
            has_log,
            data_version: 0,
            kept: None,
            is_sound: true,
        });
        Ok(())
    }
}

impl Writer {
    /// Checks that the path still leads to the file that was opened.
    fn check_identity(&self, path: &Path) -> Result<(), StoreError> {
        if files::identity(path)? == self.identity {
            Ok(())
        } else {
            Err(StoreError::Replaced { path: path.to_owned() })
        }
    }

    fn begin(&mut self, path: &Path) -> Result<(), StoreError> {
        self.check_identity(path)?;
        self.session.execute("BEGIN IMMEDIATE", [])?;
        // Read after `BEGIN IMMEDIATE`, so that no other connection can commit after this check.
        self.data_version = self.data_version()?;
        let (counters, known) = if let Some(kept) = self.kept(self.data_version) {
            (kept.counters, kept.known)
        } else {
            self.check_version(path)?;
            (self.session.counters().map_err(StoreError::from_view)?, TransactionCache::default())
        };
        self.session.live = Some(Live::new(counters, known));
        Ok(())
    }

    /// Checks that no newer program has migrated the store while this process had it open.
    fn check_version(&self, path: &Path) -> Result<(), StoreError> {
        let found =
            self.session.one("PRAGMA user_version", [], |row| row.get(0)).map_err(StoreError::from_view)?;
        match found {
            Some(found) if found > self.version => {
                Err(StoreError::Newer { path: path.to_owned(), found, known: self.version })
            }
            _ => Ok(()),
        }
    }

    /// Checks that the transaction is still open. SQLite rolls it back by itself after some read errors, and
    /// later statements would then commit one by one.
    fn check_transaction(&self) -> Result<(), StoreError> {
        if !self.session.connection.is_autocommit() {
            return Ok(());
        }
        let cause = io::Error::other("the transaction was rolled back after an error; nothing was written");
        Err(StoreError::io("read", &self.session.path, cause))
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.check_transaction()?;
        self.session.put_counters()?;
        let done = self.session.execute("COMMIT", []);
        done.map_err(|error| {
            // FULL and BUSY mean that the commit frame was not written, so nothing is durable. After any
            // other error it may have been. A failed sync is not retried: the kernel drops dirty pages after
            // reporting the error, so a retry proves nothing.
            let is_undone = matches!(error, StoreError::Full { .. } | StoreError::Busy { .. });
            if is_undone { error } else { StoreError::in_doubt(&self.session.path, error) }
        })?;
        self.keep(self.data_version);
        Ok(())
    }

    /// Reads the committed data on the writing connection, with the cache of the last transaction.
    fn look(&mut self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        self.session.execute("BEGIN", [])?;
        // Read inside the transaction, so that the number belongs to the snapshot.
        let data_version = self.data_version()?;
        self.session.live = self.kept(data_version).map(|kept| Live::new(kept.counters, kept.known));
        look(&self.session).map_err(StoreError::from_view)?;
        self.session.execute("COMMIT", [])?;
        self.keep(data_version);
        Ok(())
    }

    /// Returns the number that changes when another connection commits.
    fn data_version(&self) -> Result<i64, StoreError> {
        let found = self.session.one(DATA_VERSION, [], |row| row.get(0)).map_err(StoreError::from_view)?;
        Ok(found.unwrap_or_default())
    }

    /// Takes the cache, if no other connection has committed since.
    fn kept(&mut self, data_version: i64) -> Option<CachedState> {
        self.kept.take().filter(|kept| kept.data_version == data_version)
    }

    /// Keeps the cache of a successful transaction.
    fn keep(&mut self, data_version: i64) {
        self.kept = self.session.live.take().map(|live| {
            let mut known = live.known.into_inner();
            known.trim();
            CachedState { data_version, counters: live.counters.get(), known }
        });
    }

    /// Rolls the transaction back, unless SQLite has done so after an error, and releases the lock.
    fn rollback(&mut self) -> Result<(), StoreError> {
        let result = self.end_transaction();
        self.unlock();
        result
    }

    fn end_transaction(&mut self) -> Result<(), StoreError> {
        self.session.live = None;
        if self.session.connection.is_autocommit() {
            return Ok(());
        }
        self.session.execute("ROLLBACK", []).map(drop)
    }

    fn unlock(&mut self) {
        self.lock.unlock();
        self.is_locked = false;
    }
}

impl Writer {
    /// Truncates a long write-ahead log, which the next process that opens the database would have to read.
    ///
    /// Short commands leave a short log, so that they pay for a checkpoint only occasionally.
    fn shorten_log(&mut self, path: &Path) -> Result<(), StoreError> {
        if files::length(&files::with_suffix(path, "-wal"))? <= LONG_LOG {
            return Ok(());
        }
        self.lock.lock()?;
        let result = self.checkpoint(path);
        self.lock.unlock();
        result
    }

    fn checkpoint(&self, path: &Path) -> Result<(), StoreError> {
        self.check_identity(path)?;
        // Do not wait for readers: the checkpoint keeps the frames that they still need.
        let run = || {
            self.session.connection.busy_timeout(Duration::ZERO)?;
            self.session.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        };
        run().map_err(|error| self.session.error(error))
    }
}

impl Drop for SqliteBackend {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.as_mut().filter(|writer| writer.is_sound) {
            // All commits are durable with or without the checkpoint, and the next writer tries it again.
            let _ = writer.shorten_log(&self.path);
        }
    }
}

impl Backend for SqliteBackend {
    /// Declines the first transaction, because opening the database may take long.
    fn lock_now(&mut self) -> Result<bool, StoreError> {
        let Some(writer) = &mut self.writer else { return Ok(false) };
        writer.is_locked = writer.is_locked || writer.lock.try_lock()?;
        Ok(writer.is_locked)
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.lock()?;
        let path = self.path.clone();
        let writer = self.writer();
        let result = writer.begin(&path);
        if result.is_err() {
            writer.rollback()?;
        }
        result
    }

    fn read(&mut self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<bool, StoreError> {
        let Some(writer) = self.writer.as_mut().filter(|writer| writer.has_log) else { return Ok(false) };
        writer.check_identity(&self.path)?;
        let result = writer.look(look);
        if result.is_err() {
            // An open transaction would block the next use of this connection.
            writer.end_transaction()?;
        }
        result.map(|()| true)
    }

    fn view(&self) -> &dyn View {
        &self.writer.as_ref().expect("BUG: a transaction was begun").session
    }

    fn apply(&mut self, changes: Changes) -> Result<u64, StoreError> {
        let writer = self.writer();
        writer.check_transaction()?;
        writer.session.apply(&changes)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let writer = self.writer();
        match writer.commit() {
            Ok(()) => {
                writer.unlock();
                Ok(())
            }
            Err(error) => {
                writer.is_sound = false;
                let path = writer.session.path.clone();
                writer.rollback().map_err(|second| StoreError::in_doubt(&path, second))?;
                Err(error)
            }
        }
    }

    fn rollback(&mut self) -> Result<(), StoreError> {
        self.writer.as_mut().map_or(Ok(()), Writer::rollback)
    }
}

/// Reads on separate connections, so that it neither waits for the committer nor sees uncommitted data.
#[derive(Debug)]
struct SqliteReader {
    path: PathBuf,
    setup: Setup,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    session: Session,
    identity: Option<Identity>,
}

impl SqliteReader {
    /// Returns an idle connection. Fails if the file was replaced in the meantime.
    fn idle(&self) -> Result<Option<Idle>, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(idle) if files::identity(&self.path)? != idle.identity => {
                Err(StoreError::Replaced { path: self.path.clone() })
            }
            idle => Ok(idle),
        }
    }

    fn look_and_keep(
        &self,
        idle: Idle,
        look: &mut dyn FnMut(&dyn View) -> ViewResult<()>,
    ) -> Result<(), StoreError> {
        look_at(&idle.session, look)?;
        let mut all = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MAX_IDLE {
            all.push(idle);
        }
        Ok(())
    }
}

impl Reader for SqliteReader {
    fn read(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        if let Some(idle) = self.idle()? {
            return self.look_and_keep(idle, look);
        }
        let identity = files::identity(&self.path)?;
        match open::read_only(&self.path, self.setup)? {
            ReadOnly::Absent => look(&State::default()).map_err(StoreError::from_view),
            ReadOnly::Frozen(session, _lock) => look_at(&session, look),
            ReadOnly::Shared(session) => self.look_and_keep(Idle { session, identity }, look),
        }
    }

    fn watch(&self) -> Result<Box<dyn Watch + '_>, StoreError> {
        Ok(Box::new(DataVersion { reader: self, session: None, last: None, looks: 0 }))
    }

    fn warnings(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.setup.file_system_kind(&self.path).warning(&self.path).into_iter().collect())
    }
}

/// Reads one snapshot. After an error the transaction stays open; it ends when the caller drops the
/// connection.
fn look_at(session: &Session, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
    session.execute("BEGIN", [])?;
    look(session).map_err(StoreError::from_view)?;
    session.execute("COMMIT", []).map(drop)
}

/// Without a write-ahead log, one of this many checks reports a change unconditionally: a commit can leave
/// length and modification time of the file unchanged.
const LOOKS: u32 = 8;

/// Compares `PRAGMA data_version`, which takes about a microsecond. Without a write-ahead log it compares the
/// metadata of the file.
struct DataVersion<'a> {
    reader: &'a SqliteReader,
    session: Option<Session>,
    last: Option<ContentVersion>,
    looks: u32,
}

/// A value that changes with the content of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentVersion {
    Version(Option<i64>),
    File(Option<(Identity, u64, Option<SystemTime>)>),
}

impl DataVersion<'_> {
    fn look(&mut self) -> Result<ContentVersion, StoreError> {
        if self.session.is_none() {
            self.session = open::watching(&self.reader.path, self.reader.setup)?;
        }
        let Some(session) = &self.session else {
            let data = std::fs::metadata(&self.reader.path).ok();
            let file = data.map(|data| (files::identity_of(&data), data.len(), data.modified().ok()));
            return Ok(ContentVersion::File(file));
        };
        let version = session.one(DATA_VERSION, [], |row| row.get(0));
        version.map(ContentVersion::Version).map_err(StoreError::from_view)
    }
}

impl Watch for DataVersion<'_> {
    fn has_changed(&mut self) -> Result<bool, StoreError> {
        let now = self.look()?;
        self.looks = (self.looks + 1) % LOOKS;
        let may_hide = self.looks == 0 && matches!(now, ContentVersion::File(Some(_)));
        Ok(self.last.replace(now) != Some(now) || may_hide)
    }
}
