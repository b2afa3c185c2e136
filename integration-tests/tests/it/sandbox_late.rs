//! New files that other programs obey are reported even if their call cannot report them: by one more search at the end of the run, and by the
//! next run if the run was killed.

use std::process::{Child, Command, Output, Stdio};

use serde_json::json;

use crate::support::{Figures, Home, skip, until};

/// A call that makes the file and then runs until it is ended.
const MAKE_AND_STAY: &str = "mkdir -p .vscode; echo {} > .vscode/tasks.json; sleep 600";

#[test]
fn the_end_of_a_run_reports_what_its_calls_did_not() {
    let Some(mut figures) = figures("the_end_of_a_run_reports_what_its_calls_did_not") else { return };
    // The control: without the last search nothing reports the file.
    for (fault, is_told) in [("", true), ("NoLastLook", false)] {
        let home = Home::new().with_fault(fault);
        let run = without_supervisor(&home);
        assert_eq!(tells(&run), is_told, "{run}");
        let next = self::run(&home, "next", "true");
        assert!(!tells(&next), "it is reported once: {next}");
    }
    figures.add("1 file reported by the end of its run, 0 in the control".to_owned());
}

/// Starts a call, and ends the supervisor once the call has made its file: a call that loses its supervisor does not search.
fn without_supervisor(home: &Home) -> String {
    let mut command = command(home, "late", MAKE_AND_STAY);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the call has made the file", || home.path("work/.vscode/tasks.json").exists().then_some(()));
    for supervisor in children(run.id()) {
        let _ = rustix::process::kill_process(supervisor, rustix::process::Signal::KILL);
    }
    text(&run.wait_with_output().unwrap())
}

fn children(id: u32) -> Vec<rustix::process::Pid> {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).unwrap().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let ids: Vec<i32> =
        lists.flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<_>>()).collect();
    ids.into_iter().filter_map(rustix::process::Pid::from_raw).collect()
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
            let next = run(&home, "next", "true");
            (tells(&next) || !is_told).then_some(next)
        });
        assert_eq!(tells(&next), is_told, "{next}");
        assert!(!next.contains(".envrc"), "it was there before: {next}");
        let again = run(&home, "again", "true");
        assert!(!tells(&again), "it is reported once: {again}");
    }
    figures.add("1 file of a killed run reported by the next, 0 in the control".to_owned());
}

fn tells(run: &str) -> bool {
    run.contains(".vscode") && run.contains("run or load such files without asking")
}

fn figures(name: &'static str) -> Option<Figures> {
    let home = Home::new();
    run(&home, "probe", "true");
    let task = home.manager().get("probe").unwrap();
    if task.metadata.tool_calls.first().is_none_or(|call| call.result.is_none()) {
        skip("the sandbox", name, "no program is started here");
        return None;
    }
    Some(Figures::of(name, 0))
}

/// Runs a script as a call in its own run, and returns the output of the run.
fn run(home: &Home, id: &str, script: &str) -> String {
    text(&command(home, id, script).output().unwrap())
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn start(home: &Home, id: &str, script: &str) -> Child {
    command(home, id, script).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn command(home: &Home, id: &str, script: &str) -> Command {
    let file = home.path(&format!("{id}.json"));
    std::fs::write(&file, json!({"name": id, "tasks": [{"id": id, "run": script}]}).to_string()).unwrap();
    home.program(&["run-all-ready", "--plan", file.to_str().unwrap()])
}
