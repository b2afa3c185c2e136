//! Counts of system calls by strace.

use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::measure::quiet;

/// System calls that make data durable.
pub(crate) const SYNCS: &str = "fsync,fdatasync,sync_file_range,msync,syncfs,sync";

/// Runs a command of this program under strace, and returns the number of `calls` by all its threads and children.
pub(crate) fn count(scratch: &Path, calls: &str, words: &[&str]) -> Result<usize, Failure> {
    let log = scratch.join("strace.log");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "--seccomp-bpf", "-e", &format!("trace={calls}"), "-o"]).arg(&log);
    quiet(command.arg(std::env::current_exe()?).arg("once").args(words))?;
    // A call that is interrupted by another thread has two lines, the second of which is marked as resumed.
    let is_begin = |line: &&str| line.contains('(') && !line.contains(" resumed>");
    Ok(std::fs::read_to_string(log)?.lines().filter(is_begin).count())
}

/// Returns whether strace is installed and allowed to trace.
pub(crate) fn is_there() -> bool {
    Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output()
        .is_ok_and(|output| output.status.success())
}
