use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::fs::MemfdFlags;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::capture::Capture;
use crate::error::SpawnError;
use crate::filter::OutputFilter;
use crate::group::{Group, Streams};
use crate::piped::PipedPrograms;
use crate::profile::Sandbox;
use crate::program::{End, Limits, Outcome, Program};
use crate::recipe::Recipe;
use crate::sandbox::Refusal;
use crate::supervisor::{self, Link};
use crate::watch::{Watched, watch};

/// How long programs with pipes have for ending by themselves when the run is over.
const PIPED_PATIENCE: Duration = Duration::from_secs(3);

/// How long a program waits that cannot be started for lack of descriptors, before the next try.
const DESCRIPTORS_PAUSE: Duration = Duration::from_millis(50);

/// Who starts and owns programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Supervision {
    /// The host program itself, executed a second time; its `main` has to begin with [`child_entry`](crate::child_entry).
    #[default]
    Reexecute,
    /// This program, which has to be a `taskpawl` of the same version, or one whose `main` begins with
    /// [`child_entry`](crate::child_entry). A name without slash is looked up in `PATH`.
    Binary(PathBuf),
    /// The host program's own process. Then programs survive when the host is killed, and so does what leaves its process
    /// group when a call ends.
    Off,
}

impl Supervision {
    /// Returns the program to be executed as a supervisor; `None` is no supervision.
    pub(crate) fn program(&self) -> Result<Option<PathBuf>, SpawnError> {
        match self {
            Self::Off => Ok(None),
            Self::Binary(program) => Ok(Some(program.clone())),
            Self::Reexecute => supervisor::this_program().map(Some).ok_or(SpawnError::NoSupervisor),
        }
    }
}

/// The programs of one run: starts them, and sees to it that none is left.
///
/// A supervisor process is started with the first program. It kills everything that is left when [`Programs::close`] is
/// called, the last handle is dropped, or this process dies, however that happens. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Programs(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    supervision: Supervision,
    lock: Option<Arc<File>>,
    /// Set once, when the run begins.
    filter: OnceLock<Arc<dyn OutputFilter>>,
    piped: PipedPrograms,
    slot: Mutex<Slot>,
}

#[derive(Debug)]
enum Slot {
    /// One supervisor for each sandbox that there was a program for.
    Open(Vec<(Sandbox, Arc<Link>)>),
    /// Told to end everything; they may still be at it.
    Closed(Vec<Arc<Link>>),
}

impl Default for Slot {
    fn default() -> Self {
        Self::Open(Vec::new())
    }
}

impl Programs {
    /// Returns programs that nobody has started yet.
    pub fn new(supervision: Supervision) -> Self {
        Self::make(supervision, None)
    }

    /// Returns programs whose supervisor holds `lock` open for as long as one of them may live, even if this process is
    /// killed. It should be a file with a lock on it, of which no copy reaches a program.
    pub fn with_lock(supervision: Supervision, lock: Arc<File>) -> Self {
        Self::make(supervision, Some(lock))
    }

    fn make(supervision: Supervision, lock: Option<Arc<File>>) -> Self {
        let (piped, filter, slot) = Default::default();
        Self(Arc::new(Inner { supervision, lock, filter, piped, slot }))
    }

    /// Lets `filter` say what stays of the output of programs; the first one that is named counts, for all clones.
    pub fn filter_output(&self, filter: Arc<dyn OutputFilter>) {
        // A second one has nothing to say.
        let _ = self.0.filter.set(filter);
    }

    /// Runs a program to its end. Needs a tokio runtime with I/O and time enabled.
    ///
    /// After the deadline and a cancellation its process group gets `TERM` and, when the leader has ended or the grace is
    /// over, `KILL`; too much output means `KILL` at once. When the program ends, by itself or not, everything is killed that
    /// it left behind in its group, with its output open, or with its mark in the environment.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the program in the same way; the output files stay.
    pub async fn run(
        &self,
        program: &Program,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Outcome, SpawnError> {
        loop {
            match self.try_run(program, limits, cancel).await {
                // Nothing was started, and other programs of the run give descriptors back when they end.
                Err(error) if error.lacks_descriptors() && !cancel.is_cancelled() => {
                    tokio::select! {
                        () = tokio::time::sleep(DESCRIPTORS_PAUSE) => {}
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
        let recipe = Recipe::of(program)?;
        // Before a sandbox is put up: it hides only what is there.
        let mut capture = Capture::begin(&program.output)?;
        let link = self.link_for(program)?;
        let started =
            streams(program, &mut capture).and_then(|streams| Group::start(link.as_ref(), &recipe, streams));
        let ended = match started {
            Ok(group) => carry_through(group, &recipe, &mut capture, limits, cancel).await,
            Err(error) => Err(error),
        };
        let (end, status) = ended?;
        let outcome = end
            .and_then(|end| conclude(end, status, capture, limits, self.0.filter.get()))
            .map_err(|source| SpawnError::Output { path: program.output.stdout.clone(), source })?;
        Ok(Outcome { enforcement: link.and_then(|link| link.enforcement()), ..outcome })
    }

    /// Ends every program that still runs and starts no more. When this returns nothing of them is left. Programs with pipes
    /// get a moment to end by themselves.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only stops waiting.
    pub async fn close(&self) {
        self.0.piped.close(PIPED_PATIENCE).await;
        for link in self.shut() {
            link.gone().await;
        }
    }

    /// As [`close`](Self::close), for where nothing can be awaited: blocks until nothing is left, at most for `patience`.
    /// Returns whether nothing is left.
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

    /// Returns whether both start and end the same programs.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns whether the run is over, so that nothing is started any more.
    pub fn is_closed(&self) -> bool {
        matches!(*self.slot(), Slot::Closed(_))
    }

    pub(crate) fn piped(&self) -> &PipedPrograms {
        &self.0.piped
    }

    pub(crate) fn filter(&self) -> Option<Arc<dyn OutputFilter>> {
        self.0.filter.get().cloned()
    }

    /// Returns the way to the supervisor for a program; one that is gone, or was never there, is started. `None` is no
    /// supervision.
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

/// Equal profiles share a supervisor. Most programs of a run have the very same one.
fn is_same(one: &Sandbox, other: &Sandbox) -> bool {
    match (one, other) {
        (Sandbox::On(one), Sandbox::On(other)) => Arc::ptr_eq(one, other) || one == other,
        (Sandbox::Off, Sandbox::Off) => true,
        (Sandbox::On(_), Sandbox::Off) | (Sandbox::Off, Sandbox::On(_)) => false,
    }
}

pub(crate) fn without_supervisor() -> Refusal {
    Refusal::new("it takes a supervisor, and there is none", "choose another `Supervision` than `Off`")
}

async fn carry_through(
    mut group: Group,
    recipe: &Recipe<'_>,
    capture: &mut Capture,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<(Watched, ExitStatus), SpawnError> {
    let mut end = watch(&mut group, capture, limits.output_bytes, limits.deadline, Some(cancel)).await;
    if let Ok(End::TimedOut | End::Cancelled) = end {
        group.terminate();
        let grace = Instant::now().checked_add(limits.grace);
        // What it still prints is kept; that this fails is all that counts then.
        end = watch(&mut group, capture, limits.output_bytes, grace, None).await.and(end);
    }
    if !matches!(end, Ok(End::Exited)) {
        group.kill();
        group.ended().await;
    }
    Ok((end, group.reap(recipe)?))
}

fn streams(program: &Program, capture: &mut Capture) -> Result<Streams, SpawnError> {
    let stdin = program.stdin.as_deref().map(stdin).transpose();
    let stdin = stdin.map_err(|source| SpawnError::File { path: Path::new("stdin").to_owned(), source })?;
    let handover = program.handover.as_ref().map(|handover| handover.descriptor.try_clone()).transpose();
    let handover = handover.map_err(|source| SpawnError::Handover { source })?;
    Ok(Streams { outputs: capture.ends()?, stdin, handover })
}

/// A file in memory instead of a pipe: nobody has to feed it while the program runs, and a program that does not
/// read it harms nobody.
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
    // A program can be over its limit and at its end between two looks; how fast it was must not matter.
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
    Ok(Outcome { end, code, signal, stdout, stderr, enforcement: None })
}
