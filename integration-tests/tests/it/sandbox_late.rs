//! New files that other programs obey are reported even if their call cannot report them: by one more search at the end of the run, and by the
//! next run if the run was killed.

use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::support::{Figures, Home, skip, until};

/// A call that makes the file and then runs until it is ended. A call that is ended by its time limit does not search.
const MAKE_AND_STAY: &str = "mkdir -p .vscode; echo {} > .vscode/tasks.json; sleep 600";

#[test]
fn the_end_of_a_run_reports_what_its_calls_did_not() {
    let Some(mut figures) = figures("the_end_of_a_run_reports_what_its_calls_did_not") else { return };
    let home = Home::new();
    let run = run(&home, "late", MAKE_AND_STAY, Some("1s"));
    assert!(tells(&run), "{run}");
    let next = self::run(&home, "next", "true", None);
    assert!(!tells(&next), "it is no news: {next}");
    // The control: without the last search nothing reports the file.
    let home = Home::new().with_fault("NoLastLook");
    let run = self::run(&home, "late", MAKE_AND_STAY, Some("1s"));
    assert!(home.path("work/.vscode/tasks.json").exists() && !tells(&run), "{run}");
    figures.add("1 file reported by the end of its run, 0 in the control".to_owned());
}

#[test]
fn the_next_run_reports_what_a_killed_run_has_left() {
    let Some(mut figures) = figures("the_next_run_reports_what_a_killed_run_has_left") else { return };
    for (fault, is_told) in [("", true), ("NoLastLook", false)] {
        let home = Home::new().with_fault(fault);
        home.file(".envrc", "");
        let mut killed = start(&home, "late", MAKE_AND_STAY);
        until("the call has made the file", || home.path("work/.vscode/tasks.json").exists().then_some(()));
        killed.kill().unwrap();
        killed.wait().unwrap();
        // The run counts as alive until its supervisor has ended the last program, so the report may take another run.
        let next = until("a run reports it", || {
            let next = run(&home, "next", "true", None);
            (tells(&next) || !is_told).then_some(next)
        });
        assert_eq!(tells(&next), is_told, "{next}");
        assert!(!next.contains(".envrc"), "it was there before: {next}");
        let again = run(&home, "again", "true", None);
        assert!(!tells(&again), "it is reported once: {again}");
    }
    figures.add("1 file of a killed run reported by the next, 0 in the control".to_owned());
}

fn tells(run: &str) -> bool {
    run.contains(".vscode") && run.contains("run or load such files without asking")
}

fn figures(name: &'static str) -> Option<Figures> {
    let home = Home::new();
    run(&home, "probe", "true", None);
    let task = home.manager().get("probe").unwrap();
    if task.metadata.tool_calls.first().is_none_or(|call| call.result.is_none()) {
        skip("the sandbox", name, "no program is started here");
        return None;
    }
    Some(Figures::of(name, 0))
}

/// Runs a script as a call in its own run, and returns the output of the run.
fn run(home: &Home, id: &str, script: &str, timeout: Option<&str>) -> String {
    let output = command(home, id, script, timeout).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn start(home: &Home, id: &str, script: &str) -> Child {
    command(home, id, script, None).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn command(home: &Home, id: &str, script: &str, timeout: Option<&str>) -> Command {
    let mut task = json!({"id": id, "run": script});
    if let Some(timeout) = timeout {
        task["timeout"] = timeout.into();
    }
    let file = home.path(&format!("{id}.json"));
    std::fs::write(&file, json!({"name": id, "tasks": [task]}).to_string()).unwrap();
    home.program(&["run-all-ready", "--plan", file.to_str().unwrap()])
}
