//! Minimum cost of putting a plan into a database: inserts the rows of a store into the same tables with bare rusqlite.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::Failure;
use crate::floor::sqlite::open;
use crate::measure::{Whose, measure};
use crate::sample::Sample;

/// Rows of a table. They are read before the measurement starts.
struct Table {
    name: String,
    rows: Vec<Vec<Value>>,
}

/// Inserts all rows of the store `from` into a new database `to` in one transaction, and returns the cost.
pub(crate) fn run(from: &Path, to: &Path) -> Result<Sample, Failure> {
    let source = Connection::open(from)?;
    let tables = tables(&source)?;
    let target = open(to)?;
    // Tables come before their indexes.
    for sql in texts(&source, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type = 'index'")?
    {
        target.execute_batch(&sql)?;
    }
    let insert = || -> Result<(), Failure> {
        target.execute_batch("BEGIN IMMEDIATE")?;
        tables.iter().try_for_each(|table| table.insert(&target))?;
        Ok(target.execute_batch("COMMIT")?)
    };
    Ok(measure(Whose::Mine, insert)?.1)
}

fn tables(source: &Connection) -> Result<Vec<Table>, Failure> {
    let names =
        texts(source, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")?;
    names.into_iter().map(|name| Table::read(source, name)).collect()
}

fn texts(source: &Connection, sql: &str) -> Result<Vec<String>, Failure> {
    Ok(source.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

impl Table {
    fn read(source: &Connection, name: String) -> Result<Self, Failure> {
        let mut statement = source.prepare(&format!("SELECT * FROM {name}"))?;
        let columns = statement.column_count();
        let rows = statement
            .query_map([], |row| (0..columns).map(|column| row.get(column)).collect())?
            .collect::<Result<_, _>>()?;
        Ok(Self { name, rows })
    }

    fn insert(&self, target: &Connection) -> Result<(), Failure> {
        let Some(first) = self.rows.first() else { return Ok(()) };
        let marks = vec!["?"; first.len()].join(", ");
        let mut statement = target.prepare(&format!("INSERT INTO {} VALUES ({marks})", self.name))?;
        for row in &self.rows {
            statement.execute(params_from_iter(row))?;
        }
        Ok(())
    }
}
