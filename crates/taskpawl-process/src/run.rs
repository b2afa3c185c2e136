use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::fs::MemfdFlags;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::capture::{Capture, Captured, OutputFiles};
use crate::environment::Environment;
use crate::error::SpawnError;
use crate::group::Group;
use crate::locate::locate;

/// What to run.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments. A program without slash is looked up in the `PATH` of `environment`.
    pub argv: Vec<String>,
    /// The directory in which it runs; a program with a relative path is found from here.
    pub cwd: PathBuf,
    /// The variables that it sees.
    pub environment: Environment,
    /// What it can read from its standard input, which is a file and no pipe; without it `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// Where its output goes. Directories that are missing are made; the files are readable only by their owner.
    pub output: OutputFiles,
}

/// How long a program may run, how much it may print and how gently it is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// When it has to be over; `None` is never.
    pub deadline: Option<Instant>,
    /// Bytes that it may write to both output files together before it is killed.
    pub output_bytes: u64,
    /// Bytes of both outputs together that are read back; of more, head and tail.
    pub keep_bytes: usize,
    /// Time between `TERM` and `KILL` after the deadline and a cancellation.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: None, output_bytes: 64 << 20, keep_bytes: 256 << 10, grace: Duration::from_secs(5) }
    }
}

/// How a program ended and what it has put out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What made it end.
    pub end: End,
    /// Its exit code; 128 plus the number of the signal where one ended it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it wrote to its standard output.
    pub stdout: Captured,
    /// What it wrote to its standard error.
    pub stderr: Captured,
}

/// What made a program end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Itself, or somebody outside.
    Exited,
    /// The deadline passed.
    TimedOut,
    /// The run was cancelled.
    Cancelled,
    /// It put out more than it may. The files are cut to the limit.
    OutputLimit,
}

/// Runs a program to its end. Needs a tokio runtime with I/O and time enabled.
///
/// After the deadline and a cancellation its process group gets `TERM` and, when the leader has ended or the grace
/// is over, `KILL`; too much output means `KILL` at once. When the program ends by itself, whatever it left behind in
/// its group is killed too.
///
/// # Cancel safety
///
/// Dropping the future kills the process group; the output files stay.
pub async fn run(
    program: &Program,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<Outcome, SpawnError> {
    let capture = Capture::create(&program.output)?;
    let group = start(program, &capture)?;
    let end = watch(&group, &capture, limits.output_bytes, limits.deadline, Some(cancel)).await;
    if matches!(end, End::TimedOut | End::Cancelled) {
        group.terminate();
        let grace = Instant::now().checked_add(limits.grace);
        watch(&group, &capture, limits.output_bytes, grace, None).await;
    }
    if end != End::Exited {
        group.kill();
        group.ended().await;
    }
    let outcome = group.reap().and_then(|status| conclude(end, status, capture, limits));
    outcome.map_err(|source| SpawnError::File { path: program.output.stdout.clone(), source })
}

fn start(program: &Program, capture: &Capture) -> Result<Group, SpawnError> {
    let name = program.argv.first().ok_or(SpawnError::EmptyCommand)?;
    if !program.cwd.is_dir() {
        return Err(SpawnError::WorkingDirectory { path: program.cwd.clone() });
    }
    let file = locate(name, &program.cwd, program.environment.path())?;
    let (stdout, stderr) = capture.to_stdio()?;
    let mut command = Command::new(&file);
    command.arg0(name).args(&program.argv[1..]).current_dir(&program.cwd);
    command.stdin(stdin(program.stdin.as_deref())?).stdout(stdout).stderr(stderr);
    program.environment.apply(&mut command);
    Group::spawn(&mut command).map_err(|source| start_error(program, file, source))
}

fn start_error(program: &Program, file: PathBuf, source: io::Error) -> SpawnError {
    if source.kind() == io::ErrorKind::PermissionDenied {
        // Entering the directory is refused in the child and looks the same from here.
        return match rustix::fs::access(&program.cwd, rustix::fs::Access::EXEC_OK) {
            Ok(()) => SpawnError::NotExecutable { program: file },
            Err(_) => SpawnError::WorkingDirectory { path: program.cwd.clone() },
        };
    }
    SpawnError::Start { program: file, source }
}

/// A file in memory instead of a pipe: nobody has to feed it while the program runs, and a program that does not
/// read it harms nobody.
fn stdin(bytes: Option<&[u8]>) -> Result<Stdio, SpawnError> {
    let Some(bytes) = bytes else { return Ok(Stdio::null()) };
    let write = || {
        let mut file = File::from(rustix::fs::memfd_create("stdin", MemfdFlags::CLOEXEC)?);
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(Stdio::from(file))
    };
    write().map_err(|source| SpawnError::File { path: Path::new("stdin").to_owned(), source })
}

async fn watch(
    group: &Group,
    capture: &Capture,
    output_bytes: u64,
    deadline: Option<Instant>,
    cancel: Option<&CancellationToken>,
) -> End {
    let mut pace = Pace::new();
    loop {
        tokio::select! {
            biased;
            () = group.ended() => return End::Exited,
            () = cancelled(cancel) => return End::Cancelled,
            () = passed(deadline) => return End::TimedOut,
            () = tokio::time::sleep(pace.interval) => {}
        }
        // A file that cannot be measured any more is not bounded any more either.
        let size = capture.size().unwrap_or(u64::MAX);
        if size > output_bytes {
            return End::OutputLimit;
        }
        pace.adapt(size, output_bytes);
    }
}

async fn cancelled(cancel: Option<&CancellationToken>) {
    match cancel {
        Some(cancel) => cancel.cancelled().await,
        None => std::future::pending().await,
    }
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// How often the output is measured: rarely while little comes, often while the limit comes near.
#[derive(Debug)]
struct Pace {
    interval: Duration,
    seen: u64,
}

impl Pace {
    const SHORTEST: Duration = Duration::from_millis(5);
    const LONGEST: Duration = Duration::from_millis(100);

    fn new() -> Self {
        Self { interval: Self::SHORTEST, seen: 0 }
    }

    /// Doubles the interval if four times what came in the last one would still fit below the limit.
    fn adapt(&mut self, size: u64, limit: u64) {
        let grown = size.saturating_sub(self.seen);
        let is_near = size.saturating_add(grown.saturating_mul(4)) > limit;
        self.interval = if is_near { Self::SHORTEST } else { (self.interval * 2).min(Self::LONGEST) };
        self.seen = size;
    }
}

fn conclude(end: End, status: ExitStatus, capture: Capture, limits: &Limits) -> io::Result<Outcome> {
    // A program can be over its limit and at its end between two looks; how fast it was must not matter.
    let is_over = capture.size()? > limits.output_bytes;
    if is_over {
        capture.cut(limits.output_bytes)?;
    }
    let end = if is_over && end == End::Exited { End::OutputLimit } else { end };
    let (stdout, stderr) = capture.finish(limits.keep_bytes)?;
    let signal = status.signal();
    let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(-1);
    Ok(Outcome { end, code, signal, stdout, stderr })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_slows_down_for_the_quiet_and_quickens_near_the_limit() {
        let mut pace = Pace::new();
        let mut intervals = Vec::new();
        for size in [0, 0, 10, 10, 10, 10, 400, 500, 500] {
            pace.adapt(size, 1000);
            intervals.push(pace.interval.as_millis());
        }
        assert_eq!(intervals, [10, 20, 40, 80, 100, 100, 5, 10, 20]);
    }
}
