//! What is seen of a run that was killed, and what commands do about its tasks.

use std::process::{Child, Stdio};

use crate::harness::Cli;

const PLAN: &str = "
tasks:
  - {id: work, run: 'echo hello; sleep 600; true'}
  - {id: wait, call: {sleep: {duration: 600s}}}
  - {id: more, run: 'echo beside; sleep 600; true'}
";

/// Starts a run of the plan, kills it when its programs have printed something, and waits until that is seen.
fn killed() -> Cli {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", PLAN);
    cli.run(&["apply", "plan.yaml"]).ok();
    let mut run = start(&cli);
    let until = |args: &[&str], text: &str| {
        while !cli.run(args).ok().stdout.contains(text) {
            std::thread::yield_now();
        }
    };
    until(&["logs", "work", "--raw"], "hello");
    until(&["logs", "more", "--raw"], "beside");
    until(&["show", "wait"], "running");
    run.kill().unwrap();
    run.wait().unwrap();
    // Its supervisor lives until the programs are gone.
    until(&["show", "work", "--json"], "\"claimEnded\":\"killed\"");
    cli.number_anew();
    cli
}

fn start(cli: &Cli) -> Child {
    let mut command = cli.command(&cli.path("work"), &["run-all-ready", "--jobs", "3"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

#[test]
fn reads_tell_of_a_killed_run_and_commands_take_its_tasks_back() {
    let cli = killed();
    insta::assert_snapshot!(cli.session(&[
        &["list"],
        &["show", "work"],
        &["runs"],
        &["logs", "work"],
        &["logs", "work", "-f"],
        &["done", "work", "--note", "I looked: it was over"],
        &["list"],
        &["block", "wait", "--reason", "later"],
        &["runs", "--json", "--fields", "id,state,recoveredAt,exit"],
    ]));
}

#[test]
fn the_next_run_takes_everything_back_and_closes_the_record() {
    let cli = killed();
    cli.run(&["block", "wait", "--reason", "later"]).ok();
    insta::assert_snapshot!(cli.session(&[
        &["run-all-ready", "--quiet"],
        &["runs", "--json", "--fields", "state,recoveredAt,exit"],
        &["logs", "work"],
        &["history", "--fields", "type,run,task,status"],
    ]));
}
