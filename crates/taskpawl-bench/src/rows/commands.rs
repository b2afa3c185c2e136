//! Single commands as processes. Their cost must not grow with the store.

use std::path::PathBuf;
use std::process::Command;

use crate::Failure;
use crate::context::Context;
use crate::floor::spawn::PROGRAM;
use crate::group::{Goal, Group, Subject};
use crate::measure::{Whose, measure, quiet};
use crate::once::spawned;
use crate::product::Product;
use crate::sample::{Metric, Sample};

/// Runs of each command per round.
const TIMES: usize = 20;

/// CPU time of a command, in microseconds: 5 ms.
const LIMIT: f64 = 5_000.0;

pub(crate) fn ready(context: &Context) -> Result<Group, Failure> {
    group(context, "ready", |_| vec!["ready".to_owned()])
}

pub(crate) fn show(context: &Context) -> Result<Group, Failure> {
    group(context, "show", |number| vec!["show".to_owned(), format!("t{number}")])
}

pub(crate) fn create(context: &Context) -> Result<Group, Failure> {
    group(context, "create", |number| vec!["create".to_owned(), format!("one more {number}")])
}

pub(crate) fn done(context: &Context) -> Result<Group, Failure> {
    group(context, "done", |number| vec!["done".to_owned(), format!("t{number}")])
}

pub(crate) fn claim(context: &Context) -> Result<Group, Failure> {
    group(context, "claim --next", |_| ["claim", "--next"].map(str::to_owned).to_vec())
}

/// Cost of starting the program without doing anything.
pub(crate) fn start(context: &Context) -> Result<Group, Failure> {
    const NOTHING: &str = PROGRAM;
    const VERSION: &str = "taskpawl --version";
    const STARTS: usize = 100;
    let product = Product::find(context.scratch())?;
    let directory = context.scratch().to_owned();
    let subjects = vec![
        Subject::new(NOTHING, STARTS, || times(STARTS, |_| Command::new(PROGRAM))),
        Subject::new(VERSION, STARTS, move || {
            times(STARTS, |_| product.command(&directory.join("none.db"), &["--version"]))
        }),
    ];
    let goals = vec![Goal::at_most(VERSION, 2.0, NOTHING)];
    Ok(Group { title: "Start".to_owned(), unit: "start".into(), subjects, goals, is_fixed: false })
}

fn group(context: &Context, name: &str, args: fn(usize) -> Vec<String>) -> Result<Group, Failure> {
    let product = Product::find(context.scratch())?;
    let few = format!("taskpawl {name}, 1,000 tasks");
    let many = format!("taskpawl {name}, {} tasks", context.many());
    let mut subjects = Vec::new();
    for (name, tasks) in [(&few, 1_000), (&many, context.many())] {
        subjects.push(command(name, &product, store(context, tasks, name)?, args));
    }
    let goals = vec![
        Goal::figure_at_most(&few, Metric::Cpu, LIMIT),
        Goal::figure_at_most(&many, Metric::Cpu, LIMIT),
        Goal::at_most(&many, 1.5, &few),
    ];
    Ok(Group {
        title: format!("`taskpawl {name}`"),
        unit: "command".into(),
        subjects,
        goals,
        is_fixed: false,
    })
}

/// Returns the subject for a command. Each round continues with the next task numbers, since a finished task cannot be
/// finished again.
fn command(name: &str, product: &Product, store: PathBuf, args: fn(usize) -> Vec<String>) -> Subject {
    let product = product.clone();
    let mut next = 0;
    Subject::new(name, TIMES, move || {
        let first = next;
        next += TIMES;
        times(TIMES, |time| {
            let args = args(first + time);
            product.command(&store, &args.iter().map(String::as_str).collect::<Vec<_>>())
        })
    })
}

fn times(times: usize, command: impl Fn(usize) -> Command) -> Result<Sample, Failure> {
    Ok(measure(Whose::Children, || (0..times).try_for_each(|time| quiet(&mut command(time))))?.1)
}

/// Creates a store of manual tasks in chains of ten, for one command.
fn store(context: &Context, tasks: usize, name: &str) -> Result<PathBuf, Failure> {
    let made = context.scratch().join(format!("manual-{tasks}.db"));
    if !made.exists() {
        spawned(&["manual", &made.to_string_lossy(), &tasks.to_string()])?;
        crate::stores::settle(&made)?;
    }
    let mine = context.scratch().join(format!("{}.db", file_name(name)));
    std::fs::copy(&made, &mine)?;
    Ok(mine)
}

fn file_name(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect()
}
