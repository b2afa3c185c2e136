//! Minimum cost of persisting a run: writes the same rows per task into the same tables with bare rusqlite.
//!
//! Each task takes two updates of its body, node and call (started, ended), and as many events as in a run. The node of
//! a dependent is updated once per commit that affects it.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, params};

use crate::Failure;
use crate::measure::{Whose, measure};
use crate::sample::Sample;
use crate::shape::Shape;

/// Codes of statuses in the column `nodes.phase`, as the store writes them.
const IN_PROGRESS: i64 = 1;
const DONE: i64 = 5;

/// Column values that a run left for one task.
struct Texts {
    body: String,
    call: String,
    actor: String,
    run: Option<String>,
    events: Vec<(String, Option<String>)>,
}

/// Writes the rows of a run of `tasks` tasks to `store`, which contains them, with `batch` tasks per commit. The values
/// come from `finished`, in which similar tasks were run. Returns the cost.
pub(crate) fn run(
    store: &Path,
    finished: &Path,
    shape: Shape,
    tasks: usize,
    batch: usize,
) -> Result<Sample, Failure> {
    let texts = Texts::read(finished)?;
    let connection = open(store)?;
    let first: i64 = connection.query_row("SELECT key FROM tasks WHERE id = 't0'", [], |row| row.get(0))?;
    let dependents = dependents(shape, tasks);
    let order: Vec<usize> = (0..tasks).collect();
    let write = || -> Result<(), Failure> {
        for batch in order.chunks(batch) {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            write_batch(&connection, &texts, first, batch, &dependents)?;
            connection.execute_batch("COMMIT")?;
        }
        Ok(())
    };
    Ok(measure(Whose::Mine, write)?.1)
}

/// Opens a database with the settings of stores: every commit is durable, and the query planner does not replan
/// statements for bound values.
pub(crate) fn open(path: &Path) -> Result<Connection, Failure> {
    let connection = Connection::open(path)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")?;
    Ok(connection)
}

fn dependents(shape: Shape, tasks: usize) -> Vec<Vec<usize>> {
    let mut dependents = vec![Vec::new(); tasks];
    for (task, needs) in shape.needs(tasks).into_iter().enumerate() {
        for need in needs {
            dependents[need].push(task);
        }
    }
    dependents
}

fn write_batch(
    connection: &Connection,
    texts: &Texts,
    first: i64,
    batch: &[usize],
    dependents: &[Vec<usize>],
) -> Result<(), Failure> {
    let mut touched: BTreeMap<usize, i64> = BTreeMap::new();
    for task in batch {
        texts.write_task(connection, first + i64::try_from(*task)?)?;
        dependents[*task].iter().for_each(|dependent| *touched.entry(*dependent).or_default() += 1);
    }
    for (task, done) in touched {
        let sql = "UPDATE nodes SET dependencies_open = dependencies_open - ?2, dependencies_done = dependencies_done + ?2, \
                   gate_state = CASE dependencies_open WHEN ?2 THEN 1 ELSE gate_state END WHERE key = ?1";
        connection.prepare_cached(sql)?.execute(params![first + i64::try_from(task)?, done])?;
    }
    let sql = "UPDATE counters SET revision = (SELECT max(revision) FROM events), todo = todo - ?1, done = done + ?1";
    connection.prepare_cached(sql)?.execute([i64::try_from(batch.len())?])?;
    Ok(())
}

impl Texts {
    fn read(finished: &Path) -> Result<Self, Failure> {
        let connection = Connection::open(finished)?;
        let key: i64 =
            connection.query_row("SELECT key FROM tasks WHERE id = 't50'", [], |row| row.get(0))?;
        let text = |sql: &str| connection.query_row(sql, [key], |row| row.get::<_, String>(0));
        let (actor, run) = connection.query_row(
            "SELECT actor, run FROM events WHERE task = ?1 AND run IS NOT NULL LIMIT 1",
            [key],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let sql = "SELECT data, ready FROM events WHERE task = ?1 AND run IS NOT NULL ORDER BY revision";
        let events = connection
            .prepare(sql)?
            .query_map([key], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        Ok(Self {
            body: text("SELECT body FROM bodies WHERE key = ?1")?,
            call: text("SELECT body FROM calls WHERE slot = ?1 << 24")?,
            actor,
            run,
            events,
        })
    }

    fn write_task(&self, connection: &Connection, key: i64) -> Result<(), Failure> {
        for status in [IN_PROGRESS, DONE] {
            let sql =
                "UPDATE bodies SET version = version + 1, updated = updated + 1, body = ?2 WHERE key = ?1";
            connection.prepare_cached(sql)?.execute(params![key, self.body])?;
            let sql = "UPDATE nodes SET phase = ?2 WHERE key = ?1";
            connection.prepare_cached(sql)?.execute([key, status])?;
            let sql = "UPDATE calls SET body = ?2 WHERE slot = ?1 << 24";
            connection.prepare_cached(sql)?.execute(params![key, self.call])?;
        }
        let id = format!("t{key}");
        for (data, ready) in &self.events {
            let sql = "INSERT INTO events (at, actor, run, task, task_id, data, ready) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let values = params![1_700_000_000_000_000_i64, self.actor, self.run, key, id, data, ready];
            connection.prepare_cached(sql)?.execute(values)?;
        }
        Ok(())
    }
}
