//! Tracing the system calls of a process, injecting faults into them, and killing the process at one of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::home::{Home, is_there};
use taskpawl_fuzz::skip;

/// A usable `strace` program.
#[derive(Debug)]
pub(crate) struct Strace;

impl Strace {
    /// Returns `strace` if it is installed and may trace; otherwise prints that `check` is skipped.
    pub(crate) fn find(check: &str) -> Option<Self> {
        if !is_there("strace") {
            skip("strace", check, "there is no strace");
            return None;
        }
        let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).output().unwrap();
        if !traced.status.success() {
            skip(
                "strace",
                check,
                format!("strace may not trace: {}", String::from_utf8_lossy(&traced.stderr)),
            );
            return None;
        }
        Some(Self)
    }

    /// Returns `command` under strace: the given system calls of all its threads and children, into `log`.
    #[expect(clippy::unused_self, reason = "a value proves that strace is usable")]
    pub(crate) fn of(&self, home: &Home, calls: &str, log: &Path, command: &Command) -> Command {
        let mut traced = Command::new("strace");
        traced.args(["-f", "-q", "--seccomp-bpf", "-e"]).arg(format!("trace={calls}"));
        traced.arg("-o").arg(log).arg(command.get_program()).args(command.get_args());
        home.prepare(&mut traced);
        traced
    }

    /// Returns `command` under strace, with the paths of descriptors.
    pub(crate) fn with_paths(&self, home: &Home, calls: &str, log: &Path, command: &Command) -> Command {
        let plain = self.of(home, calls, log, command);
        let mut traced = Command::new("strace");
        traced.arg("-y").args(plain.get_args());
        home.prepare(&mut traced);
        traced
    }

    /// Restricts `traced` to calls on the files of the store and their directory. strace also counts only these calls.
    #[expect(clippy::unused_self, reason = "a value proves that strace is usable")]
    pub(crate) fn of_store(&self, home: &Home, traced: &Command) -> Command {
        const ENDINGS: [&str; 6] = ["", ".lock", "-wal", "-shm", "-journal", ".new"];
        let store = Path::new(home.store().trim_start_matches("json:"));
        let mut narrowed = Command::new("strace");
        for path in ENDINGS.map(|ending| format!("{}{ending}", store.display())) {
            narrowed.args(["-P", &path]);
        }
        narrowed.arg("-P").arg(store.parent().unwrap());
        narrowed.args(traced.get_args());
        home.prepare(&mut narrowed);
        narrowed
    }

    /// Returns `command` with failing calls; `inject` is in the syntax of strace.
    #[expect(clippy::unused_self, reason = "a value proves that strace is usable")]
    pub(crate) fn injecting(&self, home: &Home, call: &str, inject: &str, command: &Command) -> Command {
        let mut traced = Command::new("strace");
        traced.args(["-f", "-q", "--seccomp-bpf", "-o", "/dev/null", "-e"]).arg(format!("trace={call}"));
        traced.arg("-e").arg(format!("inject={inject}"));
        traced.arg(command.get_program()).args(command.get_args());
        home.prepare(&mut traced);
        traced
    }

    /// Returns `command` so that its process is killed when a thread starts its `number`th `call`.
    #[expect(clippy::unused_self, reason = "a value proves that strace is usable")]
    pub(crate) fn killing(&self, home: &Home, call: &str, number: usize, command: &Command) -> Command {
        let mut traced = Command::new("strace");
        traced.args(["-f", "-q", "-o", "/dev/null", "-e"]).arg(format!("trace={call}"));
        traced.arg("-e").arg(format!("inject={call}:signal=KILL:when={number}"));
        traced.arg(command.get_program()).args(command.get_args());
        home.prepare(&mut traced);
        traced
    }
}

/// The lines of a log.
#[derive(Debug)]
pub(crate) struct Trace(Vec<String>);

impl Trace {
    pub(crate) fn read(path: &PathBuf) -> Self {
        let text = std::fs::read(path).unwrap();
        Self(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Counts the calls that started.
    pub(crate) fn count(&self) -> usize {
        self.lines().filter(|line| line.contains('(')).count()
    }
}
