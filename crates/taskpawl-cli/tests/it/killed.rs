//! A killed run: its appearance in commands, and the recovery of its tasks.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::harness::Cli;

const PLAN: &str = "
tasks:
  - {id: work, run: 'echo hello; sleep 600; true'}
  - {id: wait, call: {sleep: {duration: 600s}}}
  - {id: more, run: 'echo beside; sleep 600; true'}
";

/// Starts a run, waits for output of its programs, kills it, and waits until other commands notice.
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
    // The supervisor holds the lock of the run until it has killed all programs.
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

#[test]
fn doctor_takes_the_tasks_of_a_killed_run_back_and_removes_what_it_left() {
    let cli = killed();
    let files = cli.path("tasks.db.files");
    let results = files.join("output").join("results");
    fs::DirBuilder::new().mode(0o700).create(&results).unwrap();
    // No process has the number 0; the process of this test is alive.
    let dead = results.join("aa.0-1.part");
    let alive = results.join(format!("bb.{}-1.part", std::process::id()));
    for path in [&dead, &alive] {
        fs::write(path, "half").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let found = cli.run(&["doctor", "--json"]);
    assert_eq!(found.code, Some(1), "{found}");
    let mut checks = checks(&found.json()["data"], false);
    // Notes about the sandbox depend on the machine.
    checks.retain(|check| check != "sandbox");
    checks.sort_unstable();
    assert_eq!(checks, ["dead_run", "left_over", "orphan", "orphan", "orphan", "run_lock"], "{found}");
    let mended = cli.run(&["doctor", "--fix", "--json"]).ok().json();
    assert_eq!(self::checks(&mended["data"], true).len(), 6, "{mended}");
    let after = cli.run(&["doctor"]).ok().stdout;
    assert!(!after.contains("found ") && after.contains("\nnote "), "{after}");
    assert_eq!((dead.exists(), alive.exists()), (false, true));
    // The next run still compares the project with what the killed one began with.
    let left: Vec<_> = fs::read_dir(files.join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.len() == 1 && left[0].extension().unwrap() == "obeyed", "{left:?}");
    let task = |id| cli.run(&["show", id, "--json"]).ok().json()["data"].clone();
    // A pause can safely be repeated. The effect of a killed program is unknown, so a person has to look.
    assert_eq!(task("wait")["status"], "todo");
    assert_eq!(task("work")["blockedReason"]["type"], "interrupted", "{}", task("work"));
}

/// Returns the checks with a diagnostic, repaired or not.
fn checks(diagnostics: &Value, is_repaired: bool) -> Vec<String> {
    let diagnostics = diagnostics.as_array().unwrap().iter();
    let diagnostics =
        diagnostics.filter(|diagnostic| diagnostic["isMended"].as_bool().unwrap_or(false) == is_repaired);
    diagnostics.map(|diagnostic| diagnostic["check"].as_str().unwrap().to_owned()).collect()
}
