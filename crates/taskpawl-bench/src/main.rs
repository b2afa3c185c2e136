//! Benchmarks: the cost of a task, compared with the minimum for the same work and with other programs, in one run.
//!
//! `scripts/bench` installs the other programs, runs everything and writes `docs/benchmarks`. CPU time (user and
//! system) and ratios come first, because wall time on a shared machine is unreliable.
#![expect(
    clippy::cast_precision_loss,
    reason = "counts of a benchmark are far below what an `f64` holds exactly"
)]

mod context;
mod engine;
mod floor;
mod group;
mod machine;
mod measure;
mod once;
mod order;
mod peers;
mod plot;
mod product;
mod report;
mod rows;
mod sample;
mod shape;
mod single;
mod stores;
mod strace;
mod supervised;
mod table;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::context::Context;
use crate::report::{Report, Taken};
use crate::rows::ROWS;

/// Any error that ends the program.
type Failure = Box<dyn std::error::Error>;

#[derive(Parser)]
#[command(about = "Measures what a task costs, beside the least that it takes and beside other programs")]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Takes all measurements, or those named, and prints the table.
    All(All),
    /// Prints the names of the measurements.
    List,
    /// Takes one measurement in this process: what `all` starts.
    #[command(hide = true)]
    Once {
        #[command(subcommand)]
        once: once::Once,
    },
}

#[derive(clap::Args)]
struct All {
    /// Only the measurements whose names begin with this; may be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// A million tasks instead of 100,000: three quarters of an hour.
    #[arg(long)]
    full: bool,
    /// How many rounds, in which all subjects of a measurement take turns.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Where the other programs are.
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    peers: PathBuf,
    /// Writes `docs/benchmarks` beneath this directory. With `--only`, what was written there of other
    /// measurements stays, and the table says which are of another run.
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Where stores are put while they are measured: a directory on the disk that is to be measured.
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
}

fn main() -> Result<(), Failure> {
    // The supervisor of the measured programs is this program, executed a second time.
    taskpawl::child_entry();
    match Args::parse().what {
        What::All(all) => run(&all),
        What::List => {
            say(&ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join("\n"));
            Ok(())
        }
        What::Once { once } => once::run(once),
    }
}

fn run(all: &All) -> Result<(), Failure> {
    let context = Context::new(all.peers.clone(), all.scratch.as_deref(), all.full)?;
    let begins_so = |only: &String| ROWS.iter().any(|row| row.name.starts_with(only));
    if let Some(only) = all.only.iter().find(|only| !begins_so(only)) {
        return Err(format!("no measurement has a name that begins with `{only}`: `list` prints them").into());
    }
    let is_wanted = |name: &str| all.only.is_empty() || all.only.iter().any(|only| name.starts_with(only));
    let facts = machine::facts(&context);
    let mut written = match &all.write {
        Some(root) if !all.only.is_empty() => report::written(root)?,
        Some(_) | None => BTreeMap::new(),
    };
    let mut groups = Vec::new();
    for row in ROWS {
        if !is_wanted(row.name) {
            groups.extend(written.remove(row.name).map(|taken| (row.name, taken)));
            continue;
        }
        let mut group = (row.group)(&context)?;
        group.take(all.rounds)?;
        say(&table::subjects(&group));
        groups.push((row.name, Taken { group, machine: facts.clone(), rounds: all.rounds }));
    }
    let report = Report { groups };
    say(&report.goals());
    all.write.as_ref().map_or(Ok(()), |root| report.write(root))
}

#[expect(clippy::print_stdout, reason = "printing tables is the purpose of this program")]
fn say(text: &str) {
    println!("{text}");
}
