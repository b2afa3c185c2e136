//! Programs that somebody talks to while they run.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::capture::{Captured, Stream};
use crate::error::SpawnError;
use crate::filter::{OutputFilter, StreamFilter};
use crate::group::{Group, Streams};
use crate::program::Program;
use crate::programs::Programs;
use crate::recipe::Recipe;

/// How much of standard error is taken at once.
const PIECE: usize = 16 << 10;

/// How many pieces are taken once the program has ended: far more than a pipe holds.
const MOST_PIECES: usize = 1000;

/// A running program whose standard streams are pipes. What it writes to its standard error goes on to a file, after
/// [`Programs::filter_output`] has said what stays of it: so that is clean also when this process is killed.
///
/// Dropping it kills the program and everything that belongs to it.
#[derive(Debug)]
pub struct Piped {
    program: Program,
    group: Group,
    pipes: Option<(pipe::Sender, pipe::Receiver)>,
    stderr: Stderr,
    filter: Option<Arc<dyn OutputFilter>>,
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
        // Before a sandbox is put up: it hides only what is there.
        let file = Stream::begin(&program.output.stderr)?;
        let link = self.link_for(&program)?;
        let broken = |source| SpawnError::File { path: Path::new("pipe").to_owned(), source };
        let (ours, [stdin, stdout, their_stderr], stderr) = pipes().map_err(broken)?;
        let streams = Streams { outputs: [stdout, their_stderr], stdin: Some(stdin), handover: None };
        let group = Group::start(link.as_ref(), &recipe, streams)?;
        let all = self.piped();
        let (closing, running) = (all.closing.clone(), all.running.token());
        let filter = self.filter();
        let stderr = Stderr::new(stderr, file, filter.as_deref());
        Ok(Piped { group, pipes: Some(ours), stderr, filter, closing, _running: running, program })
    }
}

/// Our ends of the pipes of a program.
type Ours = (pipe::Sender, pipe::Receiver);

/// Returns our ends of standard input and output, those of the program of all three, and ours of standard error.
fn pipes() -> io::Result<(Ours, [OwnedFd; 3], pipe::Receiver)> {
    let (input, their_input) = pipe::pipe()?;
    let (their_output, output) = pipe::pipe()?;
    let (their_stderr, stderr) = pipe::pipe()?;
    let theirs =
        [their_input.into_blocking_fd()?, their_output.into_blocking_fd()?, their_stderr.into_blocking_fd()?];
    Ok(((input, output), theirs, stderr))
}

/// The way from what a program writes to its standard error to the file.
struct Stderr {
    /// `None` when nothing comes any more.
    pipe: Option<pipe::Receiver>,
    file: Stream,
    filter: Option<Box<dyn StreamFilter>>,
    /// How many bytes have come.
    bytes: u64,
    /// What comes beyond that is not kept.
    most_bytes: u64,
}

impl std::fmt::Debug for Stderr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stderr").field("file", &self.file).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Stderr {
    fn new(pipe: pipe::Receiver, file: Stream, filter: Option<&dyn OutputFilter>) -> Self {
        let filter = filter.map(OutputFilter::begin);
        Self { pipe: Some(pipe), file, filter, bytes: 0, most_bytes: u64::MAX }
    }

    /// Takes in what comes next; never ends when nothing does.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    async fn take_next(&mut self) -> io::Result<()> {
        let Some(pipe) = &self.pipe else { return std::future::pending().await };
        pipe.readable().await?;
        let mut piece = [0; PIECE];
        match pipe.try_read(&mut piece) {
            Ok(0) => {
                self.pipe = None;
                Ok(())
            }
            Ok(read) => self.keep(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn keep(&mut self, piece: &[u8]) -> io::Result<()> {
        let is_kept = self.bytes <= self.most_bytes;
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        match &mut self.filter {
            _ if !is_kept => Ok(()),
            Some(filter) => {
                let mut stays = Vec::new();
                filter.push(piece, &mut stays);
                self.file.append(&stays)
            }
            None => self.file.append(piece),
        }
    }

    fn take_rest(&mut self, mut pipe: File) -> io::Result<()> {
        let mut piece = [0; PIECE];
        // What got away from its end, and still writes, is not listened to for ever.
        for _ in 0..MOST_PIECES {
            match pipe.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => self.keep(&piece[..read])?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes in what has come until now, and nothing more.
    fn finish(mut self) -> io::Result<Stream> {
        if let Some(pipe) = self.pipe.take() {
            // The pipe itself is asked: the runtime may not have heard yet of what came last.
            self.take_rest(File::from(pipe.into_nonblocking_fd()?))?;
        }
        if let Some(filter) = self.filter.take() {
            let mut rest = Vec::new();
            filter.finish(&mut rest);
            self.file.append(&rest)?;
        }
        Ok(self.file)
    }
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
        self.stderr.most_bytes = most_bytes;
        loop {
            let taken = tokio::select! {
                biased;
                () = self.group.ended() => return true,
                taken = self.stderr.take_next() => taken,
            };
            // What cannot be kept any more is too much, too.
            if taken.is_err() || self.stderr.bytes > most_bytes {
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
        let finished = self.stderr.finish().and_then(|mut stderr| {
            // What only became known to be left out after it had been written is left out now.
            if let Some(filter) = &self.filter {
                stderr.filter(&**filter)?;
            }
            stderr.finish(keep_bytes as u64)
        });
        let path = self.program.output.stderr;
        let stderr = finished.map_err(|source| SpawnError::Output { path, source })?;
        let signal = status.signal();
        let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(-1);
        Ok(PipedEnd { code, signal, stderr })
    }

    async fn ends_before(&mut self, time: Instant) -> bool {
        let end = sleep_until(time);
        tokio::pin!(end);
        loop {
            tokio::select! {
                biased;
                () = self.group.ended() => return true,
                () = &mut end => return false,
                taken = self.stderr.take_next() => if taken.is_err() {
                    // Nobody reads what nobody can keep.
                    self.stderr.pipe = None;
                }
            }
        }
    }
}
