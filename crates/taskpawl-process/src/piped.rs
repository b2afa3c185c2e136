//! Programs that somebody talks to while they run.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::capture::{Captured, Stream};
use crate::error::SpawnError;
use crate::filter::OutputFilter;
use crate::group::{Group, Streams};
use crate::program::Program;
use crate::programs::Programs;
use crate::recipe::Recipe;
use crate::spare::SpareFiles;

/// How often the size of the file for standard error is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// A running program whose standard input and standard output are pipes; its standard error is a file.
///
/// Dropping it kills the program and everything that belongs to it.
#[derive(Debug)]
pub struct Piped {
    program: Program,
    group: Group,
    pipes: Option<(pipe::Sender, pipe::Receiver)>,
    stderr: Stream,
    filter: Option<Arc<dyn OutputFilter>>,
    spares: SpareFiles,
    closing: CancellationToken,
    _running: TaskTrackerToken,
}

/// How a program with pipes ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipedEnd {
    /// Its exit code; 128 plus the number of the signal where one ended it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it wrote to its standard error.
    pub stderr: Captured,
}

/// The programs with pipes of one run.
#[derive(Debug, Default)]
pub(crate) struct PipedPrograms {
    running: TaskTracker,
    closing: CancellationToken,
}

impl PipedPrograms {
    /// Tells those who talk to programs that the run is over, and waits at most for `patience` until no program is left.
    pub(crate) async fn close(&self, patience: Duration) {
        self.running.close();
        self.closing.cancel();
        // What is left after that is killed with all the rest.
        let _ = timeout(patience, self.running.wait()).await;
    }
}

impl Programs {
    /// Starts a program that reads from a pipe and writes to one. Needs a tokio runtime with I/O and time enabled.
    ///
    /// It runs until [`Piped::end`], or until the run is over. `stdin` and `output.stdout` of `program` are not used.
    ///
    /// # Errors
    /// The program cannot be started. That the system refused it may also come to light only by [`Piped::ended`].
    pub fn start_piped(&self, program: Program) -> Result<Piped, SpawnError> {
        let recipe = Recipe::of(&program)?;
        let link = self.link_for(&program)?;
        let spares = self.spares().clone();
        let stderr = Stream::create(&program.output.stderr, &spares)?;
        let broken = |source| SpawnError::File { path: Path::new("pipe").to_owned(), source };
        let (ours, theirs) = pipes().map_err(broken)?;
        let [stdin, stdout] = theirs;
        let streams =
            Streams { outputs: [stdout, stderr.for_program()?], stdin: Some(stdin), handover: None };
        let group = Group::start(link.as_ref(), &recipe, streams)?;
        let all = self.piped();
        let (closing, running) = (all.closing.clone(), all.running.token());
        let filter = self.filter();
        Ok(Piped { group, pipes: Some(ours), stderr, filter, spares, closing, _running: running, program })
    }
}

/// Returns our ends, input of the program first, and those of the program in the same order.
fn pipes() -> io::Result<((pipe::Sender, pipe::Receiver), [OwnedFd; 2])> {
    let (input, their_input) = pipe::pipe()?;
    let (their_output, output) = pipe::pipe()?;
    Ok(((input, output), [their_input.into_blocking_fd()?, their_output.into_blocking_fd()?]))
}

impl Piped {
    /// Takes the ends of the pipes: what is written to the first is its input, what the second gives is its output. Dropping
    /// the first tells the program that there will be no more.
    pub fn take_pipes(&mut self) -> Option<(pipe::Sender, pipe::Receiver)> {
        self.pipes.take()
    }

    /// Returns what fires when the run is over: then the program should be ended.
    pub fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Waits until the program has ended, or has written more than `most_bytes` to its standard error. Returns whether it has
    /// ended.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the future is dropped.
    pub async fn ended(&mut self, most_bytes: u64) -> bool {
        loop {
            tokio::select! {
                biased;
                () = self.group.ended() => return true,
                () = sleep(LOOK) => {}
            }
            // A file that cannot be measured any more is not bounded any more either.
            if self.stderr.size().unwrap_or(u64::MAX) > most_bytes {
                return false;
            }
        }
    }

    /// Ends the program, if it has not ended: first it may end by itself for `grace`, since its input is closed; then it gets
    /// `TERM`, and `KILL` when as much time has passed again. Of its standard error `keep_bytes` are read back, after
    /// [`Programs::filter_output`] has said what stays of it.
    ///
    /// # Errors
    /// It was never started, or nobody knows how it ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the program.
    pub async fn end(mut self, grace: Duration, keep_bytes: usize) -> Result<PipedEnd, SpawnError> {
        drop(self.pipes.take());
        if !self.ends_before(Instant::now() + grace).await {
            self.group.terminate();
            if !self.ends_before(Instant::now() + grace).await {
                self.group.kill();
                self.group.ended().await;
            }
        }
        let status = self.group.reap(&Recipe::of(&self.program)?)?;
        let filtered = match &self.filter {
            Some(filter) => self.stderr.filter(&**filter),
            None => Ok(()),
        };
        let stderr = filtered.and_then(|()| self.stderr.finish(keep_bytes as u64, &self.spares));
        let path = self.program.output.stderr;
        let stderr = stderr.map_err(|source| SpawnError::File { path, source })?;
        let signal = status.signal();
        let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(-1);
        Ok(PipedEnd { code, signal, stderr })
    }

    async fn ends_before(&mut self, time: Instant) -> bool {
        tokio::time::timeout_at(time, self.group.ended()).await.is_ok()
    }
}
