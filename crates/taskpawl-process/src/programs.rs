use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bounded::passed;
use crate::capture::Capture;
use crate::descriptors::{self, DescriptorShare, share_beside, used_up_to};
use crate::error::SpawnError;
use crate::filter::OutputFilter;
use crate::group::{Group, Streams};
use crate::located::Located;
use crate::network::RefusedAccess;
use crate::piped::PipedPrograms;
use crate::profile::Sandbox;
use crate::program::{End, Limits, Outcome, Program};
use crate::sandbox::Refusal;
use crate::spawn_spec::SpawnSpec;
use crate::supervision::Supervision;
use crate::supervisor::{self, Link};
use crate::watch::{Watched, watch};

/// Time that programs with pipes have to end by themselves after the run.
const PIPED_PATIENCE: Duration = Duration::from_secs(3);

/// Descriptors that a running program may open in this process: one file for each output stream.
const OUTPUT_FILES: u64 = 2;

impl Supervision {
    /// Returns the program to execute as a supervisor, or `None` without supervision.
    pub(crate) fn program(&self) -> Result<Option<PathBuf>, SpawnError> {
        match self {
            Self::Off => Ok(None),
            Self::Binary(program) => Ok(Some(program.clone())),
            Self::Reexecute => supervisor::this_program().map(Some).ok_or(SpawnError::NoSupervisor),
        }
    }
}

/// The programs of one run: starts them, and guarantees that no process of theirs remains.
///
/// A supervisor process is started with the first program. It kills all remaining processes when
/// [`Programs::close`] is called, when the last handle is dropped, or when this process dies for any reason.
/// Cheap to clone; clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Programs(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    supervision: Supervision,
    lock: Option<Arc<File>>,
    /// Set at most once, at the start of the run.
    filter: OnceLock<Arc<dyn OutputFilter>>,
    piped: PipedPrograms,
    slot: Mutex<Slot>,
}

#[derive(Debug)]
enum Slot {
    /// One supervisor for each sandbox that a program has used.
    Open(Vec<(Sandbox, Arc<Link>)>),
    /// The supervisors were told to end, but may not have finished.
    Closed(Vec<Arc<Link>>),
}

impl Default for Slot {
    fn default() -> Self {
        Self::Open(Vec::new())
    }
}

impl Programs {
    /// Creates a set of programs without starting a supervisor.
    pub fn new(supervision: Supervision) -> Self {
        Self::make(supervision, None)
    }

    /// Like [`new`](Self::new), but the supervisor keeps `lock` open as long as one of its processes may
    /// live, even if this process is killed. `lock` should be a locked file that no program inherits.
    pub fn with_lock(supervision: Supervision, lock: Arc<File>) -> Self {
        Self::make(supervision, Some(lock))
    }

    fn make(supervision: Supervision, lock: Option<Arc<File>>) -> Self {
        let (piped, filter, slot) = Default::default();
        Self(Arc::new(Inner { supervision, lock, filter, piped, slot }))
    }

    /// Sets the output filter. The first filter that is set applies to all clones.
    pub fn filter_output(&self, filter: Arc<dyn OutputFilter>) {
        // A second filter is ignored.
        let _ = self.0.filter.set(filter);
    }

    /// Runs a program to its end. Needs a tokio runtime with I/O and time enabled.
    ///
    /// After the deadline or a cancellation, the process group gets `TERM`. It gets `KILL` when the leader
    /// has ended or the grace period is over. Too much output leads to `KILL` at once. At the end of the
    /// program, all processes that it left behind are killed: those in its group, those with its output open,
    /// and those with its environment marker.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the program in the same way; the output files remain.
    pub async fn run(
        &self,
        program: &Program,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Outcome, SpawnError> {
        loop {
            match self.try_run(program, limits, cancel).await {
                // The program was not started, and other programs of the run release descriptors when they
                // end.
                Err(error) if error.lacks_descriptors() && !cancel.is_cancelled() => {
                    tokio::select! {
                        () = tokio::time::sleep(descriptors::PAUSE) => {}
                        () = cancel.cancelled() => return Err(error),
                    }
                    if limits.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                        return Err(error);
                    }
                }
                ended => return ended,
            }
        }
    }

    async fn try_run(
        &self,
        program: &Program,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Outcome, SpawnError> {
        let located = Located::of(program, cancel, limits.deadline).await?;
        let spec = SpawnSpec::of(program, located)?;
        // Before the sandbox is set up, because it can only hide paths that exist at that time.
        let mut capture = Capture::begin(&program.output)?;
        let link = self.link_for(program)?;
        if let Some(link) = &link {
            // The handshake needs descriptors, too: those of waiting programs must not keep it from them.
            tokio::select! {
                () = link.greeted() => {}
                () = passed(limits.deadline) => {}
                () = cancel.cancelled() => {}
            }
        }
        let streams = streams(program, &mut capture)?;
        let _share = share_of(&streams).ok_or_else(|| SpawnError::File {
            path: Path::new("pipe").to_owned(),
            source: Errno::MFILE.into(),
        })?;
        let group = Group::start(link.as_ref(), &spec, streams)?;
        let Ended { end, status, refused } =
            carry_through(group, &spec, &mut capture, limits, cancel).await?;
        let outcome = end
            .and_then(|end| conclude(end, status, capture, limits, self.0.filter.get()))
            .map_err(|source| SpawnError::Output { path: program.output.stdout.clone(), source })?;
        Ok(Outcome { enforcement: link.and_then(|link| link.enforcement()), refused, ..outcome })
    }

    /// Ends all running programs and refuses to start more. No process of theirs is left when this returns.
    /// Programs with pipes get a moment to end by themselves.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only stops the waiting.
    pub async fn close(&self) {
        self.0.piped.close(PIPED_PATIENCE).await;
        for link in self.shut() {
            link.gone().await;
        }
    }

    /// Like [`close`](Self::close), for callers that cannot await: blocks until no process is left, at most
    /// for `patience`. Returns whether no process is left.
    pub fn close_within(&self, patience: Duration) -> bool {
        let end = std::time::Instant::now() + patience;
        let left = |end: std::time::Instant| end.saturating_duration_since(std::time::Instant::now());
        self.shut().iter().all(|link| link.is_gone_within(left(end)))
    }

    fn shut(&self) -> Vec<Arc<Link>> {
        let mut slot = self.slot();
        let links = match std::mem::take(&mut *slot) {
            Slot::Open(links) => links.into_iter().map(|(_, link)| link).collect(),
            Slot::Closed(links) => links,
        };
        for link in &links {
            link.close();
        }
        *slot = Slot::Closed(links.clone());
        links
    }

    /// Returns whether both are handles of the same set of programs.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns whether the run is over, so that no more programs are started.
    pub fn is_closed(&self) -> bool {
        matches!(*self.slot(), Slot::Closed(_))
    }

    pub(crate) fn piped(&self) -> &PipedPrograms {
        &self.0.piped
    }

    /// Returns the output filter, for output that does not come from a program directly.
    pub fn output_filter(&self) -> Option<Arc<dyn OutputFilter>> {
        self.filter()
    }

    pub(crate) fn filter(&self) -> Option<Arc<dyn OutputFilter>> {
        self.0.filter.get().cloned()
    }

    /// Returns the link to the supervisor for a program, and starts a supervisor if there is none or it has
    /// ended. Returns `None` without supervision.
    pub(crate) fn link_for(&self, program: &Program) -> Result<Option<Arc<Link>>, SpawnError> {
        let mut slot = self.slot();
        let Slot::Open(links) = &mut *slot else { return Err(SpawnError::Closed) };
        let place = links.iter().position(|(sandbox, _)| is_same(sandbox, &program.sandbox));
        if let Some((_, link)) = place.map(|place| &links[place])
            && !link.is_over()
        {
            return Ok(Some(Arc::clone(link)));
        }
        let Some(supervisor) = self.0.supervision.program()? else {
            return match program.sandbox {
                Sandbox::Off => Ok(None),
                Sandbox::On(_) => Err(without_supervisor().into()),
            };
        };
        let link = Link::start(supervisor, &program.sandbox, self.0.lock.as_deref())?;
        if let Some(place) = place {
            links.swap_remove(place);
        }
        links.push((program.sandbox.clone(), Arc::clone(&link)));
        Ok(Some(link))
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Slot> {
        self.0.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Slot::Open(links) = self.slot.get_mut().unwrap_or_else(PoisonError::into_inner) {
            for (_, link) in links {
                link.close();
            }
        }
    }
}

/// Returns whether two sandboxes are equal. Compares pointers first, because most programs of a run share one
/// profile.
fn is_same(one: &Sandbox, other: &Sandbox) -> bool {
    match (one, other) {
        (Sandbox::On(one), Sandbox::On(other)) => Arc::ptr_eq(one, other) || one == other,
        (Sandbox::Off, Sandbox::Off) => true,
        (Sandbox::On(_), Sandbox::Off) | (Sandbox::Off, Sandbox::On(_)) => false,
    }
}

pub(crate) fn without_supervisor() -> Refusal {
    Refusal::new("it needs a supervisor, and there is none", "use a `Supervision` other than `Off`")
}

async fn carry_through(
    mut group: Group,
    spec: &SpawnSpec<'_>,
    capture: &mut Capture,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<Ended, SpawnError> {
    let mut end = watch(&mut group, capture, limits.output_bytes, limits.deadline, Some(cancel)).await;
    if let Ok(End::TimedOut | End::Cancelled) = end {
        group.terminate();
        let grace = Instant::now().checked_add(limits.grace);
        // Output of the grace period is kept. An error there replaces the original cause.
        end = watch(&mut group, capture, limits.output_bytes, grace, None).await.and(end);
    }
    if !matches!(end, Ok(End::Exited)) {
        group.kill();
        group.ended().await;
    }
    let refused = group.refused().await;
    Ok(Ended { end, status: group.reap(spec)?, refused })
}

/// The end of a program.
struct Ended {
    end: Watched,
    status: ExitStatus,
    refused: Vec<RefusedAccess>,
}

fn streams(program: &Program, capture: &mut Capture) -> Result<Streams, SpawnError> {
    let stdin = program.stdin.as_deref().map(stdin).transpose();
    let stdin = stdin.map_err(|source| SpawnError::File { path: Path::new("stdin").to_owned(), source })?;
    Ok(Streams { outputs: capture.ends()?, stdin, handover: handover_of(program)? })
}

/// Returns the share of a program that has these streams open, or `None` if too few descriptors would be left.
fn share_of(streams: &Streams) -> Option<DescriptorShare<'static>> {
    let others = streams.stdin.iter().chain(&streams.handover);
    let used = streams.outputs.iter().chain(others).map(used_up_to).max();
    share_beside(used.unwrap_or(0), OUTPUT_FILES)
}

/// Returns a duplicate of the descriptor that a program inherits.
pub(crate) fn handover_of(program: &Program) -> Result<Option<OwnedFd>, SpawnError> {
    let handover = program.handover.as_ref().map(|handover| handover.descriptor.try_clone()).transpose();
    handover.map_err(|source| SpawnError::Handover { source })
}

/// Creates the standard input as a file in memory. Unlike a pipe, it needs no writer while the program runs,
/// and a program may leave it unread.
fn stdin(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

fn conclude(
    end: End,
    status: ExitStatus,
    mut capture: Capture,
    limits: &Limits,
    filter: Option<&Arc<dyn OutputFilter>>,
) -> io::Result<Outcome> {
    capture.take_rest()?;
    // A program can exceed its limit and end between two reads. The result must not depend on that timing.
    let is_over = capture.size() > limits.output_bytes;
    if is_over {
        capture.cut(limits.output_bytes)?;
    }
    if let Some(filter) = filter {
        capture.filter(&**filter)?;
    }
    let end = if is_over && end == End::Exited { End::OutputLimit } else { end };
    let (stdout, stderr) = capture.finish(limits.keep_bytes)?;
    let signal = status.signal();
    let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(-1);
    Ok(Outcome { end, code, signal, stdout, stderr, enforcement: None, refused: Vec::new() })
}
