//! Tests of several runs on one store, as processes: an exclusive resource has one holder.

use std::fmt::Write as _;
use std::process::{Child, Stdio};

use crate::harness::Cli;

/// A command that looks for other running tasks for a while, and creates `overlap` if it finds one.
const WORK: &str = "touch in.$TASKPAWL_TASK; n=0; while [ $n -lt 8 ]; do if [ $(ls in.* | wc -l) -gt 1 ]; then touch overlap; fi; n=$((n+1)); sleep 0.01; done; rm in.$TASKPAWL_TASK";

/// Runs two halves of a plan in two processes at once, and returns whether two tasks overlapped.
fn overlaps(limit: &str) -> bool {
    let cli = Cli::new().with_programs();
    let mut plan = "tasks:\n".to_owned();
    for number in 0..6 {
        let half = ["left", "right"][number % 2];
        let _ = writeln!(plan, "- {{id: t{number}, labels: {half}, {limit}run: '{WORK}'}}");
    }
    cli.file("plan.yaml", &plan);
    cli.run(&["apply", "plan.yaml"]).ok();
    let start = |half: &str| -> Child {
        let mut command = cli.command(&cli.path("work"), &["run-all-ready", "--only", half, "--jobs", "3"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let runs = ["label:left", "label:right"].map(start);
    for mut run in runs {
        assert_eq!(run.wait().unwrap().code(), Some(0));
    }
    assert_eq!(
        cli.run(&["list", "--status", "done", "--json"]).ok().json()["data"].as_array().unwrap().len(),
        6
    );
    cli.path("work/overlap").exists()
}

#[test]
fn two_processes_never_hold_a_lock_at_once() {
    assert!(overlaps(""), "the control: without a lock they are at work at the same time");
    assert!(!overlaps("resources: lock, "));
    assert!(!overlaps("writes: [out], "));
}
