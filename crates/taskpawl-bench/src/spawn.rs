//! Spawned `true`: what taskpawl adds to starting programs, against `xargs` and `ninja` on the same graph.

use std::fmt::Write as _;
use std::process::Command;

use crate::Failure;
use crate::measure::{Cost, cost_of, has, run_quietly, taskpawl};

/// Prints the cost of `tasks` programs, started by each.
pub(crate) fn compare(tasks: usize) -> Result<(), Failure> {
    println!("\n## {tasks} × `true`, 4 at once\n");
    println!("| by | CPU a task | beside the loop | wall, beside the loop |");
    println!("| --- | --- | --- | --- |");
    let floor = bare_loop(tasks)?;
    print("a bare loop of spawns, one at a time", floor, floor, tasks);
    print("xargs -P4", xargs(tasks)?, floor, tasks);
    if has("ninja") {
        print("ninja -j4", ninja(tasks)?, floor, tasks);
    } else {
        println!("| ninja -j4 | not installed | | |");
    }
    print("taskpawl, SQLite", with_taskpawl(tasks, "bench.db")?, floor, tasks);
    print("taskpawl, memory", with_taskpawl(tasks, ":memory:")?, floor, tasks);
    Ok(())
}

fn print(name: &str, cost: Cost, floor: Cost, tasks: usize) {
    let (each, ratio, wall) = (cost.micros_each(tasks), cost.ratio(floor), cost.wall_ratio(floor));
    println!("| {name} | {each:.0} µs | {ratio:.2} | {wall:.2} |");
}

fn bare_loop(tasks: usize) -> Result<Cost, Failure> {
    let ((), cost) = cost_of(|| {
        for _ in 0..tasks {
            Command::new("true").status()?;
        }
        Ok(())
    })?;
    Ok(cost)
}

fn xargs(tasks: usize) -> Result<Cost, Failure> {
    let directory = tempfile::tempdir()?;
    let list = directory.path().join("list");
    std::fs::write(&list, "x\n".repeat(tasks))?;
    let ((), cost) = cost_of(|| {
        let input = std::fs::File::open(&list)?;
        run_quietly(Command::new("xargs").args(["-P4", "-n1", "true"]).stdin(input), &[0])
    })?;
    Ok(cost)
}

fn ninja(tasks: usize) -> Result<Cost, Failure> {
    let directory = tempfile::tempdir()?;
    let mut text = "rule t\n  command = true\n".to_owned();
    for task in 0..tasks {
        writeln!(text, "build out{task}: t")?;
    }
    std::fs::write(directory.path().join("build.ninja"), text)?;
    let ((), cost) = cost_of(|| run_quietly(Command::new("ninja").arg("-j4").current_dir(&directory), &[0]))?;
    Ok(cost)
}

fn with_taskpawl(tasks: usize, store: &str) -> Result<Cost, Failure> {
    let directory = tempfile::tempdir()?;
    let mut text = "name: bench\ntasks:\n".to_owned();
    for task in 0..tasks {
        writeln!(text, "  - {{id: t{task}, run: [\"true\"]}}")?;
    }
    std::fs::write(directory.path().join("plan.yaml"), text)?;
    let program = taskpawl()?;
    let ((), cost) = cost_of(|| {
        let mut command = Command::new(program);
        command.args(["--store", store, "run-all-ready", "--plan", "plan.yaml", "--jobs", "4"]);
        run_quietly(command.current_dir(&directory), &[0])
    })?;
    Ok(cost)
}
