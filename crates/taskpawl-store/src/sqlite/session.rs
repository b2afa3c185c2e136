//! One connection, with the cache and the counters of its transaction.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};
use taskpawl_model::task::Status;
use taskpawl_model::view::ViewResult;

use super::cache::TransactionCache;
use crate::StoreError;

/// Counters that each commit maintains, so that no query has to count rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) revision: u64,
    pub(super) next_key: u32,
    /// Number of tasks in each status, in the order of [`Status::ALL`].
    pub(super) tasks: [u64; 7],
}

impl Counters {
    pub(super) fn of(&mut self, status: Status) -> &mut u64 {
        &mut self.tasks[status as usize]
    }
}

/// The in-memory part of a transaction on the writing connection.
#[derive(Debug)]
pub(super) struct Live {
    /// The counters at the start of the transaction.
    pub(super) before: Counters,
    /// The current counters. They are written once, at the end of the transaction.
    pub(super) counters: Cell<Counters>,
    /// The cache. It saves most reads of a write, because the rules read everything before they change it.
    pub(super) known: RefCell<TransactionCache>,
    /// True if there are deleted tasks; `None` until the first query.
    pub(super) has_deleted: Cell<Option<bool>>,
}

impl Live {
    pub(super) fn new(counters: Counters, known: TransactionCache) -> Self {
        let has_deleted = Cell::new(None);
        Self { before: counters, counters: Cell::new(counters), known: RefCell::new(known), has_deleted }
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut Counters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }
}

/// A connection, to be used by one thread at a time.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    /// Present in a writing transaction, and in a read on the writing connection with a valid cache.
    pub(super) live: Option<Live>,
}

impl Session {
    pub(super) fn new(connection: Connection, path: &Path) -> Self {
        connection.set_prepared_statement_cache_capacity(128);
        Self { connection, path: path.to_owned(), live: None }
    }

    pub(super) fn statement(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql)
    }

    /// Converts an error of SQLite.
    pub(super) fn error(&self, error: rusqlite::Error) -> StoreError {
        StoreError::sql(&self.path, error)
    }

    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        self.statement(sql).and_then(|mut statement| statement.execute(params)).map_err(|e| self.error(e))
    }

    /// Returns the first row of a query, if there is one.
    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> ViewResult<Option<T>> {
        let found = self.statement(sql).and_then(|mut statement| statement.query_row(params, row).optional());
        Ok(found.map_err(|error| self.error(error))?)
    }

    /// Calls `each` with the rows of a query until it returns false.
    pub(super) fn until(
        &self,
        sql: &str,
        params: impl Params,
        mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<bool>,
    ) -> ViewResult<()> {
        let run = || {
            let mut statement = self.statement(sql)?;
            let mut rows = statement.query(params)?;
            while let Some(row) = rows.next()? {
                if !each(row)? {
                    break;
                }
            }
            Ok(())
        };
        Ok(run().map_err(|error| self.error(error))?)
    }

    /// Calls `each` with every row of a query.
    pub(super) fn each(
        &self,
        sql: &str,
        params: impl Params,
        mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> ViewResult<()> {
        self.until(sql, params, |row| each(row).map(|()| true))
    }

    /// Returns all rows of a query.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        row: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> ViewResult<Vec<T>> {
        let mut found = Vec::new();
        self.each(sql, params, |r| {
            found.push(row(r)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the counters as the transaction sees them.
    pub(super) fn counters(&self) -> ViewResult<Counters> {
        if let Some(live) = &self.live {
            return Ok(live.counters.get());
        }
        let found = self.one("SELECT * FROM counters", [], super::rows::counters)?;
        let lost = || StoreError::Corrupt {
            path: self.path.clone(),
            detail: "its counters are missing".to_owned(),
            has_log: true,
        };
        Ok(found.ok_or_else(lost)?)
    }
}
