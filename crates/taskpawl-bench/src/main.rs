//! Benchmarks: what a task costs, beside the floor that it is compared with and a peer, in one run.
//!
//! `cargo run --release -p taskpawl-bench -- all` prints one table. Figures are CPU time (user and system, of the process and of
//! its ended children) and ratios: wall time on a shared machine says little.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]
#![expect(
    clippy::cast_precision_loss,
    reason = "counts of a benchmark are far below what an `f64` holds exactly"
)]

mod commands;
mod engine;
mod measure;
mod order;
mod sandbox;
mod spawn;

use clap::{Parser, Subcommand};

/// What can go wrong: anything outside the program, or a figure that cannot be taken.
type Failure = Box<dyn std::error::Error>;

#[derive(Parser)]
#[command(about = "Measures what a task costs, beside the floor and a peer")]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Everything below.
    All,
    /// In-process no-op tasks over a store in memory and over SQLite.
    Engine {
        /// How many tasks.
        #[arg(long, default_value_t = 100_000)]
        tasks: usize,
    },
    /// Spawned `true`: against `xargs` and `ninja` on the same graph.
    Spawn {
        /// How many tasks.
        #[arg(long, default_value_t = 2_000)]
        tasks: usize,
    },
    /// Spawned `true` in the sandbox and without it, by the supervisor alone: against a bare `posix_spawn`, also from a process of 512 MiB.
    Sandbox {
        /// How many programs in each round.
        #[arg(long, default_value_t = 2_000)]
        calls: usize,
        /// How many rounds.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// CPU of single commands with 1,000 and 100,000 tasks in the store.
    Commands {
        /// How many tasks are many.
        #[arg(long, default_value_t = 100_000)]
        tasks: usize,
    },
    /// The order of a run, found at its start.
    Order {
        /// How many tasks are many.
        #[arg(long, default_value_t = 100_000)]
        tasks: usize,
    },
    /// One engine run in this process, for counting its system calls from outside.
    #[command(hide = true)]
    EngineOnce {
        /// The store.
        store: String,
        /// The shape of the graph.
        shape: engine::Shape,
        /// How many tasks.
        tasks: usize,
        /// How many calls at once.
        jobs: usize,
    },
}

fn main() -> Result<(), Failure> {
    // The programs that are measured are started by this one, executed a second time.
    taskpawl::child_entry();
    match Args::parse().what {
        What::All => {
            engine::compare(100_000)?;
            spawn::compare(2_000)?;
            order::compare(100_000)?;
            sandbox::compare(2_000, 5)?;
            commands::compare(100_000)
        }
        What::Engine { tasks } => engine::compare(tasks),
        What::Spawn { tasks } => spawn::compare(tasks),
        What::Sandbox { calls, rounds } => sandbox::compare(calls, rounds),
        What::Commands { tasks } => commands::compare(tasks),
        What::Order { tasks } => order::compare(tasks),
        What::EngineOnce { store, shape, tasks, jobs } => {
            let cost = engine::run(&store, shape, tasks, jobs)?;
            println!("{}", cost.micros());
            Ok(())
        }
    }
}
