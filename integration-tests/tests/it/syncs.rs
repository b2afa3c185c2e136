//! Number of syncs of the store, counted in system calls: a sync is the main cost of a durable write.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use crate::support::{Figures, Home, Run, Strace, Trace, skip};

/// System calls that make data durable.
const SYNCS: &str = "fsync,fdatasync,sync_file_range,msync,syncfs,sync";

/// Limit per task with 64 calls in flight.
const MAX_SYNCS: f64 = 0.2;

/// Runs `args`; returns the outcome and the number of syncs.
fn syncs_of(strace: &Strace, home: &Home, args: &[&str]) -> (Run, usize) {
    let (run, trace) = traced(strace, home, SYNCS, &home.program(args));
    (run, trace.count())
}

fn traced(strace: &Strace, home: &Home, calls: &str, command: &Command) -> (Run, Trace) {
    let log = home.path("strace.log");
    let run = Run::of(&mut strace.of(home, calls, &log, command));
    (run, Trace::read(&log))
}

#[test]
fn syncs_of_runs() {
    let Some(strace) = Strace::find("syncs of runs") else { return };
    let mut figures = Figures::of("syncs_of_runs", 0);
    let wide = least(MAX_SYNCS, || wide_syncs(&strace, ""));
    figures.add(format!("{wide:.3} syncs a task with 64 calls in flight"));
    let alone = alone_syncs(&strace);
    figures.add(format!("{alone:.3} alone"));
    assert!(wide <= MAX_SYNCS, "{wide} syncs a task with 64 calls in flight");
    assert!((1.0..=2.0).contains(&alone), "{alone} syncs a task alone");
    let none = wide_syncs(&strace, "SkipSync");
    assert!(none < 0.01, "the control: {none} syncs a task where there should be none");
}

/// Returns the lowest of several tries, or the first below the limit: load on the machine changes the number of calls that share a
/// commit.
fn least(limit: f64, count: impl Fn() -> f64) -> f64 {
    const TRIES: usize = 5;
    let mut least = f64::INFINITY;
    for _ in 0..TRIES {
        least = least.min(count());
        if least <= limit {
            break;
        }
    }
    least
}

fn wide_syncs(strace: &Strace, fault: &str) -> f64 {
    const TASKS: u32 = 960;
    let home = Home::new().with_fault(fault);
    // The calls take about as long as a fast program.
    let task =
        |number| format!("{{\"id\": \"t{number}\", \"call\": {{\"sleep\": {{\"duration\": \"5ms\"}}}}}}");
    let tasks: Vec<String> = (0..TASKS).map(task).collect();
    home.apply(&format!("{{\"tasks\": [{}]}}", tasks.join(",")));
    let (run, syncs) = syncs_of(strace, &home, &["run-all-ready", "--jobs", "64"]);
    run.ok();
    f64::from(u32::try_from(syncs).unwrap()) / f64::from(TASKS)
}

fn alone_syncs(strace: &Strace) -> f64 {
    const TASKS: u32 = 100;
    let home = Home::new();
    home.apply(&chain(TASKS));
    let (run, syncs) = syncs_of(strace, &home, &["run-all-ready", "--jobs", "1"]);
    run.ok();
    f64::from(u32::try_from(syncs).unwrap()) / f64::from(TASKS)
}

/// Returns a chain of tasks with one program each; the last one has three.
fn chain(length: u32) -> String {
    let task = |number: u32| {
        let needs =
            number.checked_sub(1).map(|before| format!("\"needs\": [\"t{before}\"], ")).unwrap_or_default();
        let call = |name: &str| format!("{{\"exec\": {{\"argv\": [\"true\", \"{name}\"]}}}}");
        let calls = if number + 1 < length {
            call("only")
        } else {
            [call("one"), call("two"), call("three")].join(",")
        };
        let call =
            if number + 1 < length { format!("\"call\": {calls}") } else { format!("\"calls\": [{calls}]") };
        format!("{{\"id\": \"t{number}\", {needs}{call}}}")
    };
    let tasks: Vec<String> = (0..length).map(task).collect();
    format!("{{\"tasks\": [{}]}}", tasks.join(","))
}

/// The start of each call of a chain is durable before its program starts: there is a sync between two programs.
#[test]
fn syncs_come_before_effects() {
    let Some(strace) = Strace::find("syncs before effects") else { return };
    let mut figures = Figures::of("syncs_come_before_effects", 0);
    let Some((programs, early)) = early_starts(&strace, "") else {
        skip("strace", "syncs before effects", "strace may not read the arguments of programs");
        return;
    };
    figures.add(format!("{programs} programs, {early} started before the sync"));
    assert_eq!((programs, early), (22, 0));
    let (_, early) = early_starts(&strace, "SkipSync").expect("the same could be read before");
    assert!(early > 0, "the control: without syncs every start is too early");
}

/// Returns the number of programs that a run started, and those without a sync since the former one. `None` without administrator
/// rights: strace cannot read arguments from the supervisor then, because it hides its memory.
fn early_starts(strace: &Strace, fault: &str) -> Option<(usize, usize)> {
    let home = Home::new();
    home.apply(&chain(20));
    let home = home.with_fault(fault);
    let args = ["run-all-ready", "--jobs", "1"];
    let (run, trace) = traced(strace, &home, &format!("execve,execveat,{SYNCS}"), &home.program(&args));
    run.ok();
    let (mut programs, mut early, mut is_durable) = (0, 0, false);
    for line in trace.lines() {
        if is_end_of_sync(line) {
            is_durable = true;
        } else if line.contains("\"true\"") && !line.contains("ENOENT") {
            programs += 1;
            early += usize::from(!std::mem::take(&mut is_durable));
        }
    }
    let is_hidden = programs == 0 && trace.lines().any(|line| line.contains("execve(0x"));
    (!is_hidden).then_some((programs, early))
}

fn is_end_of_sync(line: &str) -> bool {
    let is_sync = line.contains("sync(") || line.contains("sync resumed>");
    is_sync && line.contains("= 0")
}

#[test]
fn syncs_of_commands() {
    let Some(strace) = Strace::find("syncs of commands") else { return };
    let mut figures = Figures::of("syncs_of_commands", 0);
    for home in [Home::new(), Home::new().with_json()] {
        home.run(&["create", "first", "--id", "first"]).ok();
        let writes: Vec<usize> = WRITES.iter().map(|args| write_syncs(&strace, &home, args)).collect();
        let reads = READS.iter().map(|args| read_syncs(&strace, &home, args)).sum::<usize>();
        let (sum, most) = (writes.iter().sum::<usize>(), writes.iter().max().unwrap());
        figures.add(format!(
            "{sum} in {} writes, {most} at most, and {reads} in {} reads of {}",
            writes.len(),
            READS.len(),
            home.store_kind()
        ));
        assert!(sum <= 2 * writes.len(), "{writes:?}");
    }
}

const WRITES: &[&[&str]] = &[
    &["create", "a task", "--id", "a"],
    &["create", "another", "--id", "b", "--needs", "a"],
    &["note", "a", "a remark"],
    &["update", "a", "--priority", "high"],
    &["claim", "a"],
    &["renew", "a"],
    &["release", "a"],
    &["claim", "--next"],
    &["done", "a"],
    &["block", "b", "--reason", "not now"],
    &["unblock", "b"],
    &["skip", "b"],
    &["retry", "b"],
    &["cancel", "b"],
    &["delete", "b"],
];

const READS: &[&[&str]] = &[
    &["list"],
    &["show", "a"],
    &["ready"],
    &["runs"],
    &["history"],
    &["graph"],
    &["where"],
    &["list", "--json", "--limit", "0"],
];

fn write_syncs(strace: &Strace, home: &Home, args: &[&str]) -> usize {
    let log_before = log_length(home);
    let (run, syncs) = syncs_of(strace, home, args);
    let run = run.ok();
    assert!((1..=most_syncs(home, log_before)).contains(&syncs), "{syncs} syncs of {args:?}: {run:?}");
    syncs
}

/// Returns the maximum number of syncs of a write. Sometimes a write also empties the log: it syncs the database first, and the
/// next write starts the log again with a sync of its header.
fn most_syncs(home: &Home, log_before: Option<u64>) -> usize {
    match (log_before, log_length(home)) {
        (_, Some(0)) | (Some(0), _) => 3,
        (Some(_), _) => 1,
        // The JSON store writes a new file and renames it: a sync of the file and one of the directory.
        (None, _) => 2,
    }
}

fn log_length(home: &Home) -> Option<u64> {
    std::fs::metadata(home.path("tasks.db-wal")).ok().map(|log| log.len())
}

fn read_syncs(strace: &Strace, home: &Home, args: &[&str]) -> usize {
    let before = state_of_files(&home.path(""));
    let (run, syncs) = syncs_of(strace, home, args);
    run.ok();
    std::fs::remove_file(home.path("strace.log")).unwrap();
    let after = state_of_files(&home.path(""));
    let is_same = |name: &&String| before.get(*name) == after.get(*name);
    let changed: Vec<&String> = before.keys().chain(after.keys()).filter(|name| !is_same(name)).collect();
    assert!(changed.is_empty(), "{args:?} changed {changed:?}");
    assert_eq!(syncs, 0, "{args:?}");
    syncs
}

/// Returns content and modification time of every file below a directory, except the `-shm` file, which readers change, too.
fn state_of_files(directory: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(state_of_files(&path));
        } else if !path.ends_with("strace.log") && !path.to_string_lossy().ends_with("-shm") {
            let modified = entry.metadata().unwrap().modified().unwrap();
            found.insert(path.display().to_string(), (std::fs::read(&path).unwrap(), modified));
        }
    }
    found
}
