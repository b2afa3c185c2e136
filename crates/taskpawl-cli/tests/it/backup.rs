//! Tests of `backup` and `restore`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::harness::Cli;

const PLAN: &str = "
tasks:
  - {id: a, run: 'echo one'}
  - {id: b, needs: a, run: 'echo two'}
";

/// Returns a home whose store has the plan, of which `a` has run.
fn made(cli: Cli) -> Cli {
    let cli = cli.with_programs();
    cli.file("plan.yaml", PLAN);
    cli.run(&["apply", "plan.yaml"]).ok();
    cli.run(&["run-all-ready", "--only", "a"]).ok();
    cli
}

fn list(cli: &Cli) -> Value {
    cli.run(&["list", "--json"]).ok().json()["data"].clone()
}

#[test]
fn a_backup_goes_on_as_the_same_project_on_another_machine() {
    let first = made(Cli::without_store());
    let file = first.path("app.backup");
    let file = file.to_str().unwrap();
    let written = first.run(&["backup", file, "--json"]).ok().json()["data"].clone();
    first.run(&["run-all-ready"]).ok();
    let second = Cli::without_store().with_programs();
    let restored = second.run(&["restore", file, "--json"]).ok().json()["data"].clone();
    assert_eq!((&restored["revision"], &restored["madeAt"]), (&written["revision"], &written["madeAt"]));
    let id = |cli: &Cli| cli.run(&["where", "--json"]).ok().json()["data"]["id"].clone();
    assert_eq!(id(&first), id(&second), "the keys of calls stay the same");
    second.run(&["run-all-ready"]).ok();
    let states = |cli: &Cli| {
        let tasks = list(cli);
        let facts = |task: &Value| format!("{}={}#{}", task["id"], task["status"], task["attempt"]);
        tasks.as_array().unwrap().iter().map(facts).collect::<Vec<_>>()
    };
    assert_eq!(states(&first), states(&second));
    second.run(&["doctor"]).ok();
}

#[test]
fn a_backup_of_a_project_that_is_here_makes_no_copy_of_it() {
    let cli = made(Cli::without_store());
    cli.run(&["backup", "../app.backup"]).ok();
    cli.shell("mkdir ../other");
    let other = cli.path("other");
    let refused = cli.run_in(&other, &["restore", "../app.backup"], "");
    assert!(
        refused.code == Some(2) && refused.stderr.contains("the project of this backup is in"),
        "{refused}"
    );
    assert!(!other.join(".taskpawl").exists());
    cli.run_in(&other, &["--store", "other.db", "restore", "../app.backup"], "").ok();
}

#[test]
fn a_store_is_replaced_only_on_request_and_kept() {
    let cli = made(Cli::new());
    cli.run(&["backup", "../app.backup"]).ok();
    let before = list(&cli);
    cli.run(&["run-all-ready"]).ok();
    let refused = cli.run(&["restore", "../app.backup"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("refusing to replace"), "{refused}");
    let restored = cli.run(&["restore", "../app.backup", "--replace", "--json"]).ok().json()["data"].clone();
    assert!(restored["lostCommits"].as_u64().unwrap() > 0, "{restored}");
    assert_eq!(list(&cli), before);
    let kept = restored["kept"].as_str().unwrap().replace("[HOME]/", cli.path("").to_str().unwrap());
    let old = cli.run(&["--store", &kept, "list", "--json"]).ok().json()["data"].clone();
    assert_eq!(old[1]["status"], "done", "the replaced store is whole");
    assert_eq!(cli.run(&["backup", "../app.backup"]).ok().code, Some(0), "a backup replaces an older one");
}

#[test]
fn a_json_store_has_backups_with_a_fencing_number() {
    let cli = made(Cli::without_store());
    fs::create_dir_all(cli.path("work/.taskpawl")).unwrap();
    let store = "json:.taskpawl/plan.json";
    cli.run(&["--store", store, "apply", "plan.yaml"]).ok();
    cli.run(&["--store", store, "run-all-ready", "--only", "a"]).ok();
    cli.run(&["--store", store, "backup", "../app.json"]).ok();
    let refused = cli.run(&["restore", "../app.json"]);
    assert!(refused.stderr.contains("the backup is a JSON store"), "{refused}");
    let other = "json:.taskpawl/other.json";
    let restored =
        cli.run(&["--store", other, "restore", "../app.json", "--json"]).ok().json()["data"].clone();
    let text = fs::read_to_string(cli.path("work/.taskpawl/other.json")).unwrap();
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&read["keySpace"]["fence"], read.get("backup")), (&restored["fence"], None));
    assert!(restored["fence"].as_u64().unwrap() > 0);
}

#[test]
fn other_files_are_neither_overwritten_nor_restored() {
    let cli = made(Cli::new());
    cli.file("notes.txt", "mine");
    for target in ["notes.txt", "../tasks.db"] {
        let refused = cli.run(&["backup", target]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains("refusing to overwrite"), "{refused}");
    }
    assert_eq!(fs::read_to_string(cli.path("work/notes.txt")).unwrap(), "mine");
    for source in ["notes.txt", "../tasks.db", "absent"] {
        let refused = cli.run(&["restore", source, "--replace"]);
        assert_ne!(refused.code, Some(0), "{refused}");
    }
    assert_eq!(list(&cli).as_array().unwrap().len(), 2);
}

#[test]
fn with_every_backups_follow_the_store_until_a_signal() {
    let cli = made(Cli::new()).with_clock();
    let mut command =
        cli.command(&cli.path("work"), &["backup", "../app.backup", "--every", "50ms", "--json"]);
    let mut backups = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(backups.stdout.take().unwrap()).lines();
    let mut next = || {
        serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()["revision"].as_u64().unwrap()
    };
    let first = next();
    cli.run(&["run-all-ready"]).ok();
    while next() == first {}
    let pid = rustix::process::Pid::from_child(&backups);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(backups.wait().unwrap().code(), Some(143));
}
