//! Minimum cost of a persistent change: writes the same rows into the same tables with bare rusqlite, one change per
//! commit.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::Failure;
use crate::floor::sqlite::open;
use crate::measure::{Whose, measure};
use crate::sample::Sample;

/// Column values that the last change of a task left.
struct Texts {
    revision: i64,
    actor: String,
    key: i64,
    id: String,
    data: String,
    image: String,
    spec: String,
    body: String,
}

/// Writes the rows of `times` changes of one task to `store`, with the values of the last change there. Returns the
/// cost.
pub(crate) fn run(store: &Path, times: usize) -> Result<Sample, Failure> {
    let connection = open(store)?;
    let texts = Texts::read(&connection)?;
    let mut revision = texts.revision;
    let mut change = || {
        revision += 1;
        texts.write(&connection, revision)
    };
    // The first change prepares the statements.
    change()?;
    Ok(measure(Whose::Mine, || (0..times).try_for_each(|_| change()))?.1)
}

impl Texts {
    fn read(connection: &Connection) -> Result<Self, Failure> {
        let sql = "SELECT revision, events.actor, task, task_id, data, image, spec, body \
                   FROM events JOIN undo USING (revision) JOIN tasks ON tasks.key = task JOIN bodies ON bodies.key = task \
                   ORDER BY revision DESC LIMIT 1";
        let texts = connection.query_row(sql, [], |row| {
            Ok(Self {
                revision: row.get(0)?,
                actor: row.get(1)?,
                key: row.get(2)?,
                id: row.get(3)?,
                data: row.get(4)?,
                image: row.get(5)?,
                spec: row.get(6)?,
                body: row.get(7)?,
            })
        });
        Ok(texts?)
    }

    fn write(&self, connection: &Connection, revision: i64) -> Result<(), Failure> {
        let Self { actor, key, id, data, image, spec, body, revision: _ } = self;
        let execute = |sql: &str, values: &[&dyn rusqlite::ToSql]| -> Result<(), Failure> {
            connection.prepare_cached(sql)?.execute(values)?;
            Ok(())
        };
        execute("BEGIN IMMEDIATE", &[])?;
        execute("UPDATE tasks SET spec = ?2 WHERE key = ?1", params![key, spec])?;
        let sql = "UPDATE bodies SET version = version + 1, updated = updated + 1, body = ?2 WHERE key = ?1";
        execute(sql, params![key, body])?;
        let sql =
            "INSERT INTO events (revision, at, actor, task, task_id, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        execute(sql, params![revision, 1_700_000_000_000_000_i64, actor, key, id, data])?;
        let sql = "INSERT INTO undo (revision, first, actor, image) VALUES (?1, ?1, ?2, ?3)";
        execute(sql, params![revision, actor, image])?;
        execute("UPDATE counters SET revision = ?1", params![revision])?;
        execute("COMMIT", &[])
    }
}
