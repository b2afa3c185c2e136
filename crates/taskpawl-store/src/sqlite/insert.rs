//! Bulk inserts with multi-row statements.

use rusqlite::{CachedStatement, ToSql};

use super::session::Session;
use crate::StoreError;

/// Rows per multi-row statement. The fixed cost of a statement is about a third of that of a short row, and
/// is shared by this many rows. A larger number gains little.
const AT_ONCE: usize = 16;

/// The single-row statements. `OR FAIL` avoids a statement journal for multi-row inserts. The price: after a
/// conflict the earlier rows of the statement remain, so the transaction must be rolled back.
pub(super) mod one {
    pub(crate) const TASK: &str = "INSERT OR FAIL INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?)";
    pub(crate) const BODY: &str = "INSERT OR FAIL INTO bodies VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    pub(crate) const NODE: &str =
        "INSERT OR FAIL INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    pub(crate) const CALL: &str = "INSERT OR FAIL INTO calls VALUES (?, ?, ?, ?, ?, ?, ?)";
    /// Replaces an existing call.
    pub(crate) const CALL_IN_PLACE: &str = "INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?)";
    pub(crate) const DEPENDENCY: &str = "INSERT OR IGNORE INTO dependencies VALUES (?, ?)";
    pub(crate) const LABEL: &str = "INSERT OR IGNORE INTO labels VALUES (?, ?)";
    pub(crate) const APPLIED: &str = "INSERT OR FAIL INTO applied VALUES (?, ?)";
    pub(crate) const EVENT: &str = "INSERT OR FAIL INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
}

impl Session {
    /// Inserts a row for each of `items`. `sql` is one of the statements in [`one`], and `bind` binds the
    /// values of an item. After an error the transaction must be rolled back.
    pub(super) fn insert<T>(
        &self,
        sql: &str,
        items: &[T],
        mut bind: impl FnMut(&T, &mut Values<'_, '_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (many, rest) = items.split_at(items.len() - items.len() % AT_ONCE);
        if !many.is_empty() {
            self.execute_by(&for_many(sql), many.chunks(AT_ONCE), &mut bind)?;
        }
        self.execute_each(sql, rest, bind)
    }

    /// Executes a statement for each of `items`. It is looked up in the cache once, because a lookup costs as
    /// much as a row.
    pub(super) fn execute_each<T>(
        &self,
        sql: &str,
        items: &[T],
        mut bind: impl FnMut(&T, &mut Values<'_, '_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        if items.is_empty() { Ok(()) } else { self.execute_by(sql, items.chunks(1), &mut bind) }
    }

    fn execute_by<'t, T: 't>(
        &self,
        sql: &str,
        groups: impl Iterator<Item = &'t [T]>,
        bind: &mut impl FnMut(&T, &mut Values<'_, '_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.statement(sql).map_err(|error| self.error(error))?;
        for group in groups {
            let mut values = Values { session: self, statement: &mut statement, given: 0 };
            group.iter().try_for_each(|item| bind(item, &mut values))?;
            values.execute()?;
        }
        Ok(())
    }
}

/// Extends a single-row statement to [`AT_ONCE`] rows.
fn for_many(one: &str) -> String {
    let row = one.rfind('(').map_or("", |at| &one[at..]);
    let mut sql = one.to_owned();
    for _ in 1..AT_ONCE {
        sql.push_str(", ");
        sql.push_str(row);
    }
    sql
}

/// Binds the values of a statement, row by row.
pub(super) struct Values<'v, 's> {
    session: &'s Session,
    statement: &'v mut CachedStatement<'s>,
    given: usize,
}

impl Values<'_, '_> {
    /// Binds the values of one row, one for each column.
    pub(super) fn give(&mut self, row: &[&dyn ToSql]) -> Result<(), StoreError> {
        for value in row {
            self.given += 1;
            let bound = self.statement.raw_bind_parameter(self.given, value);
            bound.map_err(|error| self.session.error(error))?;
        }
        Ok(())
    }

    fn execute(self) -> Result<(), StoreError> {
        assert_eq!(self.given, self.statement.parameter_count(), "BUG: a row has all its values");
        self.statement.raw_execute().map(drop).map_err(|error| self.session.error(error))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::{Connection, params};

    use super::{AT_ONCE, for_many, one};
    use crate::sqlite::session::Session;

    fn session() -> Session {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE applied (key INTEGER PRIMARY KEY, spec TEXT NOT NULL)")
            .unwrap();
        Session::new(connection, Path::new("tasks.db"))
    }

    #[test]
    fn all_rows_are_inserted_for_any_number_of_items() {
        for count in [0, 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE + 2] {
            let session = session();
            let rows: Vec<(i64, String)> =
                (0..).take(count).map(|key| (key, format!("text {key}"))).collect();
            let items: Vec<&(i64, String)> = rows.iter().collect();
            session
                .insert(one::APPLIED, &items, |(key, text), values| values.give(params![key, text]))
                .unwrap();
            let sql = "SELECT key, spec FROM applied ORDER BY key";
            assert_eq!(session.all(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap(), rows);
        }
    }

    #[test]
    fn a_conflicting_row_is_an_error_at_any_position() {
        for place in [0, 7, AT_ONCE - 1, AT_ONCE] {
            let session = session();
            let mut keys: Vec<u32> = (0..).take(AT_ONCE + 1).collect();
            keys[place] = 1000;
            session.execute("INSERT INTO applied VALUES (1000, '')", []).unwrap();
            let inserted =
                session.insert(one::APPLIED, &keys, |key, values| values.give(params![key, "new"]));
            assert!(format!("{inserted:?}").contains("UNIQUE"), "place {place}: {inserted:?}");
        }
    }

    #[test]
    fn multi_row_statements_have_parameters_for_every_row() {
        use one::{APPLIED, BODY, CALL, CALL_IN_PLACE, DEPENDENCY, EVENT, LABEL, NODE, TASK};
        for sql in [TASK, BODY, NODE, CALL, CALL_IN_PLACE, DEPENDENCY, LABEL, APPLIED, EVENT] {
            let (values, many) = (sql.matches('?').count(), for_many(sql));
            assert_eq!(many.matches('?').count(), AT_ONCE * values, "{many}");
            assert_eq!(many.matches('(').count(), AT_ONCE, "{many}");
        }
    }
}
