//! After crashes, repeatable calls run at least once, all others at most once, and two attempts never overlap. The next start
//! resolves interrupted tasks.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::json;
use taskpawl::model::task::{BlockedReason, Status, Task};
use taskpawl::model::view::Query;

use crate::support::{Figures, Home, Marks, Random, Run, end_survivors, scale, seed, survivors, until, work};

/// Number of tasks in one plan; even ones are idempotent.
const TASKS: usize = 40;

/// Number of tasks in a plan of a control.
const TASKS_OF_CONTROL: usize = 10;

#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    starts: usize,
    overlaps: usize,
    /// Starts beyond the first of calls that are not idempotent.
    repeated: usize,
    /// Idempotent calls that never ended.
    lost: usize,
    stuck: usize,
    survivors: usize,
}

#[test]
fn attempts_do_not_overlap() {
    let mut figures = Figures::of("attempts_do_not_overlap", seed());
    let mut random = Random::new(figures.seed);
    let kills = scale(200, 10_000);
    let mut tally = Tally::default();
    while tally.kills < kills {
        campaign(TASKS, "", &mut random, &mut tally);
    }
    figures.add(format!("{tally:?}"));
    let Tally { overlaps, repeated, lost, stuck, survivors, .. } = tally;
    assert_eq!((overlaps, repeated, lost, stuck, survivors), (0, 0, 0, 0, 0));
}

#[test]
fn overlaps_and_repetitions_are_seen() {
    let mut figures = Figures::of("overlaps_and_repetitions_are_seen", seed());
    let mut random = Random::new(figures.seed);
    let mut seen = |faults, count: fn(&Tally) -> usize| {
        let mut tally = Tally::default();
        // Few kills may happen to leave no program alive.
        for _ in 0..10 {
            campaign(TASKS_OF_CONTROL, faults, &mut random, &mut tally);
            if count(&tally) > 0 {
                return tally;
            }
        }
        panic!("the control {faults}: {tally:?}");
    };
    let left = seen("NoSweep,SharedProcesses", |tally| tally.overlaps);
    figures.add(format!("with programs left alive: {left:?}"));
    let repeated = seen("RepeatEverything", |tally| tally.repeated);
    figures.add(format!("with everything repeated: {repeated:?}"));
}

/// Kills runs of one plan until every task is finished or waits for a decision.
fn campaign(tasks: usize, fault: &str, random: &mut Random, tally: &mut Tally) {
    let home = Home::new().with_fault(fault);
    let task = |number| {
        let argv = work(&home, 1 + number as u64 % 20);
        let call = json!({"toolName": "exec", "args": {"argv": argv}, "idempotent": (number % 2 == 0).then_some(true)});
        json!({"id": format!("t{number}"), "metadata": {"toolCalls": [call]}})
    };
    home.apply(&json!({"tasks": (0..tasks).map(task).collect::<Vec<_>>()}).to_string());
    while let Some(mut run) = interrupted(&home, random) {
        run.kill().unwrap();
        run.wait().unwrap();
        tally.kills += 1;
    }
    count(&home, tasks, tally);
}

/// Starts a run, and returns it after a few programs have started; `None` if it ended before.
fn interrupted(home: &Home, random: &mut Random) -> Option<Child> {
    let goal = Marks::started_in(home) + 1 + random.below(5);
    let mut run = home.program(&["run-all-ready", "--jobs", "4"]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let is_far = until("programs are started", || {
        let has_ended = run.try_wait().unwrap().is_some();
        (has_ended || Marks::started_in(home) >= goal).then_some(!has_ended)
    });
    // A random pause, so that kills also hit the moments long after a start. A busy loop, because a sleep is too coarse for
    // microseconds.
    let moment = Instant::now() + Duration::from_micros(random.below(4_000) as u64);
    while Instant::now() < moment {
        std::hint::spin_loop();
    }
    is_far.then_some(run)
}

fn count(home: &Home, tasks: usize, tally: &mut Tally) {
    // A last run without a kill finishes the remaining tasks.
    let last = home.run(&["run-all-ready"]);
    assert!(matches!(last.code, Some(0 | 3)), "{last:?}");
    let marks = Marks::of(home);
    tally.starts += marks.started();
    tally.overlaps += marks.overlaps.len();
    for number in 0..tasks {
        let id = format!("t{number}");
        let starts = marks.starts.get(&id).copied().unwrap_or(0);
        if number % 2 == 0 {
            tally.lost += usize::from(!marks.ends.contains_key(&id));
        } else {
            tally.repeated += starts.saturating_sub(1);
        }
    }
    let tasks = home.manager().list(&Query::default()).unwrap().tasks;
    tally.stuck += tasks.iter().filter(|task| !is_resolved(task)).count();
    tally.survivors += survivors(home).len();
    // With the fault, no supervisor is left to kill them.
    end_survivors(home);
    home.assert_sound();
}

fn is_resolved(task: &Task) -> bool {
    let is_interrupted = matches!(task.blocked_reason, Some(BlockedReason::Interrupted { .. }));
    task.status == Status::Done || task.status == Status::Blocked && is_interrupted
}

/// The time is compared with that of a tenth of the tasks: machines and builds differ. A cost that grows with the square is a hundred
/// times as high.
#[test]
fn a_thousand_interrupted_tasks_are_resolved_by_the_next_start() {
    const MANY: usize = 1_000;
    let mut figures = Figures::of("a_thousand_interrupted_tasks_are_resolved_by_the_next_start", 0);
    let (tenth, cpu) = (resolution_of(MANY / 10), resolution_of(MANY));
    let (tenth_ms, ms) = (tenth.as_millis(), cpu.as_millis());
    figures.add(format!("{MANY} tasks resolved in {ms} ms of CPU, {} in {tenth_ms} ms", MANY / 10));
    assert!(cpu < 30 * tenth, "{ms} ms, a tenth of the tasks {tenth_ms} ms");
    assert!(cpu < Duration::from_secs(5), "{ms} ms");
}

/// Returns the CPU time of the run that resolves `many` tasks, whose calls all ran when the run before was killed.
fn resolution_of(many: usize) -> Duration {
    let home = Home::new();
    let call = json!({"toolName": "sleep", "args": {"duration": "1h"}, "idempotent": false});
    let task = |number| json!({"id": format!("t{number}"), "metadata": {"toolCalls": [call]}});
    home.apply(&json!({"tasks": (0..many).map(task).collect::<Vec<_>>()}).to_string());
    let mut run = home.program(&["run-all-ready", "--jobs", "1000"]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let running = || home.manager().counts().unwrap().get(&Status::InProgress).copied() == Some(many as u64);
    until("all calls run", || running().then_some(()));
    run.kill().unwrap();
    run.wait().unwrap();
    let (code, cpu) =
        cpu_of(home.program(&["run-all-ready"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    assert_eq!(code, Some(3));
    let tasks = home.manager().list(&Query::default()).unwrap().tasks;
    assert_eq!(tasks.iter().filter(|task| is_resolved(task)).count(), many);
    home.assert_sound();
    cpu
}

/// Waits for a process; returns its exit code and its CPU time.
fn cpu_of(mut child: Child) -> (Option<i32>, Duration) {
    let pid = Pid::from_child(&child);
    // `NOWAIT` leaves the zombie, because its `/proc/PID/stat` disappears once it is reaped.
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    // Fields 14 and 15 of `stat` are the user and system time, in ticks of 10 ms. The name before them may contain spaces and
    // brackets.
    let after_name = stat.rsplit_once(')').unwrap().1;
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    (child.wait().unwrap().code(), Duration::from_millis(ticks * 10))
}

/// The run after a crash does not start the call again; it names the decision to make.
#[test]
fn an_interrupted_call_waits_for_a_decision_and_never_restarts() {
    let home = Home::new();
    let argv = work(&home, 60_000);
    home.apply(&json!({"tasks": [{"id": "t", "call": {"exec": {"argv": argv}}}]}).to_string());
    let mut run =
        home.program(&["run-all-ready"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("it is started", || (Marks::started_in(&home) == 1).then_some(()));
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(home.run(&["run-all-ready"]).code, Some(3));
    assert_eq!(Marks::of(&home).started(), 1);
    home.run(&["done", "t"]).ok();
    Run::of(&mut home.program(&["run-all-ready"])).ok();
    assert_eq!((Marks::of(&home).started(), survivors(&home)), (1, Vec::new()));
}
