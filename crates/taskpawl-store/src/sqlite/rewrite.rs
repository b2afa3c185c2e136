//! Rewrites all texts of a database, and leaves no old bytes in its files.

use std::path::Path;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, Row, params_from_iter};

use super::examine;
use super::open::{self, Setup};
use super::session::Session;
use crate::StoreError;
use crate::examine::diagnostic::Severity;
use crate::files::{self, LockFile};
use crate::text_change::{Check, TextChange, spoilt};

/// Rewrites the texts of the store at `path`, and returns the number of changed ones.
pub(crate) fn rewrite(path: &Path, check: Check<'_>, change: TextChange<'_>) -> Result<u64, StoreError> {
    if files::length(path)? == 0 {
        return Ok(0);
    }
    let lock = LockFile::open(path)?;
    lock.lock()?;
    let session = open::writing(path, Setup::REAL)?;
    let done = in_transaction(&session, |session| {
        check(session)?;
        let texts = all_tables(&session.connection, change).map_err(|error| session.error(error))?;
        // A value that is a word of the format, such as a name of a field, cannot be replaced.
        let found = examine::all(session).map_err(StoreError::from_view)?;
        match found.into_iter().find(|diagnostic| diagnostic.severity == Severity::Damage) {
            Some(damage) => Err(spoilt(path, &damage.message)),
            None => Ok(texts),
        }
    });
    let done = done
        .and_then(|texts| shrink(&session.connection).map(|()| texts).map_err(|error| session.error(error)));
    lock.unlock();
    done
}

/// Rewrites the texts of a copy of a store, of any version.
pub(crate) fn rewrite_copy(path: &Path, change: TextChange<'_>) -> Result<u64, StoreError> {
    let open = || {
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
    };
    let session = Session::new(open().map_err(|error| StoreError::sql(path, error))?, path);
    let rewrite =
        |session: &Session| all_tables(&session.connection, change).map_err(|error| session.error(error));
    let texts = in_transaction(&session, rewrite)?;
    shrink(&session.connection).map_err(|error| session.error(error))?;
    Ok(texts)
}

fn in_transaction<T>(
    session: &Session,
    work: impl FnOnce(&Session) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    // Freed pages and freed parts of pages are overwritten.
    pragma(&session.connection, "secure_delete = ON").map_err(|error| session.error(error))?;
    session.execute("BEGIN IMMEDIATE", [])?;
    let done = work(session);
    session.execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }, [])?;
    done
}

/// Rewrites the database without unused space, and empties the write-ahead log, which has the old pages.
fn shrink(connection: &Connection) -> rusqlite::Result<()> {
    empty_log(connection)?;
    connection.execute_batch("VACUUM")?;
    empty_log(connection)
}

fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if !is_busy {
        return Ok(());
    }
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    Err(rusqlite::Error::SqliteFailure(code, Some("another process reads an older state".to_owned())))
}

fn pragma(connection: &Connection, pragma: &str) -> rusqlite::Result<()> {
    connection.query_row(&format!("PRAGMA {pragma}"), [], |_| Ok(()))
}

/// Rewrites every table, whatever its schema version.
fn all_tables(connection: &Connection, change: TextChange<'_>) -> rusqlite::Result<u64> {
    let mut names = connection.prepare(
        "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let tables = names.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let tables = tables.collect::<rusqlite::Result<Vec<(String, bool)>>>()?;
    let mut texts = 0;
    for (name, is_without_rowid) in tables {
        texts += Table::read(connection, &name, is_without_rowid)?.rewrite(connection, change)?;
    }
    Ok(texts)
}

/// A table with the columns that identify its rows.
struct Table {
    name: String,
    columns: Vec<String>,
    keys: Vec<String>,
}

impl Table {
    fn read(connection: &Connection, name: &str, is_without_rowid: bool) -> rusqlite::Result<Self> {
        let mut info = connection.prepare("SELECT name, pk FROM pragma_table_info(?)")?;
        let found = info.query_map([name], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let found = found.collect::<rusqlite::Result<Vec<(String, i64)>>>()?;
        let keys = found.iter().filter(|(_, key)| *key > 0).map(|(name, _)| quoted(name)).collect();
        let keys = if is_without_rowid { keys } else { vec!["rowid".to_owned()] };
        Ok(Self { columns: found.iter().map(|(name, _)| quoted(name)).collect(), name: quoted(name), keys })
    }

    fn rewrite(&self, connection: &Connection, change: TextChange<'_>) -> rusqlite::Result<u64> {
        let (keys, columns) = (self.keys.join(", "), self.columns.join(", "));
        let list = format!("SELECT {columns}, {keys} FROM {}", self.name);
        let mut found: Vec<Vec<Value>> = Vec::new();
        let mut statement = connection.prepare(&list)?;
        let mut rows = statement.query([])?;
        // Collected first, because rows must not change while a statement reads them.
        while let Some(row) = rows.next()? {
            if (0..self.columns.len()).any(|at| text_of(row, at).is_some_and(|text| change(text).is_some())) {
                let first = self.columns.len();
                found.push(
                    (first..first + self.keys.len())
                        .map(|at| row.get(at))
                        .collect::<rusqlite::Result<_>>()?,
                );
            }
        }
        found.iter().map(|key| self.rewrite_row(connection, key, change)).sum()
    }

    fn rewrite_row(
        &self,
        connection: &Connection,
        key: &[Value],
        change: TextChange<'_>,
    ) -> rusqlite::Result<u64> {
        let is_key = self.keys.iter().map(|key| format!("{key} = ?")).collect::<Vec<_>>().join(" AND ");
        let (name, columns) = (&self.name, self.columns.join(", "));
        let read = format!("SELECT {columns} FROM {name} WHERE {is_key}");
        let changed = connection.query_row(&read, params_from_iter(key), |row| {
            let changed = (0..self.columns.len()).filter_map(|at| Some((at, change(text_of(row, at)?)?)));
            Ok(changed.collect::<Vec<_>>())
        })?;
        let set = changed.iter().map(|(at, _)| format!("{} = ?", self.columns[*at])).collect::<Vec<_>>();
        let values = changed.iter().map(|(_, text)| Value::Text(text.clone())).chain(key.iter().cloned());
        let write = format!("UPDATE {name} SET {} WHERE {is_key}", set.join(", "));
        connection.execute(&write, params_from_iter(values))?;
        Ok(changed.len() as u64)
    }
}

fn text_of<'r>(row: &'r Row<'_>, at: usize) -> Option<&'r str> {
    match row.get_ref(at) {
        Ok(ValueRef::Text(text)) => std::str::from_utf8(text).ok(),
        Ok(ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_)) | Err(_) => None,
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
