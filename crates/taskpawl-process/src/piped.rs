//! Programs with pipes, which the host communicates with while they run.

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

use crate::bounded::passed;
use crate::capture::Stream;
use crate::error::SpawnError;
use crate::filter::{OutputFilter, StreamFilter};
use crate::group::{Group, Streams};
use crate::located::Located;
use crate::output::Captured;
use crate::program::Program;
use crate::programs::{Programs, handover_of};
use crate::spawn_spec::SpawnSpec;

/// Bytes per read from standard error.
const PIECE: usize = 16 << 10;

/// Reads after the program has ended: far more than a pipe holds.
const MAX_PIECES: usize = 1000;

/// A running program whose standard streams are pipes. Its standard error goes through the filter of
/// [`Programs::filter_output`] into a file. Filtering happens during the run, so that the file is clean even
/// if this process is killed.
///
/// Dropping it kills the program and its descendants.
#[derive(Debug)]
pub struct Piped {
    program: Program,
    located: Located,
    group: Group,
    pipes: Option<(pipe::Sender, pipe::Receiver)>,
    stderr: Stderr,
    filter: Option<Arc<dyn OutputFilter>>,
    closing: CancellationToken,
    _running: TaskTrackerToken,
}

/// The end of a program with pipes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipedEnd {
    /// The exit code, or 128 plus the number of the signal that ended it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The captured standard error.
    pub stderr: Captured,
}

/// All programs with pipes of one run.
#[derive(Debug, Default)]
pub(crate) struct PipedPrograms {
    running: TaskTracker,
    closing: CancellationToken,
}

impl PipedPrograms {
    /// Notifies the owners of the programs that the run is over, and waits up to `patience` for the programs
    /// to end.
    pub(crate) async fn close(&self, patience: Duration) {
        self.running.close();
        self.closing.cancel();
        // Programs that are still running are killed by the supervisor together with all others.
        let _ = timeout(patience, self.running.wait()).await;
    }
}

impl Programs {
    /// Starts a program with pipes for its standard input and output. Needs a tokio runtime with I/O and time
    /// enabled. The program has to be found before `deadline`; `None` is no deadline.
    ///
    /// It runs until [`Piped::end`] or until the run is over. `stdin` and `output.stdout` of `program` are
    /// not used.
    ///
    /// # Errors
    /// The program cannot be started. An error of the system call itself may be reported only after
    /// [`Piped::ended`].
    pub async fn start_piped(
        &self,
        program: Program,
        deadline: Option<Instant>,
    ) -> Result<Piped, SpawnError> {
        let located = Located::of(&program, &CancellationToken::new(), deadline).await?;
        let spec = SpawnSpec::of(&program, located.clone())?;
        // Before the sandbox is set up, because it can only hide paths that exist at that time.
        let file = Stream::begin(&program.output.stderr)?;
        let link = self.link_for(&program)?;
        if let Some(link) = &link {
            tokio::select! {
                () = link.greeted() => {}
                () = passed(deadline) => {}
            }
        }
        let broken = |source| SpawnError::File { path: Path::new("pipe").to_owned(), source };
        let (host_ends, [stdin, stdout, program_stderr], stderr) = pipes().map_err(broken)?;
        let streams = Streams {
            outputs: [stdout, program_stderr],
            stdin: Some(stdin),
            handover: handover_of(&program)?,
        };
        let group = Group::start(link.as_ref(), &spec, streams)?;
        let all = self.piped();
        let (closing, running) = (all.closing.clone(), all.running.token());
        let filter = self.filter();
        let stderr = Stderr::new(stderr, file, filter.as_deref());
        let pipes = Some(host_ends);
        Ok(Piped { group, pipes, stderr, filter, closing, _running: running, program, located })
    }
}

/// The host's ends of standard input and output.
type HostEnds = (pipe::Sender, pipe::Receiver);

/// Creates the pipes. Returns the host's ends of standard input and output, the program's ends of all three,
/// and the host's end of standard error.
fn pipes() -> io::Result<(HostEnds, [OwnedFd; 3], pipe::Receiver)> {
    let (input, program_input) = pipe::pipe()?;
    let (program_output, output) = pipe::pipe()?;
    let (program_stderr, stderr) = pipe::pipe()?;
    let program_ends = [
        program_input.into_blocking_fd()?,
        program_output.into_blocking_fd()?,
        program_stderr.into_blocking_fd()?,
    ];
    Ok(((input, output), program_ends, stderr))
}

/// The standard error of a program on its way to the file.
struct Stderr {
    /// The pipe, until its end.
    pipe: Option<pipe::Receiver>,
    file: Stream,
    filter: Option<Box<dyn StreamFilter>>,
    /// Bytes received so far.
    bytes: u64,
    /// Bytes beyond this limit are discarded.
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

    /// Receives the next chunk. Never completes after the end of the pipe.
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
        // Bounded, because a surviving process may keep writing.
        for _ in 0..MAX_PIECES {
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

    /// Receives the available output, and closes the pipe.
    fn finish(mut self) -> io::Result<Stream> {
        if let Some(pipe) = self.pipe.take() {
            // Read the pipe directly: the runtime may not have noticed the last output yet.
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
    /// Takes the pipes: a sender for the program's input and a receiver for its output. Dropping the sender
    /// is the end of the input.
    pub fn take_pipes(&mut self) -> Option<(pipe::Sender, pipe::Receiver)> {
        self.pipes.take()
    }

    /// Returns a token that is cancelled when the run is over. The owner should then end the program.
    pub fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Waits until the program has ended, or has written more than `most_bytes` to its standard error.
    /// Returns whether it has ended.
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
            // A failed write to the file counts as too much output, too.
            if taken.is_err() || self.stderr.bytes > most_bytes {
                return false;
            }
        }
    }

    /// Ends the program unless it has ended. First its input is closed, and it may end by itself within
    /// `grace`. Then it gets `TERM`, and after another `grace` `KILL`. Returns up to `keep_bytes` of its
    /// standard error, filtered with [`Programs::filter_output`].
    ///
    /// # Errors
    /// The program was never started, or its status is unknown.
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
        let status = self.group.reap(&SpawnSpec::of(&self.program, self.located)?)?;
        let finished = self.stderr.finish().and_then(|mut stderr| {
            // Filter again: a secret may have become known only after parts of it were written.
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
                    // The file cannot be written, so close the pipe instead of letting the program block on
                    // it.
                    self.stderr.pipe = None;
                }
            }
        }
    }
}
