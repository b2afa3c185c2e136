//! Runs whose calls leave this machine: flags, policy and configuration. Servers and workers are in `scripts/test-restate`.

use crate::harness::Cli;

/// An address at which nothing listens.
const NOWHERE: &str = "http://127.0.0.1:9";

#[test]
fn a_policy_keeps_calls_on_this_machine() {
    let cli = Cli::new();
    cli.file("plan.yaml", "tasks: [{id: a, milestone: true}]\n");
    cli.policy("[powers]\nengine = 'never'\n");
    let never = cli.run(&["run-all-ready", "plan.yaml", "--engine", "restate", "--restate-admin", NOWHERE]);
    assert_eq!(never.code, Some(7), "{never}");
    assert!(
        never.stderr.contains("refused to send calls to workers") && never.stderr.contains("forbids it"),
        "{never}"
    );
}

#[test]
fn an_engine_that_is_not_there_ends_with_4_and_changes_no_task() {
    let cli = Cli::new();
    cli.file("plan.yaml", "tasks: [{id: a, call: {log: {message: hello}}}]\n");
    let run = cli.run(&["run-all-ready", "plan.yaml", "--engine", "restate", "--restate-admin", NOWHERE]);
    assert_eq!(run.code, Some(4), "{run}");
    assert!(run.stderr.contains("failed to reach the Restate server"), "{run}");
    assert!(cli.run(&["list"]).ok().stdout.contains("todo"));
}

#[test]
fn values_of_variables_do_not_leave() {
    let cli = Cli::new();
    cli.file("plan.yaml", "tasks: [{id: a, milestone: true}]\n");
    let run = cli.run(&["run-all-ready", "plan.yaml", "--engine", "restate", "--env", "A=b"]);
    assert_eq!(run.code, Some(2), "{run}");
}
