//! Stores of version 0.1, which ran command lines with `/bin/sh -c`. Their calls run as they were written until the file
//! changes them; then they stop at the first failing command (`-e`).

use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::json;
use taskpawl::model::task::{BlockedReason, Status, Task};

use crate::support::{Home, Run};

/// Returns the path of a fixture.
pub(crate) fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden-0.1").join(name)
}

/// Returns a home with the store that a fixture recreates.
pub(crate) fn home_with(store: &str) -> Home {
    let home = Home::new();
    let connection = Connection::open(home.store()).unwrap();
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    connection.execute_batch(&fs::read_to_string(golden(store)).unwrap()).unwrap();
    home
}

/// Returns a home with the store `shop` and its plan file. All commands of the file begin with `false`.
fn shop() -> Home {
    let home = home_with("shop/store.sql");
    home.file("plan.yaml", &plan());
    home
}

fn plan() -> String {
    fs::read_to_string(golden("shop/plan.yaml")).unwrap()
}

fn run(home: &Home, options: &[&str]) -> Run {
    let run = home.run(&[&["run-all-ready", "--plan", "plan.yaml"], options].concat());
    assert!(matches!(run.code, Some(0 | 1 | 3)), "{run:?}");
    run
}

/// Returns what the programs of calls have written since.
fn log(home: &Home) -> Vec<String> {
    let text = fs::read_to_string(home.path("work/log")).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // Tasks that do not depend on each other run at once.
    lines.sort();
    lines
}

fn task(home: &Home, id: &str) -> Task {
    home.manager().get(id).unwrap()
}

fn waits_for_approval(task: &Task) -> bool {
    matches!(task.blocked_reason, Some(BlockedReason::Approval { .. }))
}

/// Returns the interpreter of each call of a task, as stored.
fn interpreters(home: &Home, id: &str) -> Vec<Option<String>> {
    let calls = task(home, id).metadata.tool_calls.into_iter();
    calls.map(|call| call.args.get("shell").and_then(|shell| shell.as_str()).map(str::to_owned)).collect()
}

#[test]
fn the_unchanged_file_changes_nothing() {
    let home = shop();
    let applied = home.run(&["apply", "plan.yaml", "--json"]).ok().stdout;
    let report: serde_json::Value = serde_json::from_str(&applied).unwrap();
    assert_eq!(report["data"]["unchanged"], json!(6), "{applied}");
    for (id, calls) in [("build", 1), ("pack", 2), ("ship", 1), ("stamp", 1), ("publish", 1)] {
        assert_eq!(interpreters(&home, id), vec![None; calls], "{id}");
    }
    assert_eq!(task(&home, "build").status, Status::Done);
    assert_eq!(task(&home, "pack").status, Status::Failed);
    home.assert_sound();
}

#[test]
fn stored_calls_run_as_they_were_written() {
    let home = shop();
    home.file("fixed", "");
    run(&home, &["--retry-failed"]);
    assert_eq!(log(&home), ["published", "shipped", "tried"], "what succeeded does not run again");
    let states = ["build", "pack", "ship", "stamp", "publish"].map(|id| task(&home, id).status);
    assert_eq!(states, [Status::Done; 5]);
    home.run(&["reopen", "stamp"]).ok();
    run(&home, &[]);
    assert!(task(&home, "stamp").progress.cached_from.is_some(), "the recorded success still holds");
    home.assert_sound();
}

#[test]
fn changed_calls_stop_at_the_first_failing_command() {
    let home = shop();
    home.file("fixed", "");
    home.file("plan.yaml", &plan().replace("tried", "tried again").replace("echo shipped", "echo sent"));
    run(&home, &[]);
    assert_eq!(
        log(&home),
        ["published"],
        "`false` ends the changed command; the unchanged task runs as before"
    );
    let sh = || Some("sh".to_owned());
    assert_eq!(interpreters(&home, "pack"), [None, sh()], "the first call keeps its result");
    assert_eq!(interpreters(&home, "ship"), [sh()]);
    assert_eq!(interpreters(&home, "publish"), [None]);
    assert_eq!(task(&home, "pack").status, Status::Failed);
    // The control: without the failing command, the changed calls run to their end.
    let repaired = ["tried", "shipped"]
        .into_iter()
        .fold(plan(), |file, word| file.replace(&format!("false; echo {word}"), &format!("echo {word}")));
    home.file("plan.yaml", &repaired);
    run(&home, &[]);
    assert_eq!(log(&home), ["published", "shipped", "tried"]);
    home.assert_sound();
}

#[test]
fn an_approval_of_0_1_does_not_hold_for_the_changed_call() {
    let home = shop();
    assert!(task(&home, "publish").progress.approval.is_some(), "the store has an approval");
    let same = plan();
    home.file("plan.yaml", &same.replace("echo published", "echo posted"));
    home.run(&["apply", "plan.yaml"]).ok();
    // The same command again, but it runs with `-e` now.
    home.file("plan.yaml", &same);
    run(&home, &[]);
    assert_eq!(interpreters(&home, "publish"), [Some("sh".to_owned())]);
    assert!(waits_for_approval(&task(&home, "publish")), "{:?}", task(&home, "publish"));
    assert_eq!(log(&home), Vec::<String>::new());
}

#[test]
fn a_success_of_0_1_does_not_stand_for_the_changed_call() {
    let there_and_back = |home: &Home, file: &str| {
        home.file("plan.yaml", &file.replace("echo stamped", "exit 9; echo stamped"));
        run(home, &["--redo-changed"]);
        assert_eq!(task(home, "stamp").status, Status::Failed);
        home.file("plan.yaml", file);
        run(home, &["--redo-changed"]);
        task(home, "stamp")
    };
    let home = shop();
    let stamp = there_and_back(&home, &plan());
    assert_eq!(
        (stamp.status, stamp.progress.cached_from),
        (Status::Failed, None),
        "it ran, and `false` ended it"
    );
    // The control: a success of the same interpreter stands for the run.
    let home = Home::new();
    let file = "{name: shop, tasks: [{id: stamp, run: 'echo stamped >> log', cache: {key: \"'v1'\"}}]}";
    home.file("plan.yaml", file);
    run(&home, &[]);
    let stamp = there_and_back(&home, file);
    assert!(stamp.progress.cached_from.is_some(), "{stamp:?}");
}
