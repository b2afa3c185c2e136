//! In-process tasks without work with a durable store, compared with bare rusqlite that writes the same rows.

use crate::Failure;
use crate::context::Context;
use crate::group::{Goal, Group, Subject};
use crate::once::spawned;
use crate::rows::engine::{DASK, python};
use crate::sample::{Metric, Sample};
use crate::shape::Shape;
use crate::stores::{Applied, finished};
use crate::strace;

const TASKPAWL: &str = "taskpawl, SQLite";
const FEW: &str = "taskpawl, SQLite, 10,000 tasks";
const TRACED: &str = "taskpawl, SQLite, 10,000 tasks, traced";
const BATCHES: &str = "bare rusqlite, 64 tasks a commit";
const ONE_BY_ONE: &str = "bare rusqlite, one by one";

pub(crate) fn layered(context: &Context) -> Result<Group, Failure> {
    in_batches(context, Shape::Layered)
}

pub(crate) fn wide(context: &Context) -> Result<Group, Failure> {
    in_batches(context, Shape::Wide)
}

pub(crate) fn chain(context: &Context) -> Result<Group, Failure> {
    // Each task has its own sync, so that fewer tasks are enough.
    let tasks = context.many() / 50;
    let mut group = group(context, Shape::Chain, tasks)?;
    group.subjects.insert(1, bare(context, ONE_BY_ONE, Shape::Chain, tasks, 1)?);
    group.goals.insert(0, Goal::at_most(TASKPAWL, 2.0, ONE_BY_ONE));
    Ok(group)
}

fn in_batches(context: &Context, shape: Shape) -> Result<Group, Failure> {
    let tasks = context.many();
    let mut group = group(context, shape, tasks)?;
    group.subjects.insert(1, bare(context, BATCHES, shape, tasks, 64)?);
    group.subjects.insert(2, taskpawl(context, FEW, shape, 10_000)?);
    group.subjects.push(syncs(context, shape)?);
    drop(group.goals.splice(
        ..0,
        [
            Goal::at_most(TASKPAWL, 3.0, BATCHES),
            Goal::rate(TASKPAWL, 0.9, BATCHES),
            Goal::figure_at_most(TRACED, Metric::Syncs, 0.2),
            Goal::at_most(TASKPAWL, 1.3, FEW),
            Goal::figure_at_most(TASKPAWL, Metric::Memory, 1024.0),
        ],
    ));
    Ok(group)
}

fn group(context: &Context, shape: Shape, tasks: usize) -> Result<Group, Failure> {
    Ok(Group {
        title: format!("{tasks} tasks that do nothing, {}, durable", shape.name()),
        unit: "task".into(),
        subjects: vec![
            taskpawl(context, TASKPAWL, shape, tasks)?,
            python(context, DASK, "dask_peer.py", shape, 10_000),
        ],
        goals: vec![Goal::times_better(TASKPAWL, 3.0, DASK)],
        is_fixed: false,
    })
}

fn taskpawl(context: &Context, name: &str, shape: Shape, tasks: usize) -> Result<Subject, Failure> {
    let applied = Applied::make(context, shape, tasks)?;
    Ok(Subject::new(name, tasks, move || {
        let store = applied.copy("taskpawl.db")?;
        spawned(&["run", &store.to_string_lossy(), "64"])
    }))
}

fn bare(context: &Context, name: &str, shape: Shape, tasks: usize, batch: usize) -> Result<Subject, Failure> {
    let applied = Applied::make(context, shape, tasks)?;
    let finished = finished(context, shape)?;
    Ok(Subject::new(name, tasks, move || {
        let (store, finished) = (applied.copy("bare.db")?, finished.to_string_lossy());
        let (tasks, batch) = (tasks.to_string(), batch.to_string());
        spawned(&["bare-sqlite", &store.to_string_lossy(), &finished, shape.name(), &tasks, &batch])
    }))
}

/// Counts syncs in a run of its own, because tracing slows it down and would spoil the other figures.
fn syncs(context: &Context, shape: Shape) -> Result<Subject, Failure> {
    const TASKS: usize = 10_000;
    if !strace::is_there() {
        return Ok(Subject::missing(TRACED, "`strace` is not installed, or may not trace"));
    }
    let applied = Applied::make(context, shape, TASKS)?;
    let scratch = context.scratch().to_owned();
    Ok(Subject::new(TRACED, TASKS, move || {
        let store = applied.copy("traced.db")?;
        let syncs = strace::count(&scratch, strace::SYNCS, &["run", &store.to_string_lossy(), "64"])?;
        Ok(Sample::default().with(Metric::Syncs, syncs as f64))
    }))
}
