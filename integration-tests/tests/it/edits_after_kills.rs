//! A plan file is edited between the kill of a run and the next one. That run follows the file: succeeded calls do not run
//! again, an interrupted call waits for a decision, and everything that starts has the definition of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskpawl::model::task::{BlockedReason, CallStatus, Status, Task};
use taskpawl::model::view::Query;

use crate::support::{Figures, Home, Random, Run, scale, seed, until};

/// Number of tasks in the first version of the file.
const TASKS: usize = 12;

/// Number of edits of one file.
const EDITS: usize = 6;

/// Runs without a kill at the end of a campaign. Each of them may find one failed call of each task.
const LAST_RUNS: usize = 12;

/// Ways to break the rules, as controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    None,
    /// The recovery starts every interrupted call again.
    RepeatEverything,
    /// Succeeded calls change, too, and their tasks start over.
    RedoDone,
    /// The run does not read the edited file.
    IgnoreFile,
}

/// A call in the file. Each edit gives it another version.
#[derive(Debug, Clone)]
struct Step {
    version: usize,
    fails: bool,
    millis: usize,
}

#[derive(Debug, Clone)]
struct FileTask {
    id: String,
    is_idempotent: bool,
    is_parallel: bool,
    steps: Vec<Step>,
}

/// The id of a task, and that of a call of it.
type CallName = (String, String);

/// What is known when a run starts, to compare what it does.
#[derive(Debug, Default)]
struct Before {
    marks: usize,
    done: BTreeSet<CallName>,
    unsettled: BTreeSet<CallName>,
}

#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    edits: usize,
    starts: usize,
    settled: usize,
    /// Starts of calls that had succeeded.
    repeated: usize,
    /// Starts of interrupted calls before the decision.
    undecided: usize,
    /// Starts with a definition that is not that of the file, and such definitions in the store.
    stale: usize,
    stuck: Vec<String>,
}

#[test]
fn a_run_after_a_kill_follows_the_edited_file() {
    let mut figures = Figures::of("a_run_after_a_kill_follows_the_edited_file", seed());
    let mut random = Random::new(figures.seed);
    let kills = scale(30, 2_000);
    let mut tally = Tally::default();
    while tally.kills < kills {
        campaign(Control::None, &mut random, &mut tally);
    }
    figures.add(format!("{tally:?}"));
    let Tally { repeated, undecided, stale, stuck, .. } = &tally;
    assert_eq!((*repeated, *undecided, *stale, stuck.as_slice()), (0, 0, 0, [].as_slice()));
    assert!(tally.settled > 0 && tally.edits > 0, "{tally:?}");
}

#[test]
fn repeated_undecided_and_stale_calls_after_an_edit_are_seen() {
    let mut figures = Figures::of("repeated_undecided_and_stale_calls_after_an_edit_are_seen", seed());
    let mut random = Random::new(figures.seed);
    let mut seen = |control, count: fn(&Tally) -> usize| {
        let mut tally = Tally::default();
        // A short campaign may happen to interrupt no call.
        for _ in 0..10 {
            campaign(control, &mut random, &mut tally);
            if count(&tally) > 0 {
                return;
            }
        }
        panic!("the control {control:?}: {tally:?}");
    };
    seen(Control::RepeatEverything, |tally| tally.undecided);
    seen(Control::RedoDone, |tally| tally.repeated);
    seen(Control::IgnoreFile, |tally| tally.stale);
    figures.add("each control is seen");
}

/// Kills runs of one plan and edits its file after each of them. At the end, the plan has to be done.
fn campaign(control: Control, random: &mut Random, tally: &mut Tally) {
    let fault = if control == Control::RepeatEverything { "RepeatEverything" } else { "" };
    let home = Home::new().with_fault(fault);
    let mut file: Vec<FileTask> = (0..TASKS).map(|number| new_task(number, random)).collect();
    write(&home, &file);
    home.run(&["apply", "plan.json"]).ok();
    let mut before = Before::default();
    for _ in 0..EDITS {
        if let Some(mut run) = interrupted(&home, control, random) {
            run.kill().unwrap();
            run.wait().unwrap();
            tally.kills += 1;
        }
        until("the run is over", || (!is_running(&home)).then_some(()));
        compare(&home, &file, &before, tally);
        settle(&home, random, tally);
        before = look(&home, &file);
        tally.edits += edit(&home, &mut file, control, random);
        write(&home, &file);
    }
    finish(&home, &mut file, control, before, random, tally);
    tally.starts += marks(&home).len();
    home.assert_sound();
}

/// Runs the plan to its end: settles interrupted calls, and repairs failing ones.
fn finish(
    home: &Home,
    file: &mut [FileTask],
    control: Control,
    mut before: Before,
    random: &mut Random,
    tally: &mut Tally,
) {
    for _ in 0..LAST_RUNS {
        let ran = Run::of(&mut command(home, control));
        compare(home, file, &before, tally);
        if !matches!(ran.code, Some(0 | 1 | 3)) {
            tally.stuck.push(format!("{ran:?}"));
            return;
        }
        if tasks(home).iter().all(|task| task.status == Status::Done) {
            return;
        }
        settle(home, random, tally);
        before = look(home, file);
        for task in file.iter_mut() {
            let id = task.id.clone();
            // A person may have said of a failing call that it succeeded.
            let is_open = |number| !before.done.contains(&(id.clone(), name_of(number)));
            let failing = task.steps.iter_mut().enumerate().filter(|(_, step)| step.fails);
            for (_, step) in failing.filter(|(number, _)| is_open(*number)) {
                (step.version, step.fails) = (step.version + 1, false);
            }
        }
        write(home, file);
    }
    if control == Control::None {
        let open = tasks(home).into_iter().filter(|task| task.status != Status::Done);
        tally.stuck.extend(open.map(|task| format!("{} is {:?}", task.id, task.status)));
    }
}

fn new_task(number: usize, random: &mut Random) -> FileTask {
    let (is_idempotent, is_parallel) = (random.chance(25), random.chance(25));
    let count = 1 + random.below(3);
    let step = |_| Step { version: 0, fails: random.chance(20), millis: 1 + random.below(20) };
    let steps = (0..count).map(step).collect();
    FileTask { id: format!("t{number}"), is_idempotent, is_parallel, steps }
}

fn name_of(step: usize) -> String {
    format!("c{}", step + 1)
}

/// Returns the command line of a call, which records its start.
fn line_of(task: &FileTask, number: usize) -> String {
    let Step { version, fails, millis } = &task.steps[number];
    let mark = format!("{} {} {version}", task.id, name_of(number));
    let exit = u8::from(*fails);
    // One `echo` is one write, and `>>` appends: lines of several programs stay apart.
    format!("echo '{mark}' >> marks; sleep 0.{millis:03}; exit {exit}")
}

fn write(home: &Home, file: &[FileTask]) {
    let of_task = |task: &FileTask| {
        let call = |number| {
            let args = json!({"command": line_of(task, number)});
            json!({"toolName": "shell", "args": args, "idempotent": task.is_idempotent.then_some(true)})
        };
        let calls: Vec<Value> = (0..task.steps.len()).map(call).collect();
        let mode = if task.is_parallel { "parallel" } else { "sequential" };
        json!({"id": task.id, "mode": mode, "toolCalls": calls})
    };
    let tasks: Vec<Value> = file.iter().map(of_task).collect();
    home.file("plan.json", &json!({"tasks": tasks}).to_string());
}

fn command(home: &Home, control: Control) -> std::process::Command {
    let mut args = vec!["run-all-ready", "--jobs", "4"];
    match control {
        Control::None | Control::RepeatEverything => args.extend(["--plan", "plan.json"]),
        Control::RedoDone => args.extend(["--plan", "plan.json", "--redo-changed"]),
        Control::IgnoreFile => {}
    }
    home.program(&args)
}

/// Starts a run, and returns it after a few calls have started; `None` if it ended before.
fn interrupted(home: &Home, control: Control, random: &mut Random) -> Option<Child> {
    let goal = marks(home).len() + 1 + random.below(4);
    let mut run = command(home, control).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let is_far = until("calls are started", || {
        let has_ended = run.try_wait().unwrap().is_some();
        (has_ended || marks(home).len() >= goal).then_some(!has_ended)
    });
    // A random pause, so that kills also hit later moments of a call. A busy loop, because a sleep is too coarse.
    let moment = Instant::now() + Duration::from_micros(random.below(4_000) as u64);
    while Instant::now() < moment {
        std::hint::spin_loop();
    }
    is_far.then_some(run)
}

/// Returns whether a run still holds its lock. Its supervisor keeps it until all programs are gone.
fn is_running(home: &Home) -> bool {
    let runs = home.run(&["runs", "--json", "--fields", "state"]).ok().stdout;
    runs.contains("\"running\"")
}

fn tasks(home: &Home) -> Vec<Task> {
    home.manager().list(&Query::default()).unwrap().tasks
}

/// Returns the starts so far: the task, the call, and the version of its definition.
fn marks(home: &Home) -> Vec<(CallName, usize)> {
    let text = std::fs::read_to_string(home.path("work/marks")).unwrap_or_default();
    let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let mark = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let name = (words.next().unwrap(), words.next().unwrap());
        (name, words.next().unwrap().parse().unwrap())
    };
    lines.map(mark).collect()
}

fn look(home: &Home, file: &[FileTask]) -> Before {
    let mut before = Before { marks: marks(home).len(), ..Before::default() };
    for task in tasks(home) {
        let is_idempotent = file.iter().any(|other| other.id == task.id.as_str() && other.is_idempotent);
        for call in &task.metadata.tool_calls {
            let name = (task.id.to_string(), call.id.to_string());
            match call.status {
                CallStatus::Succeeded => drop(before.done.insert(name)),
                CallStatus::Running | CallStatus::Interrupted if !is_idempotent => {
                    before.unsettled.insert(name);
                }
                CallStatus::Running
                | CallStatus::Interrupted
                | CallStatus::Pending
                | CallStatus::Failed
                | CallStatus::Skipped
                | CallStatus::Cancelled => {}
            }
        }
    }
    before
}

/// Counts the starts since `before` that the rules forbid, and the definitions in the store that are not those of the file.
fn compare(home: &Home, file: &[FileTask], before: &Before, tally: &mut Tally) {
    let mut versions = BTreeMap::new();
    let mut lines = BTreeMap::new();
    for task in file {
        for (number, step) in task.steps.iter().enumerate() {
            let name = (task.id.clone(), name_of(number));
            versions.insert(name.clone(), step.version);
            lines.insert(name, line_of(task, number));
        }
    }
    let marks = marks(home);
    for (name, version) in &marks[before.marks..] {
        tally.repeated += usize::from(before.done.contains(name));
        tally.undecided += usize::from(before.unsettled.contains(name));
        tally.stale += usize::from(versions[name] != *version);
    }
    // A run that was killed early may not have read the file yet. Its starts prove that it has.
    if marks.len() > before.marks {
        for task in tasks(home) {
            for call in &task.metadata.tool_calls {
                let line = &lines[&(task.id.to_string(), call.id.to_string())];
                tally.stale += usize::from(call.args["command"] != json!(line));
            }
        }
    }
}

/// Settles some of the interrupted calls that wait for a decision: they have succeeded, or start again.
fn settle(home: &Home, random: &mut Random, tally: &mut Tally) {
    for task in tasks(home) {
        if matches!(task.blocked_reason, Some(BlockedReason::Interrupted { .. })) && random.chance(70) {
            let command = if random.chance(50) { "done" } else { "unblock" };
            home.run(&[command, task.id.as_str()]).ok();
            tally.settled += 1;
        }
    }
}

/// Edits the file: calls that failed or were interrupted, calls that have not started, and new tasks. Returns the number of
/// changes.
fn edit(home: &Home, file: &mut Vec<FileTask>, control: Control, random: &mut Random) -> usize {
    let mut changes = 1;
    for task in tasks(home) {
        let Some(other) = file.iter_mut().find(|other| other.id == task.id.as_str()) else { continue };
        for (call, step) in task.metadata.tool_calls.iter().zip(&mut other.steps) {
            let percent = match call.status {
                CallStatus::Succeeded if control == Control::RedoDone => 20,
                CallStatus::Succeeded => 0,
                CallStatus::Failed => 80,
                CallStatus::Running | CallStatus::Interrupted => 60,
                CallStatus::Pending | CallStatus::Skipped | CallStatus::Cancelled => 20,
            };
            if random.chance(percent) {
                *step = Step { version: step.version + 1, fails: random.chance(20), ..step.clone() };
                changes += 1;
            }
        }
    }
    file.push(new_task(file.len(), random));
    changes
}
