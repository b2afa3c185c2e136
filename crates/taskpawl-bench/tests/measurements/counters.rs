//! Counters based on valgrind and strace, each for one measurement of the benchmarks.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

const BENCH: &str = env!("CARGO_BIN_EXE_taskpawl-bench");

/// A directory for stores.
#[derive(Debug)]
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns a new store with a graph that has not been run.
    pub(crate) fn store(&self, shape: &str, tasks: u32) -> String {
        let path =
            self.path(&format!("{shape}-{tasks}-{}.db", std::fs::read_dir(self.0.path()).unwrap().count()));
        let store = path.to_string_lossy().into_owned();
        ran(Command::new(BENCH).args(["once", "apply", &store, shape, &tasks.to_string()]));
        store
    }
}

/// Returns whether `program` works here; otherwise prints that the check `what` is skipped.
pub(crate) fn is_there(program: &str, args: &[&str], what: &str) -> bool {
    let is_there = Command::new(program).args(args).output().is_ok_and(|output| output.status.success());
    if !is_there {
        taskpawl_fuzz::skip(
            program,
            what,
            "it is not installed, or may not trace; see scripts/install-tools",
        );
    }
    is_there
}

/// Prints a line even if the test passes.
pub(crate) fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Returns the number of instructions of a measurement, including its setup.
pub(crate) fn instructions(words: &[&str]) -> f64 {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", BENCH, "once"]);
    let text = String::from_utf8(ran(command.args(words)).stderr).unwrap();
    let number = text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    number.unwrap_or_else(|| panic!("callgrind does not say what it collected: {text}"))
}

/// Returns the number of the given system calls of a measurement, including its setup.
pub(crate) fn system_calls(scratch: &Scratch, calls: &str, words: &[&str]) -> f64 {
    let log = scratch.path("strace.log");
    let mut command = Command::new("strace");
    // A call that is interrupted by another thread has a second line, which is marked as resumed.
    command.args(["-f", "-qq", "--seccomp-bpf", "-e", &format!("trace={calls}"), "-o"]).arg(&log);
    ran(command.args([BENCH, "once"]).args(words));
    let begun = |line: &&str| line.contains('(') && !line.contains(" resumed>");
    let count = std::fs::read_to_string(log).unwrap().lines().filter(begun).count();
    f64::from(u32::try_from(count).unwrap())
}

/// Returns the number of bytes that a measurement writes, mostly to the database and its write-ahead log.
pub(crate) fn bytes_written(scratch: &Scratch, words: &[&str]) -> f64 {
    let log = scratch.path("writes.log");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "--seccomp-bpf", "-e", "trace=write,pwrite64,writev,pwritev", "-o"]).arg(&log);
    ran(command.args([BENCH, "once"]).args(words));
    let returned =
        |line: &str| line.rsplit_once(" = ").and_then(|(_, count)| count.trim().parse::<u32>().ok());
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().filter_map(returned).map(f64::from).sum()
}

fn ran(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}
