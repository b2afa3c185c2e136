//! Among processes, no change is lost or applied twice, and no process starves.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl::model::task::{Status, Task};
use taskpawl::model::view::Query;

use crate::support::{Figures, Home, Random, Run, Worker, scale, seed, skip};

/// Number of parallel workers.
const WORKERS: usize = 10;
/// Number of workers that are killed again and again.
const VICTIMS: usize = 2;
/// Lifetime of such a worker.
const LIFE: Duration = Duration::from_millis(50);
const NOTED: usize = 20;
const COUNTERS: usize = 5;

#[test]
fn sums_are_exact() {
    let mut figures = Figures::of("sums_are_exact", seed());
    let steps = scale(500, 500);
    assert_fair(|| {
        let outcome = Contest::new(Home::new(), steps, figures.seed).hold();
        figures.add(format!("{WORKERS} processes x {steps} operations on a disk: {outcome}"));
        outcome
    });
    let control = Contest::new(Home::new().with_fault("DecideBeforeLock"), 40, figures.seed).hold();
    assert!(!control.wrong.is_empty(), "the control: updates of others are overwritten");
}

#[test]
fn sums_are_exact_in_a_json_store() {
    let mut figures = Figures::of("sums_are_exact_in_a_json_store", seed());
    let steps = scale(24, 200);
    let outcome = Contest::new(Home::new().with_json(), steps, figures.seed).hold();
    figures.add(format!("{WORKERS} processes x {steps} operations: {outcome}"));
    outcome.assert_right();
}

#[test]
fn sums_are_exact_in_memory() {
    let Some(home) = Home::in_memory() else {
        return skip("tmpfs", "sums in memory", "there is no /dev/shm");
    };
    let mut figures = Figures::of("sums_are_exact_in_memory", seed());
    let steps = scale(500, 10_000);
    let mut hold = |home: Home| {
        let outcome = Contest::new(home, steps, figures.seed).hold();
        figures.add(format!("{WORKERS} processes x {steps} operations on tmpfs: {outcome}"));
        outcome
    };
    if steps > 500 {
        assert_fair(|| hold(Home::in_memory().unwrap()));
    } else {
        // Five hundred steps on tmpfs take hardly longer than the scheduler needs to run every process once, so fairness is not
        // measurable.
        hold(home).assert_right();
    }
}

/// Repeats the contest up to three times until no worker starves. Other load on the machine can delay a worker in one contest; an
/// unfair lock delays it in all of them.
fn assert_fair(mut hold: impl FnMut() -> Outcome) {
    let mut unfair = Vec::new();
    while unfair.len() < 3 {
        let outcome = hold();
        outcome.assert_right();
        if outcome.slowest * 3 >= outcome.fastest {
            return;
        }
        unfair.push(outcome.to_string());
    }
    panic!("a worker starves in each of three contests: {unfair:#?}");
}

/// Several processes that execute scripts on one store.
struct Contest {
    home: Home,
    steps: usize,
    seed: u64,
    /// The number of answered steps of each worker.
    progress: Vec<AtomicUsize>,
    /// The progress of all workers at the moment when the first one had finished.
    at_first_end: OnceLock<Vec<usize>>,
    wrong: Mutex<Vec<String>>,
    kills: AtomicUsize,
    are_others_done: AtomicBool,
}

struct Outcome {
    wrong: Vec<String>,
    slowest: usize,
    fastest: usize,
    kills: usize,
}

impl Contest {
    fn new(home: Home, steps: usize, seed: u64) -> Self {
        let progress = (0..WORKERS).map(|_| AtomicUsize::new(0)).collect();
        Self {
            home,
            steps,
            seed,
            progress,
            at_first_end: OnceLock::new(),
            wrong: Mutex::default(),
            kills: AtomicUsize::new(0),
            are_others_done: AtomicBool::new(false),
        }
    }

    fn hold(self) -> Outcome {
        self.home.apply(&self.plan());
        thread::scope(|scope| {
            let contest = &self;
            let others: Vec<_> =
                (VICTIMS..WORKERS).map(|number| scope.spawn(move || contest.work(number))).collect();
            for number in 0..VICTIMS {
                scope.spawn(move || contest.work(number));
            }
            scope.spawn(|| contest.use_the_program());
            for other in others {
                other.join().unwrap();
            }
            contest.are_others_done.store(true, Ordering::Relaxed);
        });
        self.count();
        let unharmed = &self.at_first_end.get().expect("a worker has finished")[VICTIMS..];
        Outcome {
            slowest: *unharmed.iter().min().unwrap(),
            fastest: *unharmed.iter().max().unwrap(),
            kills: self.kills.load(Ordering::Relaxed),
            wrong: self.wrong.into_inner().unwrap(),
        }
    }

    /// Returns tasks for notes, tasks with counters, which no worker may claim, and tasks to take.
    fn plan(&self) -> String {
        let kept = |id: String| json!({"id": id, "assignee": "nobody"});
        let mut tasks: Vec<Value> = (0..NOTED).map(|number| kept(format!("noted{number}"))).collect();
        tasks.extend((0..COUNTERS).map(|number| kept(format!("counter{number}"))));
        tasks.extend(
            (0..WORKERS * self.steps.div_ceil(4)).map(|number| json!({"id": format!("job{number}")})),
        );
        json!({"tasks": tasks}).to_string()
    }

    fn script(&self, number: usize) -> String {
        let mut random = Random::new(self.seed.wrapping_add(number as u64));
        let line = |step| match step % 4 {
            0 => format!("create made-{number}-{step}\n"),
            1 => format!("note noted{} {number}-{step}\n", random.below(NOTED)),
            2 => format!("increment counter{}\n", random.below(COUNTERS)),
            _ => "take\n".to_owned(),
        };
        (0..self.steps).map(line).collect()
    }

    /// Starts a worker again and again until its script is done.
    fn work(&self, number: usize) {
        let script = self.home.file(&format!("script{number}"), &self.script(number));
        loop {
            let before = self.progress[number].load(Ordering::Relaxed);
            if before == self.steps {
                return;
            }
            let was_killed = self.live(number, &script, before);
            if !was_killed && self.progress[number].load(Ordering::Relaxed) < self.steps {
                return self.complain(format!("worker {number} ended before its script"));
            }
        }
    }

    /// Lets a worker continue at `step`; returns whether it was killed.
    fn live(&self, number: usize, script: &Path, step: usize) -> bool {
        let name = format!("worker{number}");
        let mut worker = Worker::start(&mut Worker::with_script(&self.home, &name, script, step));
        let is_victim = number < VICTIMS && !self.are_others_done.load(Ordering::Relaxed);
        let pid = worker.pid();
        let (ended, is_over) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            let reader = scope.spawn(move || {
                while let Some(answer) = worker.answer() {
                    if !answer.is_ok() {
                        self.complain(format!("worker {number}: {answer:?}"));
                    }
                    self.note_progress(number, answer.step + 1);
                }
                // The receiver may be gone, if the worker was killed first.
                let _ = ended.send(());
                worker
            });
            let was_killed = is_victim && is_over.recv_timeout(LIFE).is_err();
            if was_killed {
                pid.kill();
                self.kills.fetch_add(1, Ordering::Relaxed);
            }
            reader.join().unwrap().finish();
            was_killed
        })
    }

    fn note_progress(&self, number: usize, steps: usize) {
        self.progress[number].store(steps, Ordering::Relaxed);
        if steps == self.steps && number >= VICTIMS {
            self.at_first_end
                .get_or_init(|| self.progress.iter().map(|count| count.load(Ordering::Relaxed)).collect());
        }
    }

    /// Runs commands beside the workers: none of them may be refused because the store is in use.
    fn use_the_program(&self) {
        let mut number = 0;
        while !self.are_others_done.load(Ordering::Relaxed) {
            let id = format!("program{number}");
            let create = ["create", "by a command", "--id", &id, "--assignee", "nobody"];
            for args in [&create[..], &["list", "--limit", "1"]] {
                let run = self.home.run(args);
                if run.code != Some(0) {
                    self.complain(format!("{args:?}: {run:?}"));
                }
            }
            number += 1;
        }
    }

    fn complain(&self, mistake: String) {
        self.wrong.lock().unwrap().push(mistake);
    }

    /// Compares the sums in the store with the scripts.
    fn count(&self) {
        let manager = self.home.manager();
        let tasks = manager.list(&Query::default()).unwrap().tasks;
        let of = |kind: usize| {
            (0..WORKERS)
                .flat_map(move |number| (0..self.steps).map(move |step| (number, step)))
                .filter(move |(_, step)| step % 4 == kind)
        };
        let is_there = |id: &str| tasks.iter().any(|task| task.id.as_str() == id);
        let lost = of(0).filter(|(number, step)| !is_there(&format!("made-{number}-{step}"))).count();
        self.expect("tasks that are not there", lost, 0);
        let mut notes = BTreeMap::<&str, usize>::new();
        for note in tasks.iter().flat_map(|task| &task.notes) {
            *notes.entry(&note.text).or_default() += 1;
        }
        let once =
            of(1).filter(|(number, step)| notes.get(format!("{number}-{step}").as_str()) == Some(&1)).count();
        self.expect("notes that are there once", once, of(1).count());
        self.expect("different notes", notes.len(), of(1).count());
        let counted: u64 = tasks.iter().filter_map(|task| task.metadata.context.get("count")?.as_u64()).sum();
        self.expect("counted", usize::try_from(counted).unwrap(), of(2).count());
        self.count_taken(&tasks, &of(3).collect::<Vec<_>>());
        let events = manager.history(None, 0, 0).unwrap();
        let gaps = events.iter().zip(1..).filter(|(event, revision)| event.revision != *revision).count();
        self.expect("gaps in the history", gaps, 0);
        self.wrong.lock().unwrap().extend(self.home.broken_invariants());
    }

    fn count_taken(&self, tasks: &[Task], expected: &[(usize, usize)]) {
        let by = |task: &Task| {
            let result = task.result.as_ref()?;
            let number = result["by"].as_str()?.strip_prefix("worker")?.parse().ok()?;
            Some((number, usize::try_from(result["step"].as_u64()?).ok()?))
        };
        let mut taken: Vec<(usize, usize)> = tasks.iter().filter_map(by).collect();
        taken.sort_unstable();
        if taken != expected {
            self.complain(format!("{} tasks were taken in place of {}", taken.len(), expected.len()));
        }
        let held = tasks.iter().filter(|task| task.status == Status::InProgress).count();
        self.expect("tasks that are still held", held, 0);
    }

    fn expect(&self, label: &str, found: usize, expected: usize) {
        if found != expected {
            self.complain(format!("{label}: {found} in place of {expected}"));
        }
    }
}

impl Outcome {
    fn assert_right(&self) {
        let some: Vec<&String> = self.wrong.iter().take(10).collect();
        assert!(some.is_empty(), "{} complaints, as {some:#?}", self.wrong.len());
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { wrong, slowest, fastest, kills } = self;
        write!(f, "{} lost or doubled, {kills} kills, slowest/fastest {slowest}/{fastest}", wrong.len())
    }
}

#[test]
fn a_missing_store_is_created_once() {
    let mut figures = Figures::of("a_missing_store_is_created_once", 0);
    for home in [Home::new(), Home::new().with_json()] {
        let create = |number: usize| {
            let id = format!("t{number}");
            let mut command = home.program(&["create", "a task", "--id", &id]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let children: Vec<_> = (0..30).map(create).collect();
        let failed: Vec<Run> = children
            .into_iter()
            .map(|child| Run::from(child.wait_with_output().unwrap()))
            .filter(|run| run.code != Some(0))
            .collect();
        assert!(failed.is_empty(), "{failed:?}");
        assert_eq!(home.manager().list(&Query::default()).unwrap().tasks.len(), 30);
        home.assert_sound();
        figures.add(format!("30 of 30 created at once in {} that was not there", home.store_kind()));
    }
}

/// Two processes issue the same claim at the same moment, a hundred times.
#[test]
fn claims_in_lock_step_have_one_winner() {
    const ROUNDS: usize = 100;
    let mut figures = Figures::of("claims_in_lock_step_have_one_winner", 0);
    for (home, by_id) in [(Home::new(), true), (Home::new(), false), (Home::new().with_json(), true)] {
        let winners = lock_step(&home, ROUNDS, by_id);
        let how = if by_id { "claim ID" } else { "claim --next" };
        figures.add(format!("{winners} winners in {ROUNDS} rounds of `{how}` in {}", home.store_kind()));
        assert_eq!(winners, ROUNDS);
    }
    let control = lock_step(&Home::new().with_fault("DecideBeforeLock"), ROUNDS, true);
    assert!(control > ROUNDS, "the control: {control} winners in {ROUNDS} rounds");
}

fn lock_step(home: &Home, rounds: usize, by_id: bool) -> usize {
    let mut workers = ["one", "two"].map(|name| Worker::start(&mut Worker::command(home, name)));
    let mut winners = 0;
    for round in 0..rounds {
        let id = format!("t{round}");
        home.create(&id);
        let step = if by_id { format!("claim {id}") } else { "claim-next".to_owned() };
        for worker in &mut workers {
            worker.tell(&step);
        }
        for answer in workers.iter_mut().map(|worker| worker.answer().expect("an answer")) {
            winners += usize::from(answer.is_ok());
            // The later one gets a refusal; with the fault both may succeed.
            assert_ne!(answer.outcome, "failed", "{answer:?}");
        }
    }
    for worker in workers {
        assert_eq!(worker.finish(), []);
    }
    winners
}

/// Runs, commands and a program with the library share the work of one plan.
#[test]
fn all_kinds_of_users_share_a_plan() {
    const TASKS: usize = 120;
    let mut figures = Figures::of("all_kinds_of_users_share_a_plan", 0);
    let home = Home::new();
    let by_run =
        |number: usize| json!({"id": format!("auto{number}"), "run": ["mkdir", format!("made{number}")]});
    let by_hand = |number: usize| json!({"id": format!("hand{number}"), "needs": [format!("auto{number}")]});
    let mut tasks: Vec<Value> = (0..TASKS).map(by_run).collect();
    tasks.extend((0..TASKS).map(by_hand));
    home.apply(&json!({"tasks": tasks}).to_string());
    thread::scope(|scope| {
        let run = || home.program(&["run-all-ready", "--wait"]);
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(move || Run::of(&mut run()))).collect();
        scope.spawn(|| finish_by_commands(&home, TASKS));
        scope.spawn(|| finish_by_library(&home, TASKS));
        for run in runs {
            run.join().unwrap().ok();
        }
    });
    let tasks = home.manager().list(&Query::default()).unwrap().tasks;
    assert!(tasks.iter().all(|task| task.status == Status::Done && task.attempt == 1), "{tasks:?}");
    home.assert_sound();
    figures.add(format!("{} tasks done once each by 3 runs, commands and a library user", tasks.len()));
}

fn is_all_done(home: &Home, tasks: usize) -> bool {
    home.manager().counts().unwrap().get(&Status::Done) == Some(&(2 * tasks as u64))
}

fn finish_by_commands(home: &Home, tasks: usize) {
    while !is_all_done(home, tasks) {
        let claimed =
            Command::output(&mut home.program(&["claim", "--next", "--actor", "command", "--quiet"]))
                .unwrap();
        let id = String::from_utf8(claimed.stdout).unwrap();
        if claimed.status.success() {
            home.run(&["done", id.trim(), "--actor", "command"]).ok();
        }
    }
}

fn finish_by_library(home: &Home, tasks: usize) {
    let manager = home.manager().with_actor("library");
    while !is_all_done(home, tasks) {
        if let Ok(id) = manager.claim_next(Duration::from_mins(30)) {
            manager.done(&[id.to_string()], taskpawl::Ending::default()).unwrap();
        }
    }
}
