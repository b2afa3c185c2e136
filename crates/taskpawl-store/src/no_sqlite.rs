//! The place of the SQLite store in programs that are built without it: every use is an error that says so.

use std::path::{Path, PathBuf};

use taskpawl_model::view::{Changes, View, ViewResult};

use crate::StoreError;
use crate::backend::{Backend, Reader, Watch};
use crate::backup::{BackupContent, BackupNote};
use crate::examine::diagnostic::Diagnostic;
use crate::text_change::{Check, TextChange};

/// Both sides of a store that cannot be opened.
#[derive(Debug, Clone)]
struct NoSqlite(PathBuf);

impl NoSqlite {
    fn error<T>(&self) -> Result<T, StoreError> {
        Err(StoreError::NoSqlite { path: self.0.clone() })
    }
}

pub(crate) fn open(path: &Path) -> (Box<dyn Backend>, Box<dyn Reader>) {
    let side = NoSqlite(path.to_owned());
    (Box::new(side.clone()), Box::new(side))
}

pub(crate) fn examine(path: &Path) -> Result<Vec<Diagnostic>, StoreError> {
    NoSqlite(path.to_owned()).error()
}

pub(crate) fn repair(path: &Path) -> Result<(), StoreError> {
    NoSqlite(path.to_owned()).error()
}

pub(crate) fn rewrite(path: &Path, _: Check<'_>, _: TextChange<'_>) -> Result<u64, StoreError> {
    NoSqlite(path.to_owned()).error()
}

pub(crate) fn rewrite_copy(path: &Path, _: TextChange<'_>) -> Result<u64, StoreError> {
    NoSqlite(path.to_owned()).error()
}

pub(crate) fn back_up(
    path: &Path,
    _: &Path,
    _: &mut dyn FnMut() -> BackupNote,
) -> Result<BackupContent, StoreError> {
    NoSqlite(path.to_owned()).error()
}

pub(crate) fn read_backup(path: &Path) -> Result<(BackupNote, BackupContent), StoreError> {
    NoSqlite(path.to_owned()).error()
}

pub(crate) fn restore(_: &Path, path: &Path, _: u64) -> Result<Option<PathBuf>, StoreError> {
    NoSqlite(path.to_owned()).error()
}

impl Backend for NoSqlite {
    fn begin(&mut self) -> Result<(), StoreError> {
        self.error()
    }

    fn view(&self) -> &dyn View {
        unreachable!("BUG: a transaction was begun")
    }

    fn apply(&mut self, _: Changes) -> Result<u64, StoreError> {
        self.error()
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.error()
    }

    fn rollback(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Reader for NoSqlite {
    fn read(&self, _: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        self.error()
    }

    fn watch(&self) -> Result<Box<dyn Watch + '_>, StoreError> {
        self.error()
    }
}
