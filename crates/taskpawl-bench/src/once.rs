//! Measurements in a process of their own, so that none starts with memory that another one left behind.

use std::path::PathBuf;
use std::process::Command;

use clap::Subcommand;

use crate::floor::{append, bare_loop, insert, spawn, sqlite, update};
use crate::measure::{print, reported_by};
use crate::sample::Sample;
use crate::shape::Shape;
use crate::{Failure, engine, order, single, supervised};

/// A measurement that the process takes.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Once {
    /// taskpawl applies a graph of tasks that do nothing.
    Apply { store: String, shape: Shape, tasks: usize },
    /// taskpawl runs a graph of tasks that do nothing.
    Run {
        store: String,
        jobs: usize,
        /// The graph that is applied first; without it, what the store holds is run.
        #[arg(requires = "tasks")]
        shape: Option<Shape>,
        tasks: Option<usize>,
    },
    /// The bare loop runs a graph of tasks that do nothing.
    BareLoop {
        shape: Shape,
        tasks: usize,
        jobs: usize,
        workers: usize,
        /// How it finds out what is ready.
        #[arg(default_value = "counted")]
        ready: bare_loop::Ready,
    },
    /// Bare rusqlite writes what a run writes into a store.
    BareSqlite { store: PathBuf, finished: PathBuf, shape: Shape, tasks: usize, batch: usize },
    /// A loop starts programs.
    Spawn { calls: usize, at_once: usize },
    /// The supervisor starts programs.
    Supervised {
        calls: usize,
        #[arg(action = clap::ArgAction::Set)]
        is_sandboxed: bool,
        ballast_mib: usize,
    },
    /// taskpawl puts tasks into a store that people do.
    Manual { store: String, tasks: usize },
    /// taskpawl changes one task often.
    Updates { store: PathBuf, times: usize },
    /// Bare rusqlite writes what changes of one task write into a store.
    BareUpdates { store: PathBuf, times: usize },
    /// A file grows by pages.
    Append { path: PathBuf, times: usize },
    /// Bare rusqlite inserts the rows of a store.
    Insert { from: PathBuf, to: PathBuf },
    /// The graph of a run is built.
    Graph { shape: Shape, tasks: usize },
    /// The order of a run is found.
    Ranks {
        shape: Shape,
        tasks: usize,
        #[arg(action = clap::ArgAction::Set)]
        is_rehearsed: bool,
    },
}

/// Takes a measurement and prints it.
pub(crate) fn run(once: Once) -> Result<(), Failure> {
    let sample = match once {
        Once::Apply { store, shape, tasks } => engine::apply(&store, shape, tasks)?,
        Once::Run { store, jobs, shape, tasks } => engine::run(&store, shape.zip(tasks), jobs)?,
        Once::BareLoop { shape, tasks, jobs, workers, ready } => {
            bare_loop::run(shape, tasks, jobs, workers, ready)?
        }
        Once::BareSqlite { store, finished, shape, tasks, batch } => {
            sqlite::run(&store, &finished, shape, tasks, batch)?
        }
        Once::Spawn { calls, at_once } => spawn::run(calls, at_once)?,
        Once::Supervised { calls, is_sandboxed, ballast_mib } => {
            supervised::run(calls, is_sandboxed, ballast_mib)?
        }
        Once::Manual { store, tasks } => single::manual(&store, tasks)?,
        Once::Updates { store, times } => single::updates(&store, times)?,
        Once::BareUpdates { store, times } => update::run(&store, times)?,
        Once::Append { path, times } => append::run(&path, times)?,
        Once::Insert { from, to } => insert::run(&from, &to)?,
        Once::Graph { shape, tasks } => order::graph(shape, tasks)?,
        Once::Ranks { shape, tasks, is_rehearsed } => order::ranks(shape, tasks, is_rehearsed)?,
    };
    print(&sample)
}

/// Takes a measurement in a new process. `words` are its arguments on the command line.
pub(crate) fn spawned(words: &[&str]) -> Result<Sample, Failure> {
    reported_by(Command::new(std::env::current_exe()?).arg("once").args(words))
}
