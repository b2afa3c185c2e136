//! Single commands: their CPU must not grow with the store.

use std::path::Path;
use std::process::Command;

use taskpawl::model::{Plan, PlanTask, TaskSpec};
use taskpawl::{ApplyOptions, Taskpawl};

use crate::Failure;
use crate::measure::{Cost, cost_of, run_quietly, taskpawl};

/// How often each command is run: the kernel counts CPU in hundredths of a second.
const ROUNDS: usize = 200;

/// Prints the CPU of each command with few and with `many` tasks in the store.
pub(crate) fn compare(many: usize) -> Result<(), Failure> {
    println!("\n## CPU of single commands, {ROUNDS} of each\n");
    let nothing = each(&mut |_| Ok(Command::new("true")))?;
    let version = each(&mut |_| with_args(&["--version"]))?;
    let (floor, start) = (nothing.micros_each(ROUNDS), version.micros_each(ROUNDS));
    println!("`true` {floor:.0} µs, `taskpawl --version` {start:.0} µs: {:.2} of it\n", start / floor);
    println!("| command | 1,000 tasks | {many} tasks | ratio |");
    println!("| --- | --- | --- | --- |");
    let (small, large) = (store(1_000)?, store(many)?);
    for name in ["create", "ready", "show", "done"] {
        let few = run_rounds(small.path(), name)?;
        let lots = run_rounds(large.path(), name)?;
        println!(
            "| `{name}` | {:.2} ms | {:.2} ms | {:.2} |",
            few.micros_each(ROUNDS) / 1000.0,
            lots.micros_each(ROUNDS) / 1000.0,
            lots.ratio(few)
        );
    }
    Ok(())
}

fn each(command: &mut dyn FnMut(usize) -> Result<Command, Failure>) -> Result<Cost, Failure> {
    let ((), cost) = cost_of(|| {
        for round in 0..ROUNDS {
            run_quietly(&mut command(round)?, &[0])?;
        }
        Ok(())
    })?;
    Ok(cost)
}

fn with_args(args: &[&str]) -> Result<Command, Failure> {
    let mut command = Command::new(taskpawl()?);
    command.args(args);
    Ok(command)
}

fn run_rounds(directory: &Path, name: &str) -> Result<Cost, Failure> {
    each(&mut |round| {
        let id = format!("t{round}");
        let mut command = match name {
            "create" => with_args(&["create", "another task"])?,
            "ready" => with_args(&["ready"])?,
            "show" => with_args(&["show", &id])?,
            _ => with_args(&["done", &id])?,
        };
        command.env("TASKPAWL_STORE", directory.join("bench.db"));
        Ok(command)
    })
}

/// Makes a store of manual tasks in chains of ten.
fn store(tasks: usize) -> Result<tempfile::TempDir, Failure> {
    let directory = tempfile::tempdir()?;
    let plans = Taskpawl::open(&directory.path().join("bench.db").to_string_lossy())?;
    let chains = tasks / 10;
    let task = |position: usize| PlanTask {
        id: Some(format!("t{position}").into()),
        spec: TaskSpec { name: format!("task {position}"), ..TaskSpec::default() },
        needs: position.checked_sub(chains).into_iter().collect(),
        ..PlanTask::default()
    };
    let plan = Plan { version: 1, tasks: (0..tasks).map(task).collect(), ..Plan::default() };
    plans.apply(plan, "bench", ApplyOptions::default())?;
    Ok(directory)
}
