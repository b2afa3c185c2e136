//! Every tool call starts exactly once, with any number of runs.

use std::process::{Child, Stdio};

use serde_json::json;
use taskpawl::model::task::Status;
use taskpawl::model::view::Query;

use crate::support::{Figures, Home, Run, scale};

const RUNS: usize = 10;

#[test]
fn starts_once() {
    let mut figures = Figures::of("starts_once", 0);
    let (tasks, times) = (1_000, scale(3, 20));
    for _ in 0..times {
        let collisions = collisions(&Home::new(), tasks);
        assert_eq!(collisions, Vec::<String>::new(), "a program was started twice");
    }
    figures.add(format!("{RUNS} runs at once on {tasks} tasks, {times} times: every program started once"));
    let control = collisions(&Home::new().with_fault("DecideBeforeLock"), 200);
    assert!(!control.is_empty(), "the control: claims that are decided without the lock collide");
}

/// Lets many runs execute the same tasks. Each task creates a directory that must not exist yet. Returns the failures.
fn collisions(home: &Home, tasks: usize) -> Vec<String> {
    let task = |number| json!({"id": format!("t{number}"), "run": ["mkdir", format!("made{number}")]});
    home.apply(&json!({"tasks": (0..tasks).map(task).collect::<Vec<_>>()}).to_string());
    let start = |_| -> Child {
        let mut run = home.program(&["run-all-ready", "--jobs", "4", "--quiet"]);
        run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let runs: Vec<Child> = (0..RUNS).map(start).collect();
    let ended = runs.into_iter().map(|run| Run::from(run.wait_with_output().unwrap()));
    let mut wrong: Vec<String> =
        ended.filter(|run| run.code != Some(0)).map(|run| format!("{run:?}")).collect();
    let made = (0..tasks).filter(|number| home.path(&format!("work/made{number}")).is_dir()).count();
    let done = home.manager().list(&Query { status: vec![Status::Done], ..Query::default() }).unwrap().tasks;
    let starts: u32 = done.iter().flat_map(|task| &task.metadata.tool_calls).map(|call| call.attempts).sum();
    if (made, done.len(), starts as usize) != (tasks, tasks, tasks) {
        wrong.push(format!("{made} made, {} done, {starts} starts", done.len()));
    }
    wrong.extend(home.broken_invariants());
    wrong
}
