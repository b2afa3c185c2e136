//! The store in an SQLite database: the default.

mod backup;
mod examine;
mod excerpt;
mod find;
mod history;
mod insert;
mod known;
mod log;
mod nodes;
mod open;
mod rows;
mod schema;
mod session;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_open;
mod view;
mod write;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use taskpawl_model::{Changes, View, ViewResult};

pub(crate) use self::examine::{examine, mend};
use self::known::{DATA_VERSION, Known};
use self::log::Log;
use self::open::{ReadOnly, Setup};
use self::session::{Counters, Live, Session};
use crate::StoreError;
use crate::committer::Backend;
use crate::files::{self, Identity, LockFile};
use crate::handle::{Reader, Watch};
use crate::medium::Medium;
use crate::memory::State;

/// A write-ahead log of more bytes is emptied when a writer closes: reading 128 frames costs about as much as starting a program.
const LONG_LOG: u64 = 128 * 4096;

/// More idle connections than this are closed.
const MAX_IDLE: usize = 4;

/// Returns both sides of the store at `path`. Nothing is touched before the first use.
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
    /// Whether it holds the lock: from before a transaction to its end.
    is_locked: bool,
    identity: Option<Identity>,
    /// The version of the schema that it writes.
    version: i64,
    /// Whether there is a write-ahead log, so that nobody waits for who reads.
    has_log: bool,
    log: Log,
    /// What SQLite said when the transaction began.
    data_version: i64,
    /// What the last transaction left, if it was committed.
    kept: Option<Kept>,
    /// Whether every commit succeeded; after a failed sync nothing more is written, not even a checkpoint.
    is_sound: bool,
}

/// What is known of the file as long as nobody else writes to it.
#[derive(Debug)]
struct Kept {
    /// What SQLite said then when it was asked whether others wrote.
    data_version: i64,
    counters: Counters,
    known: Known,
}

impl SqliteBackend {
    fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().expect("BUG: a transaction was begun")
    }

    /// Takes the lock, and opens the database the first time.
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
        let has_log = self.setup.medium(&self.path) == Medium::Local;
        self.writer = Some(Writer {
            session,
            lock,
            is_locked: true,
            identity,
            version,
            has_log,
            log: Log::new(&self.path),
            data_version: 0,
            kept: None,
            is_sound: true,
        });
        Ok(())
    }
}

impl Writer {
    /// Makes sure that the file is still the one that was opened.
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
        // Asked behind the lock: nobody else writes from here on.
        self.data_version = self.data_version()?;
        let (counters, known) = if let Some(kept) = self.kept(self.data_version) {
            (kept.counters, kept.known)
        } else {
            self.check_version(path)?;
            (self.session.counters().map_err(StoreError::from_view)?, Known::default())
        };
        self.session.live = Some(Live::new(counters, known));
        Ok(())
    }

    /// A newer program may have brought the store up while this one had it open.
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

    /// Makes sure that the transaction is still there: SQLite takes it back where it could not read, and what was written after that would
    /// stand by itself.
    fn check_transaction(&self) -> Result<(), StoreError> {
        if !self.session.connection.is_autocommit() {
            return Ok(());
        }
        let cause =
            io::Error::other("the transaction was taken back after an error; nothing of it was written");
        Err(StoreError::io("read", &self.session.path, cause))
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.check_transaction()?;
        self.session.put_counters()?;
        if self.has_log {
            self.log.make_room();
        }
        let done = self.session.execute("COMMIT", []);
        done.map_err(|error| {
            // Then the last page of the transaction, which says that it is whole, was not written. Else it may have been; and a
            // sync that failed is not worth repeating: the system forgets what it could not write.
            let is_undone = matches!(error, StoreError::Full { .. } | StoreError::Busy { .. });
            if is_undone { error } else { StoreError::in_doubt(&self.session.path, error) }
        })?;
        self.keep(self.data_version);
        Ok(())
    }

    /// Shows what is committed to `look`: what the last transaction left is not read again.
    fn look(&mut self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        self.session.execute("BEGIN", [])?;
        // The answer belongs to the moment that the transaction sees from here on.
        let data_version = self.data_version()?;
        self.session.live = self.kept(data_version).map(|kept| Live::new(kept.counters, kept.known));
        look(&self.session).map_err(StoreError::from_view)?;
        self.session.execute("COMMIT", [])?;
        self.keep(data_version);
        Ok(())
    }

    /// Asks SQLite for the number that changes when others write.
    fn data_version(&self) -> Result<i64, StoreError> {
        let found = self.session.one(DATA_VERSION, [], |row| row.get(0)).map_err(StoreError::from_view)?;
        Ok(found.unwrap_or_default())
    }

    /// Takes out what is known, if nobody else has written since.
    fn kept(&mut self, data_version: i64) -> Option<Kept> {
        self.kept.take().filter(|kept| kept.data_version == data_version)
    }

    /// Keeps what the transaction knew, which has ended well.
    fn keep(&mut self, data_version: i64) {
        self.kept = self.session.live.take().map(|live| {
            let mut known = live.known.into_inner();
            known.trim();
            Kept { data_version, counters: live.counters.get(), known }
        });
    }

    /// Ends the transaction, if SQLite has not done so itself after an error, and gives the lock back.
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
    /// Empties a long write-ahead log: whoever opens the database next would have to read all of it.
    ///
    /// Commands that write little leave a short one, and so pay for this only now and then.
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
        // Readers are not waited for: what they still need stays.
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
            // What is committed is durable either way, and the next writer tries again.
            let _ = writer.shorten_log(&self.path);
        }
    }
}

impl Backend for SqliteBackend {
    /// The first transaction opens the database, which may take longer.
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
            // The connection is needed again.
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

/// Reads on connections of its own, so that it neither waits for the committer nor sees what is not committed.
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
    /// Returns a connection that is open, if the file is still the same.
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
        Ok(self.setup.medium(&self.path).warning(&self.path).into_iter().collect())
    }
}

/// Shows one snapshot. After an error there is still a transaction: it ends with the connection.
fn look_at(session: &Session, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
    session.execute("BEGIN", [])?;
    look(session).map_err(StoreError::from_view)?;
    session.execute("COMMIT", []).map(drop)
}

/// Without a write-ahead log, every so many looks are said to find something: a commit may leave the file with the length and
/// the time of the one before.
const LOOKS: u32 = 8;

/// Asks SQLite for the number that changes with every commit of another connection: about a microsecond. Where there is no
/// write-ahead log, the file itself tells.
struct DataVersion<'a> {
    reader: &'a SqliteReader,
    session: Option<Session>,
    last: Option<Seen>,
    looks: u32,
}

/// What changes with the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Version(Option<i64>),
    File(Option<(Identity, u64, Option<SystemTime>)>),
}

impl DataVersion<'_> {
    fn look(&mut self) -> Result<Seen, StoreError> {
        if self.session.is_none() {
            self.session = open::watching(&self.reader.path, self.reader.setup)?;
        }
        let Some(session) = &self.session else {
            let data = std::fs::metadata(&self.reader.path).ok();
            let file = data.map(|data| (files::identity_of(&data), data.len(), data.modified().ok()));
            return Ok(Seen::File(file));
        };
        let version = session.one(DATA_VERSION, [], |row| row.get(0));
        version.map(Seen::Version).map_err(StoreError::from_view)
    }
}

impl Watch for DataVersion<'_> {
    fn has_changed(&mut self) -> Result<bool, StoreError> {
        let now = self.look()?;
        self.looks = (self.looks + 1) % LOOKS;
        let may_hide = self.looks == 0 && matches!(now, Seen::File(Some(_)));
        Ok(self.last.replace(now) != Some(now) || may_hide)
    }
}
