//! An acknowledged write survives `kill -9` at every system call.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::support::{
    Figures, Home, Random, Run, Strace, Trace, Worker, answers, losses, program_of, scale, seed, steps,
};

/// System calls by which a store changes, opens and locks files. Some machines lack a few of them.
const CALLS: &[&str] = &[
    "openat",
    "close",
    "flock",
    "fcntl",
    "pwrite64",
    "write",
    "fsync",
    "fdatasync",
    "ftruncate",
    "mkdir",
    "mkdirat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
];

/// The process to kill: one with several steps on a new store, or a command for the last step after others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    is_json: bool,
    steps: usize,
    by_command: bool,
}

/// The moment of a kill: the start of the n-th call of a kind in one thread.
#[derive(Debug, Clone)]
struct Point {
    case: Case,
    call: &'static str,
    number: usize,
}

#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    unharmed: usize,
    acknowledged: usize,
    lost: Vec<String>,
}

fn cases() -> impl Iterator<Item = Case> {
    [false, true].into_iter().flat_map(|is_json| {
        let commands = (1..=5).map(move |steps| Case { is_json, steps, by_command: true });
        [Case { is_json, steps: 12, by_command: false }].into_iter().chain(commands)
    })
}

#[test]
fn kills() {
    let Some(strace) = Strace::find("P1 kills") else { return };
    let mut figures = Figures::of("kills", seed());
    let mut random = Random::new(figures.seed);
    let all: Vec<Point> = cases().flat_map(|case| points(&strace, case, CALLS)).collect();
    let count = scale(300, 10_000);
    let tally = tally(&strace, &mut chosen(&all, count, &mut random), "");
    let Tally { kills, unharmed, acknowledged, lost } = &tally;
    let kinds: BTreeSet<&str> = all.iter().map(|point| point.call).collect();
    figures.add(format!(
        "{kills} kills at {} points of {} system calls ({unharmed} ended before), {acknowledged} acknowledged writes, {} lost",
        all.len(),
        kinds.len(),
        lost.len()
    ));
    assert!(lost.is_empty(), "{lost:#?}");
    assert!(*acknowledged > count / 4, "{tally:?}");
}

#[test]
fn kills_are_seen() {
    let Some(strace) = Strace::find("P1 kills, control") else { return };
    let mut figures = Figures::of("kills_are_seen", seed());
    let mut random = Random::new(figures.seed);
    let case = Case { is_json: false, steps: 12, by_command: false };
    let all = points(&strace, case, &["pwrite64"]);
    // More than half of them lose something.
    let tally = tally(&strace, &mut chosen(&all, scale(40, 400), &mut random), "AnswerEarly");
    figures.add(format!("{} kills, {} lost when answers come early", tally.kills, tally.lost.len()));
    assert!(!tally.lost.is_empty(), "{tally:?}");
}

/// Returns all points of a case, from a traced run without a kill.
fn points(strace: &Strace, case: Case, calls: &[&'static str]) -> Vec<Point> {
    let home = case.home("");
    let log = home.path("strace.log");
    let list: Vec<String> = calls.iter().map(|call| format!("?{call}")).collect();
    Run::of(&mut strace.of(&home, &list.join(","), &log, &case.command(&home))).ok();
    let mut most = BTreeMap::<&'static str, usize>::new();
    let mut by_thread = BTreeMap::<(String, &'static str), usize>::new();
    for line in Trace::read(&log).lines() {
        let mut words = line.split_whitespace();
        let (Some(thread), Some(call)) = (words.next(), words.next()) else { continue };
        let Some(call) =
            calls.iter().find(|name| call.split_once('(').is_some_and(|(found, _)| found == **name))
        else {
            continue;
        };
        // strace's `when=` counts per thread, so the points are counted per thread, too.
        let count = by_thread.entry((thread.to_owned(), call)).or_default();
        *count += 1;
        let most = most.entry(call).or_default();
        *most = (*most).max(*count);
    }
    let numbers = |(call, most)| (1..=most).map(move |number| Point { case, call, number });
    most.into_iter().flat_map(numbers).collect()
}

/// Returns `count` points in random order. Every point comes once before any comes again.
fn chosen<'a>(all: &'a [Point], count: usize, random: &'a mut Random) -> impl Iterator<Item = Point> + 'a {
    let mut left = Vec::new();
    (0..count).map(move |_| {
        if left.is_empty() {
            left = all.to_vec();
        }
        left.swap_remove(random.below(left.len()))
    })
}

fn tally(strace: &Strace, points: &mut dyn Iterator<Item = Point>, fault: &str) -> Tally {
    let mut tally = Tally::default();
    for point in points {
        let home = point.case.home("").with_fault(fault);
        let command = point.case.command(&home);
        let run = Run::of(&mut strace.killing(&home, point.call, point.number, &command));
        let acknowledged = point.case.acknowledged(&run);
        tally.kills += usize::from(run.code.is_none());
        tally.unharmed += usize::from(run.code.is_some());
        tally.acknowledged += acknowledged;
        let wrong = losses(&home, &steps(point.case.steps), acknowledged);
        tally.lost.extend(wrong.into_iter().map(|mistake| format!("{point:?}: {mistake}")));
    }
    tally
}

impl Case {
    /// Returns a home with all steps before the killed one done.
    fn home(self, fault: &str) -> Home {
        let home = Home::in_memory().unwrap_or_else(Home::new).with_fault(fault);
        let home = if self.is_json { home.with_json() } else { home };
        let steps = steps(self.steps);
        if self.by_command && self.steps > 1 {
            let script = home.file("before", &steps[..self.steps - 1].join("\n"));
            // The same actor as later commands, so that they may end tasks that an earlier one claimed.
            let done = answers(&Run::of(&mut Worker::with_script(&home, "actor", &script, 0)).ok().stdout);
            assert!(done.iter().all(super::support::Answer::is_ok), "{done:?}");
        }
        home
    }

    fn command(self, home: &Home) -> Command {
        let steps = steps(self.steps);
        if self.by_command {
            let mut command = program_of(home, &steps[self.steps - 1]);
            command.args(["--actor", "actor"]);
            return command;
        }
        let script = home.file("script", &steps.join("\n"));
        Worker::with_script(home, "actor", &script, 0)
    }

    /// Returns the number of steps that were acknowledged before the kill.
    fn acknowledged(self, run: &Run) -> usize {
        if !self.by_command {
            return answers(&run.stdout).len();
        }
        let last = usize::from(run.stdout.ends_with('\n'));
        self.steps - 1 + last
    }
}
