//! Counting system calls from outside, with strace.

use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::measure::quiet;

/// Everything that makes something durable.
pub(crate) const SYNCS: &str = "fsync,fdatasync,sync_file_range,msync,syncfs,sync";

/// Runs a command of this program and returns how often it, with all its threads and children, made one of `calls`.
pub(crate) fn count(scratch: &Path, calls: &str, words: &[&str]) -> Result<usize, Failure> {
    let log = scratch.join("strace.log");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "--seccomp-bpf", "-e", &format!("trace={calls}"), "-o"]).arg(&log);
    quiet(command.arg(std::env::current_exe()?).arg("once").args(words))?;
    // A call that another thread interrupts stands on two lines, of which the second says so.
    let is_begin = |line: &&str| line.contains('(') && !line.contains(" resumed>");
    Ok(std::fs::read_to_string(log)?.lines().filter(is_begin).count())
}

/// Returns whether strace is here and may trace.
pub(crate) fn is_there() -> bool {
    Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output()
        .is_ok_and(|output| output.status.success())
}
