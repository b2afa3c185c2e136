//! An I/O error of the system becomes an error of the command, never a false "ok", and the store opens again.

use std::collections::BTreeMap;
use std::fmt;
use std::process::Command;
use std::sync::Mutex;

use crate::support::{
    Figures, Home, Random, Run, Strace, Trace, Worker, answers, program_of, scale, seed, step_is_done,
};

/// System calls by which a store uses its files. Some machines lack a few of them.
const CALLS: &[&str] = &[
    "openat",
    "read",
    "pread64",
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "ftruncate",
    "fcntl",
    "flock",
    "fstat",
    "newfstatat",
    "statx",
    "statfs",
    "lseek",
    "mmap",
    "rename",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "close",
    "getdents64",
];

/// Error text of the store if the outcome of a commit is unknown.
const IN_DOUBT: &str = "may or may not contain the change";

/// Warning of a command whose change was saved but could not be read back.
const UNREAD: &str = "done, but it could not be shown";

/// Error text of the store for further commands after that.
const CLOSED: &str = "is closed after a failed write";

/// Panic message of the standard library for a failed `closedir`. No Linux file system fails so; the answer and the store are
/// checked all the same.
const UNCLOSED: &str = "unexpected error during closedir";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// Creates the store.
    First,
    Create,
    Done,
    Apply,
    Ready,
    /// A run without ready tasks.
    Run,
    /// Several commands of one process: after one with an unknown outcome, no other may go through.
    Several,
}

const OPERATIONS: [Operation; 7] = [
    Operation::First,
    Operation::Create,
    Operation::Done,
    Operation::Apply,
    Operation::Ready,
    Operation::Run,
    Operation::Several,
];

#[derive(Debug, Clone, Copy)]
struct Case {
    is_json: bool,
    operation: Operation,
}

/// Position and kind of an injected fault.
#[derive(Debug, Clone)]
struct Point {
    case: Case,
    call: &'static str,
    number: usize,
    error: &'static str,
    /// Whether every later call of the kind fails, too.
    is_sticky: bool,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = if self.case.is_json { "json" } else { "database" };
        let plus = if self.is_sticky { "+" } else { "" };
        write!(
            f,
            "{:?} on a {store}, {} {}{plus}: {}",
            self.case.operation, self.call, self.number, self.error
        )
    }
}

#[derive(Debug, Default)]
struct Tally {
    faults: usize,
    answered_ok: usize,
    in_doubt: usize,
    /// Saved, but not read back.
    unread: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn plus(mut self, other: Self) -> Self {
        self.faults += other.faults;
        self.answered_ok += other.answered_ok;
        self.in_doubt += other.in_doubt;
        self.unread += other.unread;
        self.wrong.extend(other.wrong);
        self
    }
}

impl Case {
    fn home(self, faults: &str) -> Home {
        let home = Home::new().with_fault(faults);
        let home = if self.is_json { home.with_json() } else { home };
        if self.operation != Operation::First {
            home.create("t0");
            home.create("t1");
        }
        home
    }

    fn step(self) -> Option<&'static str> {
        match self.operation {
            Operation::First | Operation::Create => Some("create new"),
            Operation::Done => Some("done t0"),
            Operation::Apply => Some("apply plan 50"),
            Operation::Ready | Operation::Run | Operation::Several => None,
        }
    }

    fn command(self, home: &Home) -> Command {
        match self.operation {
            Operation::Ready => home.program(&["ready"]),
            Operation::Run => home.program(&["run-all-ready"]),
            Operation::Several => {
                let script = home.file("script", &several().join("\n"));
                Worker::with_script(home, "worker", &script, 0)
            }
            Operation::First | Operation::Create | Operation::Done | Operation::Apply => {
                program_of(home, self.step().unwrap_or_default())
            }
        }
    }
}

fn several() -> [String; 6] {
    ["create a", "note a one", "create b", "note b two", "done a", "create c"].map(str::to_owned)
}

#[test]
fn io_faults() {
    let Some(strace) = Strace::find("P2 I/O faults") else { return };
    let mut figures = Figures::of("io_faults", seed());
    let is_full = scale(0, 1) == 1;
    let errors: &[&str] =
        if is_full { &["EIO", "ENOSPC", "EDQUOT", "EINTR", "EMFILE"] } else { &["EIO", "ENOSPC"] };
    let cases = [false, true].into_iter();
    let cases = cases.flat_map(|is_json| OPERATIONS.map(|operation| Case { is_json, operation }));
    let all: Vec<Point> = cases.flat_map(|case| points(&strace, case, errors)).collect();
    let count = scale(400, usize::MAX).min(all.len());
    let chosen = evenly(&all, count, &mut Random::new(figures.seed));
    let tally = tally(&strace, &chosen, "");
    let Tally { faults, answered_ok, in_doubt, unread, wrong } = &tally;
    figures.add(format!(
        "{faults} of {} faults ({}), {answered_ok} answered ok, {in_doubt} in doubt, {unread} done but not shown, {} false answers or panics",
        all.len(),
        errors.join(", "),
        wrong.len()
    ));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(*answered_ok < *faults && *in_doubt > 0, "the faults are felt: {tally:?}");
}

#[test]
fn io_faults_are_seen() {
    let Some(strace) = Strace::find("P2 I/O faults, control") else { return };
    let mut figures = Figures::of("io_faults_are_seen", 0);
    let case = Case { is_json: false, operation: Operation::Create };
    let all = points(&strace, case, &["EIO"]);
    let writes = all.into_iter().filter(|point| ["pwrite64", "fsync", "fdatasync"].contains(&point.call));
    let tally = tally(&strace, &writes.collect::<Vec<_>>(), "SwallowErrors");
    figures.add(format!(
        "{} faults, {} false answers when errors are swallowed",
        tally.faults,
        tally.wrong.len()
    ));
    assert!(!tally.wrong.is_empty(), "{tally:?}");
}

#[test]
fn a_change_that_cannot_be_read_back_is_reported_as_done() {
    let Some(strace) = Strace::find("P2 changes that cannot be read back") else { return };
    let mut figures = Figures::of("a_change_that_cannot_be_read_back_is_reported_as_done", 0);
    let case = Case { is_json: false, operation: Operation::Create };
    let mut unread = 0;
    for point in points(&strace, case, &["EIO"]) {
        // Reads besides locks: the calls that reading back consists of.
        if !["pread64", "statx"].contains(&point.call) || point.is_sticky {
            continue;
        }
        let home = case.home("");
        let run = run_with(&strace, &home, &point);
        assert_eq!(authorize(&home, case, &run), Vec::<String>::new(), "{point}: {run:?}");
        if run.stderr.contains(UNREAD) {
            assert_eq!((run.code, run.stdout.as_str()), (Some(0), "new\n"), "{point}: {run:?}");
            unread += 1;
        }
    }
    figures.add(format!("{unread} faults after the commit"));
    assert!(unread > 0);
}

#[test]
fn a_failed_sync_closes_the_handle() {
    let Some(strace) = Strace::find("P2 failed syncs") else { return };
    let mut figures = Figures::of("a_failed_sync_closes_the_handle", 0);
    for is_json in [false, true] {
        let case = Case { is_json, operation: Operation::Several };
        let mut closed = 0;
        for point in points(&strace, case, &["EIO"]) {
            // Only one sync fails. The kernel may have dropped the dirty pages, so a later successful sync proves nothing.
            if !point.call.ends_with("sync") || point.is_sticky {
                continue;
            }
            let home = case.home("");
            let run = run_with(&strace, &home, &point);
            assert_eq!(authorize(&home, case, &run), Vec::<String>::new(), "{point}: {run:?}");
            closed += usize::from(run.stdout.contains(IN_DOUBT) && run.stdout.contains(CLOSED));
        }
        let store = if is_json { "JSON" } else { "a database" };
        figures.add(format!("{closed} syncs closed {store}"));
        assert!(closed > 0, "{store}");
    }
}

#[test]
fn only_the_closedir_panic_of_the_standard_library_is_ignored() {
    let panic = |at: &str, said: &str| {
        format!("thread 'main' (7) panicked at {at}:1:2:\n{said}\nnote: run with `RUST_BACKTRACE=1`\n")
    };
    let std = "/rustc/0/library/std/src/sys/fs/unix.rs";
    let unclosed = panic(std, &format!("{UNCLOSED}: Os {{ code: 5, kind: Uncategorized }}"));
    let is_ours = |code, stderr: &str| {
        is_panic_of_ours(&Run { code, stdout: String::new(), stderr: stderr.to_owned() })
    };
    assert!(!is_ours(Some(101), &unclosed));
    assert!(!is_ours(Some(0), "") && !is_ours(Some(8), "error: the store is closed"));
    for said in [
        panic(std, "unexpected error during readdir: Os { code: 5 }"),
        panic(std, "called `Option::unwrap()` on a `None` value"),
        panic("crates/taskpawl-store/src/x.rs", UNCLOSED),
        format!("error: {UNCLOSED}\n{}", panic("crates/taskpawl-store/src/x.rs", "BUG: it is not there")),
        format!("{unclosed}{}", panic("crates/taskpawl-store/src/x.rs", "BUG: it is not there")),
        format!("{}{unclosed}", panic("crates/taskpawl-store/src/x.rs", "BUG: it is not there")),
        format!("error: {UNCLOSED}\n"),
    ] {
        assert!(is_ours(Some(101), &said), "{said}");
    }
    assert!(is_ours(None, ""), "a signal");
}

/// Returns `count` points, evenly spread, beginning at a random one.
fn evenly(all: &[Point], count: usize, random: &mut Random) -> Vec<Point> {
    let first = random.below(all.len().max(1));
    (0..count).map(|number| all[(first + number * all.len() / count) % all.len()].clone()).collect()
}

/// Returns a point for every call on a file of the store in an operation without faults, for each way in which it can fail.
fn points(strace: &Strace, case: Case, errors: &[&'static str]) -> Vec<Point> {
    let home = case.home("");
    let log = home.path("strace.log");
    let list: Vec<String> = CALLS.iter().map(|call| format!("?{call}")).collect();
    let traced = strace.of(&home, &list.join(","), &log, &case.command(&home));
    let run = Run::of(&mut strace.of_store(&home, &traced));
    // A run without ready tasks may end with 3.
    assert!(matches!(run.code, Some(0 | 3)), "{run:?}");
    let mut seen = BTreeMap::<(String, &'static str), usize>::new();
    let mut points = Vec::new();
    for line in Trace::read(&log).lines() {
        let mut words = line.split_whitespace();
        let (Some(thread), Some(word)) = (words.next(), words.next()) else { continue };
        let is = |name: &&&str| word.split_once('(').is_some_and(|(found, _)| found == **name);
        let Some(call) = CALLS.iter().find(is) else { continue };
        // strace's `when=` counts per thread, so the points are counted per thread, too.
        let number = seen.entry((thread.to_owned(), call)).or_default();
        *number += 1;
        for error in errors {
            // A sticky EINTR is retried for ever. SQLite treats a failing lock as a held one and waits for its busy time-out, so
            // sticky lock faults are slow.
            let is_once = *error == "EINTR" || *call == "fcntl" && scale(0, 1) == 0;
            let modes: &[bool] = if is_once { &[false] } else { &[false, true] };
            points.extend(modes.iter().map(|is_sticky| Point {
                case,
                call,
                number: *number,
                error,
                is_sticky: *is_sticky,
            }));
        }
    }
    points
}

/// Injects the fault at each point, several at a time because some commands only wait.
fn tally(strace: &Strace, points: &[Point], faults: &str) -> Tally {
    const LANES: usize = 4;
    let points = Mutex::new(points.iter());
    let next = || points.lock().unwrap().next();
    let in_turn = || std::iter::from_fn(next).map(|point| tally_at(strace, point, faults));
    std::thread::scope(|scope| {
        let lanes = [(); LANES].map(|()| scope.spawn(|| in_turn().fold(Tally::default(), Tally::plus)));
        lanes.into_iter().map(|lane| lane.join().unwrap()).fold(Tally::default(), Tally::plus)
    })
}

fn tally_at(strace: &Strace, point: &Point, faults: &str) -> Tally {
    let home = point.case.home(faults);
    let run = run_with(strace, &home, point);
    let wrong = authorize(&home, point.case, &run);
    Tally {
        faults: 1,
        answered_ok: usize::from(run.code == Some(0)),
        in_doubt: usize::from(format!("{}{}", run.stdout, run.stderr).contains(IN_DOUBT)),
        unread: usize::from(run.stderr.contains(UNREAD)),
        wrong: wrong.into_iter().map(|mistake| format!("{point}: {mistake}: {run:?}")).collect(),
    }
}

/// Runs the operation of a point with its fault.
fn run_with(strace: &Strace, home: &Home, point: &Point) -> Run {
    let when = format!("{}{}", point.number, if point.is_sticky { "+" } else { "" });
    let inject = format!("{}:error={}:when={when}", point.call, point.error);
    let traced = strace.injecting(home, point.call, &inject, &point.case.command(home));
    Run::of(&mut strace.of_store(home, &traced))
}

/// Returns whether a process panicked or died of a signal. A report only about the standard library's `closedir` does not count.
fn is_panic_of_ours(run: &Run) -> bool {
    let mut panics = run.stderr.split("panicked at ").skip(1).peekable();
    let is_unclosed = |panic: &str| {
        let mut lines = panic.lines();
        let of_library = lines.next().is_some_and(|place| place.contains("library/std/src/"));
        of_library && lines.next().is_some_and(|said| said.starts_with(UNCLOSED))
    };
    match panics.peek() {
        Some(_) => !panics.all(is_unclosed),
        None => run.code.is_none_or(|code| code == 101),
    }
}

/// Returns the mistakes in an answer and in the store after it.
fn authorize(home: &Home, case: Case, run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    if is_panic_of_ours(run) {
        wrong.push("a panic or a signal".to_owned());
    }
    let manager = home.manager();
    if let Some(step) = case.step() {
        let says = (run.code == Some(0), run.stderr.contains(IN_DOUBT));
        match (step_is_done(&manager, step), says) {
            (Err(error), _) => wrong.push(error),
            (Ok(false), (true, _)) => wrong.push("it says ok, but nothing is there".to_owned()),
            (Ok(true), (false, false)) => wrong.push("it says that it failed, but it is there".to_owned()),
            (Ok(_), _) => {}
        }
    }
    match case.operation {
        Operation::Ready
            if run.code == Some(0) && !(run.stdout.contains("t0") && run.stdout.contains("t1")) =>
        {
            wrong.push("it says ok, but does not list the ready tasks".to_owned());
        }
        Operation::Several => wrong.extend(judge_several(home, run)),
        Operation::First
        | Operation::Create
        | Operation::Done
        | Operation::Apply
        | Operation::Ready
        | Operation::Run => {}
    }
    match manager.read(|view| Ok(taskpawl_testkit::broken_invariants(view)?)) {
        Ok(broken) => wrong.extend(broken),
        Err(error) => wrong.push(format!("it does not open: {error}")),
    }
    if let Err(error) = manager.create(crate::support::named("after")) {
        wrong.push(format!("the next write: {error}"));
    }
    wrong
}

fn judge_several(home: &Home, run: &Run) -> Vec<String> {
    let manager = home.manager();
    let mut wrong = Vec::new();
    let mut is_closed = false;
    for answer in answers(&run.stdout) {
        let step = &several()[answer.step];
        let is_done = step_is_done(&manager, step);
        match (is_done, answer.is_ok()) {
            (Err(error), _) => wrong.push(error),
            (Ok(false), true) => wrong.push(format!("`{step}` is answered ok, but is not there")),
            (Ok(true), false) if !answer.text.contains(IN_DOUBT) => {
                wrong.push(format!("`{step}` is said to have failed, but is there"));
            }
            (Ok(_), _) => {}
        }
        if is_closed && !answer.text.contains(CLOSED) {
            wrong.push(format!("`{step}` was tried through a handle that is in doubt"));
        }
        is_closed |= answer.text.contains(IN_DOUBT);
    }
    wrong
}
