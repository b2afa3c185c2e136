//! How things are counted: by valgrind and strace, around one measurement of the benchmarks.

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

    /// Returns a new store that holds a graph of which nothing has run.
    pub(crate) fn store(&self, shape: &str, tasks: u32) -> String {
        let path =
            self.path(&format!("{shape}-{tasks}-{}.db", std::fs::read_dir(self.0.path()).unwrap().count()));
        let store = path.to_string_lossy().into_owned();
        ran(Command::new(BENCH).args(["once", "apply", &store, shape, &tasks.to_string()]));
        store
    }
}

/// Returns whether `program` may do its work here; says that `what` is skipped if not.
pub(crate) fn is_there(program: &str, args: &[&str], what: &str) -> bool {
    let is_there = Command::new(program).args(args).output().is_ok_and(|output| output.status.success());
    if !is_there {
        say(&format!(
            "SKIPPED {what}: `{program}` is not there, or may not trace; scripts/install-tools installs it"
        ));
    }
    is_there
}

/// Prints a line, also where a test passes.
pub(crate) fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Returns how many instructions a measurement takes, with all that stands around it.
pub(crate) fn instructions(words: &[&str]) -> f64 {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", BENCH, "once"]);
    let text = String::from_utf8(ran(command.args(words)).stderr).unwrap();
    let number = text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    number.unwrap_or_else(|| panic!("callgrind does not say what it collected: {text}"))
}

/// Returns how many of the given system calls a measurement makes, with all that stands around it.
pub(crate) fn system_calls(scratch: &Scratch, calls: &str, words: &[&str]) -> f64 {
    let log = scratch.path("strace.log");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "--seccomp-bpf", "-e", &format!("trace={calls}"), "-o"]).arg(&log);
    ran(command.args([BENCH, "once"]).args(words));
    let begun = |line: &&str| line.contains('(') && !line.contains(" resumed>");
    let count = std::fs::read_to_string(log).unwrap().lines().filter(begun).count();
    f64::from(u32::try_from(count).unwrap())
}

/// Returns the bytes that have been put into the write-ahead log and the database of a store: what the kernel was given.
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
