//! Programs: the cost that taskpawl adds to starting them, and other programs that run graphs of commands.

use std::fmt::Write as _;
use std::path::Path;

use crate::Failure;
use crate::context::Context;
use crate::floor::spawn::PROGRAM;
use crate::group::{Goal, Group, Subject};
use crate::measure::measure_command;
use crate::once::spawned;
use crate::product::Product;
use crate::rows::runners;
use crate::stores;

/// Number of programs.
pub(crate) const CALLS: usize = 2_000;

const OFF: &str = "taskpawl, sandbox off";
const ON: &str = "taskpawl, sandbox on";
const ONE: &str = "bare posix_spawn loop";
const FOUR: &str = "bare posix_spawn loops, 4 at once";

/// Whole commands: the plan is parsed, applied and run, durably.
pub(crate) fn programs(context: &Context) -> Result<Group, Failure> {
    let directory = context.scratch().join("spawn");
    std::fs::create_dir_all(&directory)?;
    std::fs::write(directory.join("plan.yaml"), plan(CALLS)?)?;
    let product = Product::find(context.scratch())?;
    let mut subjects = vec![
        bare(ONE, 1),
        bare(FOUR, 4),
        taskpawl(OFF, &product, &directory, "off"),
        taskpawl(ON, &product, &directory, "default"),
    ];
    let mut goals = vec![
        Goal::at_most(OFF, 1.15, ONE),
        Goal::at_most(ON, 1.4, ONE),
        Goal::rate(OFF, 0.9, FOUR),
        Goal::rate(ON, 0.9, FOUR),
    ];
    for peer in runners::all(context, &directory)? {
        goals.push(Goal::times_better(OFF, 1.0, &peer.name));
        goals.push(Goal::rate(OFF, 1.0, &peer.name));
        subjects.push(peer);
    }
    Ok(Group {
        title: format!("{CALLS} × `{PROGRAM}`, at most 4 at once"),
        unit: "program".into(),
        subjects,
        goals,
        is_fixed: false,
    })
}

/// The supervisor alone, for a small and a large process.
pub(crate) fn supervisor() -> Group {
    let mut subjects = vec![bare(ONE, 1)];
    let mut goals = Vec::new();
    for (parent, ballast) in [("a small process", "0"), ("one of 512 MiB", "512")] {
        for (sandbox, flag, limit) in [("off", "false", 1.15), ("on", "true", 1.4)] {
            let name = format!("supervisor of {parent}, sandbox {sandbox}");
            goals.push(Goal::at_most(&name, limit, ONE));
            subjects.push(Subject::new(name, CALLS, move || {
                spawned(&["supervised", &CALLS.to_string(), flag, ballast])
            }));
        }
    }
    let title = format!("{CALLS} × `{PROGRAM}`, one at a time, without engine and store");
    Group { title, unit: "program".into(), subjects, goals, is_fixed: false }
}

fn plan(tasks: usize) -> Result<String, Failure> {
    let mut text = "name: bench\ntasks:\n".to_owned();
    for task in 0..tasks {
        writeln!(text, "  - {{id: t{task}, run: [{PROGRAM}]}}")?;
    }
    Ok(text)
}

fn bare(name: &str, at_once: usize) -> Subject {
    Subject::new(name, CALLS, move || spawned(&["spawn", &CALLS.to_string(), &at_once.to_string()]))
}

fn taskpawl(name: &str, product: &Product, directory: &Path, sandbox: &'static str) -> Subject {
    let (product, directory) = (product.clone(), directory.to_owned());
    Subject::new(name, CALLS, move || {
        let store = directory.join("bench.db");
        stores::remove(&store)?;
        let mut args = vec!["run-all-ready", "--plan", "plan.yaml", "--jobs", "4"];
        if sandbox == "off" {
            args.extend(["--sandbox", "off"]);
        }
        measure_command(product.command(&store, &args).current_dir(&directory))
    })
}
