//! The store alone: single changes, a large plan, and their memory.

use crate::Failure;
use crate::context::Context;
use crate::group::{Goal, Group, Subject};
use crate::once::spawned;
use crate::sample::{Metric, Sample};
use crate::shape::Shape;
use crate::stores::{Applied, remove};
use crate::strace;

/// Single durable changes, starting with a new store. The first 142 changes extend the log, as every append of the
/// floor does; after a checkpoint the log is overwritten.
pub(crate) fn updates(context: &Context, times: usize) -> Result<Group, Failure> {
    const UPDATE: &str = "taskpawl, one update";
    const BARE: &str = "bare rusqlite, the same rows";
    const TRACED: &str = "taskpawl, one update, traced";
    const APPEND: &str = "raw append of 4 KiB and fdatasync";
    let applied = Applied::make(context, Shape::Chain, 1_000)?;
    let (of_append, of_trace) = (context.scratch().join("append"), context.scratch().to_owned());
    let (first, second, third) = (applied.clone(), applied.clone(), applied);
    let mut subjects = vec![
        Subject::new(UPDATE, times, move || {
            let store = first.copy("update.db")?;
            spawned(&["updates", &store.to_string_lossy(), &times.to_string()])
        }),
        Subject::new(BARE, times, move || {
            let store = second.copy("bare.db")?;
            // Creates the change whose values the floor copies.
            spawned(&["updates", &store.to_string_lossy(), "1"])?;
            spawned(&["bare-updates", &store.to_string_lossy(), &times.to_string()])
        }),
        Subject::new(APPEND, times, move || {
            spawned(&["append", &of_append.to_string_lossy(), &times.to_string()])
        }),
    ];
    subjects.push(if strace::is_there() {
        Subject::new(TRACED, times, move || {
            // The difference of two runs excludes the syncs for opening the store.
            let syncs = |times: usize| -> Result<usize, Failure> {
                let store = third.copy("traced.db")?;
                strace::count(
                    &of_trace,
                    strace::SYNCS,
                    &["updates", &store.to_string_lossy(), &times.to_string()],
                )
            };
            let (twice, once) = (syncs(2 * times)?, syncs(times)?);
            Ok(Sample::default().with(Metric::Syncs, twice as f64 - once as f64))
        })
    } else {
        Subject::missing(TRACED, "`strace` is not installed, or may not trace")
    });
    let goals = vec![
        Goal::at_most(UPDATE, 1.3, APPEND).in_metric(Metric::Wall),
        Goal::figure_at_most(TRACED, Metric::Syncs, 1.0),
    ];
    Ok(Group {
        title: format!("One durable change, the first {times} of a store"),
        unit: "change".into(),
        subjects,
        goals,
        is_fixed: false,
    })
}

/// Applies a plan of 100,000 tasks.
pub(crate) fn apply(context: &Context) -> Result<Group, Failure> {
    const TASKS: usize = 100_000;
    const APPLY: &str = "taskpawl apply";
    const INSERT: &str = "bare rusqlite inserts the same rows";
    let applied = Applied::make(context, Shape::Layered, TASKS)?;
    let (mine, theirs) = (context.scratch().join("apply.db"), context.scratch().join("insert.db"));
    let subjects = vec![
        Subject::new(APPLY, TASKS, move || {
            remove(&mine)?;
            spawned(&["apply", &mine.to_string_lossy(), Shape::Layered.name(), &TASKS.to_string()])
        }),
        Subject::new(INSERT, TASKS, move || {
            remove(&theirs)?;
            spawned(&["insert", &applied.path().to_string_lossy(), &theirs.to_string_lossy()])
        }),
    ];
    let goals = vec![Goal::at_most(APPLY, 1.5, INSERT)];
    let title = format!("A plan of {TASKS} tasks is applied");
    Ok(Group { title, unit: "task".into(), subjects, goals, is_fixed: false })
}

/// The graph alone, in memory.
pub(crate) fn graph(context: &Context) -> Group {
    const GRAPH: &str = "the graph of a run";
    let tasks = context.many();
    let subject = Subject::new(GRAPH, tasks, move || spawned(&["graph", "layered", &tasks.to_string()]));
    let goals = vec![Goal::figure_at_most(GRAPH, Metric::Memory, 150.0)];
    Group {
        title: format!("Memory, {tasks} tasks, layered"),
        unit: "task".into(),
        subjects: vec![subject],
        goals,
        is_fixed: false,
    }
}

/// The order that a run computes at its start.
pub(crate) fn order(context: &Context) -> Group {
    let tasks = context.many();
    let subject = |name: &str, flag: &'static str| {
        Subject::new(name, tasks, move || spawned(&["ranks", "layered", &tasks.to_string(), flag]))
    };
    Group {
        title: format!("The order of a run, found at its start, {tasks} tasks, layered"),
        unit: "task".into(),
        subjects: vec![subject("longest ways", "false"), subject("with rehearsals", "true")],
        goals: Vec::new(),
        is_fixed: false,
    }
}

/// A join of many tasks must not cost more than a chain of as many.
pub(crate) fn join() -> Group {
    const TASKS: usize = 100_000;
    const JOIN: &str = "taskpawl, all into one";
    const CHAIN: &str = "taskpawl, one after the other";
    let subject = |name: &str, shape: Shape| {
        Subject::new(name, TASKS, move || {
            spawned(&["run", ":memory:", "64", shape.name(), &TASKS.to_string()])
        })
    };
    let subjects = vec![subject(JOIN, Shape::Wide), subject(CHAIN, Shape::Chain)];
    let goals = vec![Goal::at_most(JOIN, 1.0, CHAIN)];
    let title = format!("A join of {TASKS} tasks");
    Group { title, unit: "task".into(), subjects, goals, is_fixed: false }
}
