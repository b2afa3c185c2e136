//! No process, descriptor or temporary file is left after a run, a time-out or a signal; and output does not fill the memory.

use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{Figures, Home, Marks, Random, end_survivors, scale, seed, survivors, until, work};

#[test]
fn time_outs() {
    let mut figures = Figures::of("time_outs", 0);
    let count = scale(200, 1_000);
    let home = Home::new();
    // Long enough for each call to start on a slow machine.
    home.apply(&endless(&home, count, Some("1s")));
    let mut run = start(&home, "16");
    let mut descriptors = Vec::new();
    let code = until("every call was ended", || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", run.id())).map_or(0, Iterator::count);
        descriptors.push(open);
        run.try_wait().unwrap()
    });
    assert_eq!(code.code(), Some(1));
    assert_eq!(Marks::of(&home).started(), count);
    let half = descriptors.len() / 2;
    let (before, after) =
        (descriptors[..half].iter().max().unwrap(), descriptors[half..].iter().max().unwrap());
    figures.add(format!(
        "{count} time-outs, {} survivors, at most {before} and then {after} descriptors",
        survivors(&home).len()
    ));
    assert_eq!(survivors(&home), Vec::<String>::new());
    assert!(after <= &(before + 2), "descriptors are left open");
    assert_eq!(temporary_files(&home), Vec::<String>::new());
    home.assert_sound();
}

/// Signals that end runs of one plan; the last one is SIGKILL.
const SIGNALS_TO_A_PLAN: usize = 20;

#[test]
fn signals() {
    let mut figures = Figures::of("signals", seed());
    let mut random = Random::new(figures.seed);
    let count = scale(200, 1_000);
    // Each run looks at all tasks of its plan, so a plan for all signals would take most of the time.
    for begin in (0..count).step_by(SIGNALS_TO_A_PLAN) {
        let home = Home::new();
        home.apply(&endless(&home, SIGNALS_TO_A_PLAN * 8, None));
        for number in begin..count.min(begin + SIGNALS_TO_A_PLAN) {
            let signal = [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL][number % 4];
            let code = end_by(&home, signal, 1 + random.below(4));
            let expected = [Some(130), Some(143), Some(129), None][number % 4];
            assert_eq!(code, expected, "{signal:?}");
        }
        // SIGKILL leaves the run no time to remove its temporary directory: the next command does.
        assert!(!temporary_files(&home).is_empty(), "the control");
        home.run(&["doctor", "--fix"]).ok();
        assert_eq!(temporary_files(&home), Vec::<String>::new());
        home.assert_sound();
    }
    figures.add(format!("{count} signals of 4 kinds, 0 survivors"));
}

#[test]
fn survivors_are_seen() {
    let mut figures = Figures::of("survivors_are_seen", 0);
    let home = Home::new().with_fault("NoSweep,SharedProcesses");
    home.apply(&endless(&home, 4, None));
    let mut run = start(&home, "4");
    until("they are started", || (Marks::started_in(&home) == 4).then_some(()));
    run.kill().unwrap();
    run.wait().unwrap();
    let supervisors = || survivors(&home).iter().any(|line| line.contains("taskpawl-under-test"));
    until("the supervisor is gone", || (!supervisors()).then_some(()));
    let left = survivors(&home).len();
    figures.add(format!("{left} survivors of 4 calls when nothing is ended"));
    assert!(left > 0, "the control");
    end_survivors(&home);
}

/// Returns a plan of calls that never end by themselves.
fn endless(home: &Home, count: usize, timeout: Option<&str>) -> String {
    let argv = work(home, 3_600_000);
    let task = |number| json!({"id": format!("t{number}"), "timeout": timeout, "run": argv});
    let tasks: Vec<_> = (0..count).map(task).map(without_null).collect();
    json!({"tasks": tasks}).to_string()
}

fn without_null(mut task: serde_json::Value) -> serde_json::Value {
    task.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    task
}

fn start(home: &Home, jobs: &str) -> Child {
    let mut run = home.program(&["run-all-ready", "--jobs", jobs]);
    run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Starts a run, sends it a signal after some programs have started, and waits until none of its processes is left.
fn end_by(home: &Home, signal: Signal, starts: usize) -> Option<i32> {
    let before = Marks::started_in(home);
    let mut run = start(home, "4");
    until("programs are started", || (Marks::started_in(home) >= before + starts).then_some(()));
    let pid = Pid::from_child(&run);
    kill_process(pid, signal).unwrap();
    let status = until("the run has ended", || {
        let ended = run.try_wait().unwrap();
        // The first interrupt lets running calls end, and these never do. Later ones kill them.
        if signal == Signal::INT && ended.is_none() {
            kill_process(pid, signal).unwrap();
        }
        ended
    });
    until("nothing is left", || survivors(home).is_empty().then_some(()));
    status.code()
}

/// Returns files that belong neither to the store, nor to records of its runs, nor to the project.
fn temporary_files(home: &Home) -> Vec<String> {
    let names = |path: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(path)
            .map(|entries| entries.map(|entry| entry.unwrap().path().display().to_string()).collect());
        entries.unwrap_or_default()
    };
    let mut found = names(&home.path("tmp"));
    let kept = names(&home.path("tasks.db.files/runs"));
    found.extend(kept.into_iter().filter(|name| name.contains("spare")));
    found
}

#[test]
fn output_does_not_fill_the_memory() {
    let mut figures = Figures::of("output_does_not_fill_the_memory", 0);
    let quiet = most_memory(&["true"], "done");
    let long_line = "head -c 100000000 /dev/zero | tr '\\0' x";
    let invalid = "head -c 40000000 /dev/urandom";
    let hostile: [(&str, &[&str], &str); 3] = [
        ("endless `yes`", &["yes"], "failed"),
        ("a line of 100 MB", &["sh", "-c", long_line], "failed"),
        ("40 MB that are no text", &["sh", "-c", invalid], "done"),
    ];
    for (label, argv, end) in hostile {
        let growth = most_memory(argv, end).saturating_sub(quiet);
        figures.add(format!("{growth} KiB for {label}"));
        assert!(growth < 16 * 1024, "the engine grew by {growth} KiB for {label}");
    }
}

/// Returns the peak memory of an engine that runs a program, in KiB. `end` is the expected status of the task.
fn most_memory(argv: &[&str], end: &str) -> u64 {
    let home = Home::new();
    home.apply(&json!({"tasks": [{"id": "t", "run": argv}]}).to_string());
    let mut run = start(&home, "1");
    let mut most = 0;
    until("the run has ended", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", run.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        most = most.max(line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse().unwrap()));
        run.try_wait().unwrap()
    });
    let task = home.manager().get("t").unwrap();
    assert_eq!(task.status.as_str(), end, "{argv:?}: {:?}", task.error);
    if end == "failed" {
        assert!(
            task.error.as_ref().is_some_and(|error| error.contains("exceeded the limit")),
            "{:?}",
            task.error
        );
    }
    most
}
