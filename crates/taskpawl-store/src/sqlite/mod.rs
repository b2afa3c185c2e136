//! The store in an SQLite database: the default.

mod find;
mod open;
mod rows;
mod schema;
mod session;
#[cfg(test)]
mod tests;
mod view;
mod write;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use taskpawl_model::{Changes, View, ViewResult};

use self::open::ReadOnly;
use self::session::{Live, Session};
use crate::StoreError;
use crate::committer::Backend;
use crate::files::{self, Identity, LockFile};
use crate::handle::{Reader, Watch};
use crate::memory::State;

/// A write-ahead log of more bytes is emptied when a writer closes: reading 128 frames costs about as much as starting a program.
const LONG_LOG: u64 = 128 * 4096;

/// More idle connections than this are closed.
const MAX_IDLE: usize = 4;

/// Returns both sides of the store at `path`. Nothing is touched before the first use.
pub(crate) fn open(path: &Path) -> (Box<dyn Backend>, Box<dyn Reader>) {
    let backend = SqliteBackend { path: path.to_owned(), writer: None };
    let reader = SqliteReader { path: path.to_owned(), idle: Mutex::default() };
    (Box::new(backend), Box::new(reader))
}

#[derive(Debug)]
struct SqliteBackend {
    path: PathBuf,
    writer: Option<Writer>,
}

#[derive(Debug)]
struct Writer {
    session: Session,
    lock: LockFile,
    identity: Option<Identity>,
    /// Whether every commit succeeded; after a failed sync nothing more is written, not even a checkpoint.
    is_sound: bool,
}

impl SqliteBackend {
    fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().expect("BUG: a transaction was begun")
    }

    /// Takes the lock, and opens the database the first time.
    fn lock(&mut self) -> Result<(), StoreError> {
        if let Some(writer) = &self.writer {
            return writer.lock.lock();
        }
        files::make_directory(files::directory_of(&self.path))?;
        let lock = LockFile::open(&self.path)?;
        lock.lock()?;
        let session = open::writing(&self.path)?;
        let identity = files::identity(&self.path)?;
        self.writer = Some(Writer { session, lock, identity, is_sound: true });
        Ok(())
    }
}

impl Writer {
    fn begin(&mut self, path: &Path) -> Result<(), StoreError> {
        if files::identity(path)? != self.identity {
            return Err(StoreError::Replaced { path: path.to_owned() });
        }
        self.session.execute("BEGIN IMMEDIATE", [])?;
        let counters = self.session.counters().map_err(StoreError::from_view)?;
        self.session.live = Some(Live::new(counters));
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.session.put_counters()?;
        self.session.execute("COMMIT", [])?;
        self.session.live = None;
        Ok(())
    }

    /// Ends the transaction, if SQLite has not done so itself after an error, and gives the lock back.
    fn rollback(&mut self) -> Result<(), StoreError> {
        self.session.live = None;
        let result = if self.session.connection.is_autocommit() {
            Ok(())
        } else {
            self.session.execute("ROLLBACK", []).map(drop)
        };
        self.lock.unlock();
        result
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
        if files::identity(path)? != self.identity {
            return Err(StoreError::Replaced { path: path.to_owned() });
        }
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

    fn view(&self) -> &dyn View {
        &self.writer.as_ref().expect("BUG: a transaction was begun").session
    }

    fn apply(&mut self, changes: &Changes) -> Result<u64, StoreError> {
        self.writer().session.apply(changes)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let writer = self.writer();
        match writer.commit() {
            Ok(()) => {
                writer.lock.unlock();
                Ok(())
            }
            Err(error) => {
                writer.is_sound = false;
                writer.rollback()?;
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
        match open::read_only(&self.path)? {
            ReadOnly::Absent => look(&State::default()).map_err(StoreError::from_view),
            ReadOnly::Frozen(session, _lock) => look_at(&session, look),
            ReadOnly::Shared(session) => self.look_and_keep(Idle { session, identity }, look),
        }
    }

    fn watch(&self) -> Result<Box<dyn Watch + '_>, StoreError> {
        Ok(Box::new(DataVersion { reader: self, session: None, last: None }))
    }
}

/// Shows one snapshot. After an error the connection is closed, which ends the transaction.
fn look_at(session: &Session, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
    session.execute("BEGIN", [])?;
    look(session).map_err(StoreError::from_view)?;
    session.execute("COMMIT", []).map(drop)
}

/// Asks SQLite for the number that changes with every commit of another connection: about a microsecond.
struct DataVersion<'a> {
    reader: &'a SqliteReader,
    session: Option<Session>,
    last: Option<i64>,
}

impl Watch for DataVersion<'_> {
    fn has_changed(&mut self) -> Result<bool, StoreError> {
        if self.session.is_none()
            && let ReadOnly::Shared(session) = open::read_only(&self.reader.path)?
        {
            self.session = Some(session);
            return Ok(true);
        }
        let Some(session) = &self.session else { return Ok(self.last.replace(0).is_none()) };
        let version =
            session.one("PRAGMA data_version", [], |row| row.get(0)).map_err(StoreError::from_view)?;
        Ok(std::mem::replace(&mut self.last, version) != version)
    }
}
