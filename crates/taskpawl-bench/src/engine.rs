//! In-process no-op tasks: what the engine and the store add to nothing at all.

use std::process::Command;
use std::sync::Arc;

use clap::ValueEnum;
use serde_json::{Value, json};
use taskpawl::model::{CallSpec, NewCall, Plan, PlanTask, TaskSpec};
use taskpawl::tools::{CallContext, Tool, ToolError, ToolSpec};
use taskpawl::{ApplyOptions, RunOptions, Taskpawl, async_trait};

use crate::Failure;
use crate::measure::{Cost, cost_of};

/// The shape of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// One after the other.
    Chain,
    /// All at once, then a join.
    Wide,
    /// 100 layers; each task needs three of the layer before.
    Layered,
}

/// Does nothing.
#[derive(Debug)]
struct Nothing(ToolSpec);

#[async_trait]
impl Tool for Nothing {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _cx: CallContext, _args: Value) -> Result<Value, ToolError> {
        Ok(Value::Null)
    }
}

/// Applies a plan of `tasks` no-ops and returns what running it cost.
pub(crate) fn run(store: &str, shape: Shape, tasks: usize, jobs: usize) -> Result<Cost, Failure> {
    let nothing = Nothing(ToolSpec::new("nothing", "Does nothing.", json!({"type": "object"})));
    let plans = Taskpawl::builder(store).tool(Arc::new(nothing)).open()?;
    plans.apply(plan(shape, tasks), "bench", ApplyOptions::default())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let options = RunOptions { jobs: Some(jobs), ..RunOptions::default() };
    let (summary, cost) = cost_of(|| Ok(runtime.block_on(plans.run_all_ready(options))?))?;
    if summary.exit == 0 { Ok(cost) } else { Err(format!("the run ended with {}", summary.exit).into()) }
}

fn plan(shape: Shape, tasks: usize) -> Plan {
    let width = match shape {
        Shape::Chain => 1,
        Shape::Wide => tasks.saturating_sub(1).max(1),
        Shape::Layered => tasks.div_ceil(100),
    };
    let needs = |position: usize| match shape {
        Shape::Chain => position.checked_sub(1).into_iter().collect(),
        Shape::Wide if position == width => (0..width).collect(),
        Shape::Wide => Vec::new(),
        Shape::Layered => layered_needs(position, width),
    };
    let tasks = (0..tasks).map(|position| task(position, needs(position))).collect();
    Plan { version: 1, tasks, ..Plan::default() }
}

fn layered_needs(position: usize, width: usize) -> Vec<usize> {
    let Some(layer) = (position / width).checked_sub(1) else { return Vec::new() };
    let mut needs: Vec<usize> =
        [1, 7, 31].iter().map(|step| layer * width + (position * step) % width).collect();
    needs.sort_unstable();
    needs.dedup();
    needs
}

fn task(position: usize, needs: Vec<usize>) -> PlanTask {
    let call = CallSpec { tool_name: "nothing".to_owned(), ..CallSpec::default() };
    PlanTask {
        id: Some(format!("t{position}").into()),
        spec: TaskSpec { name: format!("task {position}"), ..TaskSpec::default() },
        calls: vec![NewCall { id: None, spec: call }],
        needs,
        ..PlanTask::default()
    }
}

/// Prints the cost of each shape over both stores beside bare rusqlite.
pub(crate) fn compare(tasks: usize) -> Result<(), Failure> {
    println!("\n## {tasks} no-op tasks in one process\n");
    println!("| shape | store | jobs | CPU a task | syncs a task | beside bare SQLite in batches |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let floor = bare_sqlite(tasks, 64)?;
    println!(
        "| – | bare rusqlite: the rows of a task, 64 tasks a commit | – | {:.1} µs | – | 1.0 |",
        floor.micros_each(tasks)
    );
    for (shape, jobs) in [(Shape::Layered, 64), (Shape::Wide, 64), (Shape::Chain, 64)] {
        let memory = run(":memory:", shape, tasks, jobs)?;
        println!(
            "| {shape:?} | memory | {jobs} | {:.1} µs | 0 | {:.2} |",
            memory.micros_each(tasks),
            memory.ratio(floor)
        );
        let sqlite = in_sqlite(shape, tasks, jobs)?;
        let syncs = syncs_a_task(shape, tasks.min(10_000), jobs)?;
        println!(
            "| {shape:?} | SQLite | {jobs} | {:.1} µs | {syncs} | {:.2} |",
            sqlite.micros_each(tasks),
            sqlite.ratio(floor)
        );
    }
    Ok(())
}

fn in_sqlite(shape: Shape, tasks: usize, jobs: usize) -> Result<Cost, Failure> {
    let directory = tempfile::tempdir()?;
    run(&directory.path().join("bench.db").to_string_lossy(), shape, tasks, jobs)
}

/// Counts the syncs of a run from outside, with strace; the apply before it needs a few of its own.
fn syncs_a_task(shape: Shape, tasks: usize, jobs: usize) -> Result<String, Failure> {
    if !crate::measure::has("strace") {
        return Ok("strace is missing".to_owned());
    }
    let directory = tempfile::tempdir()?;
    let log = directory.path().join("strace.log");
    let shape = shape.to_possible_value().ok_or("a shape without a name")?;
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"]).arg(&log);
    command.arg(std::env::current_exe()?).arg("engine-once").arg(directory.path().join("bench.db"));
    command.args([shape.get_name(), &tasks.to_string(), &jobs.to_string()]);
    crate::measure::run_quietly(&mut command, &[0])?;
    let syncs = std::fs::read_to_string(log)?.lines().filter(|line| line.contains("sync(")).count();
    Ok(format!("{:.3}", syncs as f64 / tasks as f64))
}

/// The floor: what a run writes of each task, by bare rusqlite: two updates of the task and its call, four events.
fn bare_sqlite(tasks: usize, batch: usize) -> Result<Cost, Failure> {
    let directory = tempfile::tempdir()?;
    let connection = rusqlite::Connection::open(directory.path().join("bare.db"))?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE tasks (key INTEGER PRIMARY KEY, id TEXT UNIQUE, state INTEGER, gate INTEGER, body TEXT);
         CREATE TABLE calls (task INTEGER, position INTEGER, body TEXT, PRIMARY KEY (task, position)) WITHOUT ROWID;
         CREATE TABLE events (revision INTEGER PRIMARY KEY, task INTEGER, data TEXT);
         CREATE INDEX events_task ON events (task);
         CREATE INDEX ready ON tasks (key) WHERE state = 0 AND gate = 1;",
    )?;
    connection.execute_batch("BEGIN")?;
    for key in 0..i64::try_from(tasks)? {
        connection.prepare_cached("INSERT INTO tasks VALUES (?, ?, 0, 1, ?)")?.execute((
            key,
            format!("t{key}"),
            BODY,
        ))?;
        connection.prepare_cached("INSERT INTO calls VALUES (?, 0, ?)")?.execute((key, BODY))?;
    }
    connection.execute_batch("COMMIT")?;
    let ((), cost) = cost_of(|| {
        for first in (0..tasks).step_by(batch) {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            for key in first..(first + batch).min(tasks) {
                write_task(&connection, i64::try_from(key)?)?;
            }
            connection.execute_batch("COMMIT")?;
        }
        Ok(())
    })?;
    Ok(cost)
}

const BODY: &str = r#"{"state":{"status":"done"},"attempt":1,"startedAt":"2026-01-01T00:00:00Z","finishedAt":"2026-01-01T00:00:00Z"}"#;

fn write_task(connection: &rusqlite::Connection, key: i64) -> Result<(), Failure> {
    for state in [1, 3] {
        connection
            .prepare_cached("UPDATE tasks SET state = ?, body = ? WHERE key = ?")?
            .execute((state, BODY, key))?;
        connection
            .prepare_cached("UPDATE calls SET body = ? WHERE task = ? AND position = 0")?
            .execute((BODY, key))?;
        for _ in 0..2 {
            connection
                .prepare_cached("INSERT INTO events (task, data) VALUES (?, ?)")?
                .execute((key, BODY))?;
        }
    }
    Ok(())
}
