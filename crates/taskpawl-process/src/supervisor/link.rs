use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::Shutdown;
use rustix::process::Signal;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::socket::{Message, Received, pair, receive};
use super::wire::{Hello, Reply, Request, Start, VERSION};
use super::{bwrap, process_tree};
use crate::error::SpawnError;
use crate::faults;
use crate::group::Streams;
use crate::network::{CallLookup, Forwarder, RefusedAccess, RefusedLog, Source};
use crate::profile::{Enforcement, Level, Profile, Sandbox};
use crate::sandbox::{Refusal, leave_cgroup};
use crate::spawn_spec::SpawnSpec;
use crate::supervisor::marker::MARKER;

/// Time limit for the handshake. Another program in place of the supervisor may never send anything.
const GREETING: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

/// Time limit for the answer to which call a socket belongs. The program that asked waits as long.
const QUESTION: Duration = Duration::from_secs(1);

/// The engine's side of a supervisor.
///
/// Requests are sent on the calling thread and never block. A message that does not fit into the socket is
/// left to the reader thread, which also receives the replies. The reader is a thread and not a task. It must
/// work for dropped futures, on a blocked single-threaded runtime, and after the end of the runtime.
#[derive(Debug)]
pub(crate) struct Link {
    program: PathBuf,
    socket: OwnedFd,
    /// Wakes the reader after a message was queued.
    wakeup: OwnedFd,
    mark: String,
    /// Standard error of `bwrap`, for its error message.
    stderr_file: Option<File>,
    state: Mutex<State>,
    /// Signalled when `stage` changes, for callers that block.
    changed: Condvar,
    /// The restrictions of the sandbox, known after the handshake.
    enforcement: OnceLock<Arc<Enforcement>>,
    /// The cgroup to remove after the end of the supervisor.
    cgroup: OnceLock<PathBuf>,
    /// The progress of the supervisor; set by the reader.
    progress: watch::Sender<Progress>,
    /// The network access that programs were refused; written by the thread that forwards connections.
    refused: Arc<RefusedLog>,
    profile: Option<Arc<Profile>>,
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    /// The waiters for the ends of programs. The reader answers them, or drops them if the supervisor is
    /// gone.
    waiting: HashMap<u64, oneshot::Sender<Ending>>,
    /// Messages that did not fit into the socket: at most a start and two signals per program.
    outbox: VecDeque<Message>,
    stage: Stage,
    /// The waiters for the calls of sockets.
    questions: HashMap<u64, oneshot::Sender<Option<u64>>>,
    /// Listening sockets of the sandbox, until the handshake is complete.
    sockets: Vec<OwnedFd>,
}

#[derive(Debug, Default)]
enum Stage {
    /// Started, but the handshake is not complete.
    #[default]
    Greeting,
    Open,
    /// The supervisor was told to end.
    Closing,
    /// The supervisor has ended, for this reason.
    Over(Reason),
}

/// The progress of a supervisor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Progress {
    /// The handshake is not complete.
    Greeting,
    Open,
    /// The supervisor has ended.
    Gone,
}

#[derive(Clone, Debug)]
enum Reason {
    Closed,
    Lost,
    /// The engine could not complete the handshake.
    Failed(Errno),
    Refused(String),
    Unenforceable(Refusal),
}

/// The end of a supervised program.
#[derive(Debug)]
pub(crate) enum Ending {
    Exited(ExitStatus),
    /// The system failed to start it.
    NotStarted(io::Error),
    /// The status is unknown, because the supervisor is gone.
    Lost(SpawnError),
}

/// A program that a supervisor was asked to start. Dropping it kills the program.
#[derive(Debug)]
pub(crate) struct Ticket {
    link: Arc<Link>,
    id: u64,
    receiver: oneshot::Receiver<Ending>,
    ending: Option<Ending>,
}

impl Link {
    /// Starts `program` as a supervisor. It sandboxes itself first, and holds the lock of the run until it
    /// ends.
    pub(crate) fn start(
        program: PathBuf,
        sandbox: &Sandbox,
        lock: Option<&File>,
    ) -> Result<Arc<Self>, SpawnError> {
        let profile = match sandbox {
            Sandbox::Off => None,
            Sandbox::On(profile) => Some(&**profile),
        };
        let command = if let Some(profile) = profile.filter(|profile| profile.level == Level::Strict) {
            bwrap::command(&program, profile)?
        } else {
            let mut command = Command::new(&program);
            command.arg0(MARKER);
            command
        };
        let result = Self::try_start(program.clone(), command, sandbox, lock);
        result.map_err(|source| SpawnError::SupervisorStart { program, source })
    }

    fn try_start(
        program: PathBuf,
        mut command: Command,
        sandbox: &Sandbox,
        lock: Option<&File>,
    ) -> io::Result<Arc<Self>> {
        let profile = match sandbox {
            Sandbox::Off => None,
            Sandbox::On(profile) => Some(Arc::clone(profile)),
        };
        let (socket, supervisor_end) = pair()?;
        let wakeup = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let is_strict = profile.as_ref().is_some_and(|profile| profile.level == Level::Strict);
        let stderr_file = is_strict.then(|| memfd_create("said", MemfdFlags::CLOEXEC)).transpose()?;
        let stderr_file = stderr_file.map(File::from);
        let stderr = stderr_file.as_ref().map(File::try_clone).transpose()?;
        command
            .stdin(supervisor_end)
            .stdout(Stdio::null())
            .stderr(stderr.map_or_else(Stdio::null, Stdio::from));
        let child = command.spawn()?;
        let link = Arc::new(Self {
            program,
            socket,
            wakeup,
            mark: new_mark(&child),
            stderr_file,
            state: Mutex::default(),
            changed: Condvar::new(),
            enforcement: OnceLock::new(),
            cgroup: OnceLock::new(),
            progress: watch::Sender::new(Progress::Greeting),
            refused: Arc::default(),
            profile,
        });
        link.refused.find_calls_by(Arc::new(Askers(Arc::downgrade(&link))));
        link.send_start(lock)?;
        let reader = Arc::clone(&link);
        std::thread::Builder::new().name("taskpawl-reader".to_owned()).spawn(move || reader.read(child))?;
        Ok(link)
    }

    fn send_start(&self, lock: Option<&File>) -> io::Result<()> {
        let lock = lock.map(|file| file.try_clone().map(OwnedFd::from)).transpose()?;
        let start = Request::Start(Box::new(Start {
            version: VERSION,
            mark: (&*self.mark).into(),
            faults: faults::bits(),
            has_lock: lock.is_some(),
            profile: self.profile.as_deref().map(Cow::Borrowed),
        }));
        let message = Message::new(start.to_bytes(), lock.into_iter().collect())?;
        self.send(&mut self.state(), message);
        Ok(())
    }

    /// Asks the supervisor to start a program. The ticket reports success or failure.
    pub(crate) fn spawn(self: &Arc<Self>, spec: &SpawnSpec<'_>, streams: Streams) -> io::Result<Ticket> {
        let id = {
            let mut state = self.state();
            state.last_id += 1;
            state.last_id
        };
        // Serialize before taking the lock again: a large environment takes time.
        let bytes = Request::write_spawn(id, spec);
        let Streams { outputs, stdin, handover } = streams;
        let message = Message::new(bytes, outputs.into_iter().chain(handover).chain(stdin).collect())?;
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        if !matches!(state.stage, Stage::Over(_)) {
            state.waiting.insert(id, sender);
            // Before the program can ask for anything.
            self.refused.begin(id);
            self.send(&mut state, message);
        }
        Ok(Ticket { link: Arc::clone(self), id, receiver, ending: None })
    }

    /// Returns the restrictions of the sandbox; `None` without a sandbox or before the handshake.
    pub(crate) fn enforcement(&self) -> Option<Arc<Enforcement>> {
        self.enforcement.get().cloned()
    }

    /// Asks the supervisor for the call of a socket; `None` if it is not known in time.
    async fn find_call(&self, source: Source) -> Option<u64> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            state.last_id += 1;
            let question = state.last_id;
            state.questions.insert(question, sender);
            let message = Message::new(Request::FindCall { question, source }.to_bytes(), Vec::new()).ok()?;
            self.send(&mut state, message);
        }
        timeout(QUESTION, receiver).await.ok()?.ok()?
    }

    /// Blocks until the handshake is complete, and returns the restrictions of the sandbox.
    pub(crate) fn greeting(&self) -> Result<Option<Arc<Enforcement>>, SpawnError> {
        let is_silent = |state: &mut State| matches!(state.stage, Stage::Greeting);
        let state = self.changed.wait_while(self.state(), is_silent).unwrap_or_else(PoisonError::into_inner);
        let is_over = matches!(state.stage, Stage::Over(_));
        drop(state);
        if is_over { Err(self.failure()) } else { Ok(self.enforcement()) }
    }

    fn signal(&self, id: u64, signal: Signal) {
        if let Ok(message) = Message::new(Request::Signal { id, signal }.to_bytes(), Vec::new()) {
            self.send(&mut self.state(), message);
        }
    }

    /// Sends a message, or queues it for the reader. A closed connection is no error here, because the reader
    /// notices it too.
    fn send(&self, state: &mut State, message: Message) {
        // Never overtake queued messages: a signal must not arrive before the start of its program.
        if !state.outbox.is_empty() || matches!(message.send(&self.socket), Err(error) if is_crowded(error)) {
            state.outbox.push_back(message);
            // Cannot fail: an eventfd counts up to 2^64 - 2.
            let _ = rustix::io::write(&self.wakeup, &1_u64.to_ne_bytes());
        }
    }

    /// Tells the supervisor to kill all processes and to end.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        if matches!(state.stage, Stage::Greeting | Stage::Open) {
            state.stage = Stage::Closing;
        }
        // An error means that the supervisor is already gone.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Write);
    }

    /// Waits until the supervisor has ended, and with it all of its programs.
    pub(crate) async fn gone(&self) {
        // Cannot fail: the sender lives in `self`.
        let _ = self.progress.subscribe().wait_for(|progress| *progress == Progress::Gone).await;
    }

    /// Waits until the handshake is complete or the supervisor has ended.
    pub(crate) async fn greeted(&self) {
        // Cannot fail: the sender lives in `self`.
        let _ = self.progress.subscribe().wait_for(|progress| *progress != Progress::Greeting).await;
    }

    /// Like [`gone`](Self::gone), but blocks the thread, at most for `patience`.
    pub(crate) fn is_gone_within(&self, patience: Duration) -> bool {
        let is_there = |_: &mut State| *self.progress.borrow() != Progress::Gone;
        let waited = self.changed.wait_timeout_while(self.state(), patience, is_there);
        let (_state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        !waited.timed_out()
    }

    /// Returns whether the supervisor has ended.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state().stage, Stage::Over(_))
    }

    fn failure(&self) -> SpawnError {
        match &self.state().stage {
            Stage::Over(Reason::Failed(errno)) => {
                SpawnError::SupervisorStart { program: self.program.clone(), source: (*errno).into() }
            }
            Stage::Over(Reason::Refused(problem)) => {
                SpawnError::SupervisorRefused { program: self.program.clone(), problem: problem.clone() }
            }
            Stage::Over(Reason::Unenforceable(refusal)) => refusal.clone().into(),
            Stage::Over(Reason::Closed) | Stage::Closing => SpawnError::Closed,
            Stage::Over(Reason::Lost) | Stage::Greeting | Stage::Open => SpawnError::SupervisorLost,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Body of the reader thread: receives replies until the connection ends, then cleans up.
    fn read(&self, mut child: Child) {
        let problem = self.take_replies().err();
        if problem.is_some() {
            // The protocol is broken, so the supervisor cannot be told to end. Errors mean that it has ended.
            let _ = child.kill();
            let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
        }
        let status = child.wait();
        let reason = self.reason(problem, status);
        if matches!(reason, Reason::Lost) {
            // Before the waiters are notified: the engine may start a lost program again, and the old one
            // must not run beside it.
            process_tree::kill_with_marker(&self.mark);
        }
        if let Some(cgroup) = self.cgroup.get() {
            leave_cgroup(cgroup);
        }
        let mut state = self.state();
        state.stage = Stage::Over(reason);
        state.waiting.clear();
        state.questions.clear();
        state.outbox.clear();
        self.progress.send_replace(Progress::Gone);
        drop(state);
        self.changed.notify_all();
    }

    fn reason(&self, problem: Option<io::Error>, status: io::Result<ExitStatus>) -> Reason {
        match (&self.state().stage, problem, status) {
            (Stage::Closing, ..) => Reason::Closed,
            (Stage::Over(reason), ..) => reason.clone(),
            (Stage::Greeting, Some(problem), _) => match Errno::from_io_error(&problem) {
                Some(errno) => Reason::Failed(errno),
                None => Reason::Refused(problem.to_string()),
            },
            (Stage::Greeting, None, _) if self.stderr_file.is_some() => {
                Reason::Unenforceable(self.stderr_file.as_ref().map_or_else(Refusal::default, bwrap::refusal))
            }
            (Stage::Greeting, None, Ok(status)) => {
                Reason::Refused(format!("it exited immediately ({status})"))
            }
            (Stage::Greeting, None, Err(_)) => Reason::Refused("it exited immediately".to_owned()),
            (Stage::Open, ..) => Reason::Lost,
        }
    }

    fn take_replies(&self) -> io::Result<()> {
        loop {
            let is_crowded = self.flush();
            self.wait(is_crowded)?;
            match receive(&self.socket)? {
                Received::Message(message) if message.lacks_descriptors => return Err(Errno::MFILE.into()),
                Received::Message(message) => {
                    self.take(Reply::read_all(&message.bytes)?, message.descriptors)?;
                }
                Received::Nothing => {}
                Received::End => return Ok(()),
            }
        }
    }

    /// Waits for a reply, for a queued message, and for room in the socket if there is a queue.
    fn wait(&self, is_crowded: bool) -> io::Result<()> {
        let mut interest = PollFlags::IN;
        interest.set(PollFlags::OUT, is_crowded);
        let mut descriptors = [PollFd::new(&self.socket, interest), PollFd::new(&self.wakeup, PollFlags::IN)];
        let is_new = matches!(self.state().stage, Stage::Greeting);
        match poll(&mut descriptors, is_new.then_some(&GREETING)) {
            Ok(0) => return Err(io::Error::other("it does not respond")),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !descriptors[1].revents().is_empty() {
            let _ = rustix::io::read(&self.wakeup, &mut [0; 8]);
        }
        Ok(())
    }

    /// Sends queued messages. Returns whether some still do not fit.
    fn flush(&self) -> bool {
        let mut state = self.state();
        while let Some(message) = state.outbox.front() {
            match message.send(&self.socket) {
                Err(Errno::TOOMANYREFS) => {
                    drop(state);
                    // The kernel limits the descriptors in flight per user, and does not report when there is
                    // room again.
                    std::thread::sleep(Duration::from_millis(1));
                    state = self.state();
                }
                Err(error) if is_crowded(error) => return true,
                Ok(()) | Err(_) => {
                    state.outbox.pop_front();
                }
            }
        }
        false
    }

    fn take(&self, replies: Vec<Reply>, mut descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let mut state = self.state();
        for reply in replies {
            let (id, ending) = match reply {
                Reply::Sockets => {
                    state.sockets.append(&mut descriptors);
                    continue;
                }
                Reply::RefusedPort { call, port } => {
                    self.refused.add_port(call, port);
                    continue;
                }
                Reply::RefusedSocket { call, path } => {
                    self.refused.add_to(call, RefusedAccess::Socket { path });
                    continue;
                }
                Reply::FoundCall { question, call } => {
                    // An error means that the question has timed out.
                    let _ = state.questions.remove(&question).map(|sender| sender.send(call));
                    continue;
                }
                Reply::Hello(hello) => {
                    self.finish_handshake(&mut state, hello)?;
                    continue;
                }
                Reply::Refused(mut refusal) => {
                    let _ = refusal.cgroup.take().map(|cgroup| self.cgroup.set(cgroup));
                    state.stage = Stage::Over(Reason::Unenforceable(refusal));
                    continue;
                }
                Reply::NotStarted { id, errno } => {
                    (id, Ending::NotStarted(io::Error::from_raw_os_error(errno)))
                }
                Reply::Ended { id, status } => (id, Ending::Exited(ExitStatus::from_raw(status))),
            };
            if let Some(sender) = state.waiting.remove(&id) {
                // An error means that the future was dropped.
                let _ = sender.send(ending);
            }
        }
        Ok(())
    }

    fn finish_handshake(&self, state: &mut State, hello: Hello) -> io::Result<()> {
        if hello.version != VERSION {
            return Err(io::Error::other("it belongs to another version of taskpawl"));
        }
        // Cannot fail: a supervisor sends its greeting once.
        let _ = hello.enforcement.map(|enforcement| self.enforcement.set(Arc::new(enforcement)));
        let _ = hello.cgroup.map(|cgroup| self.cgroup.set(cgroup));
        let sockets = std::mem::take(&mut state.sockets);
        if let Some(profile) = self.profile.as_deref().filter(|_| !sockets.is_empty()) {
            Forwarder::start(sockets, profile, Arc::clone(&self.refused), self.progress.subscribe())?;
        }
        if matches!(state.stage, Stage::Greeting) {
            state.stage = Stage::Open;
        }
        self.progress.send_replace(Progress::Open);
        self.changed.notify_all();
        Ok(())
    }
}

/// Returns whether the send can be repeated later.
fn is_crowded(error: Errno) -> bool {
    matches!(error, Errno::AGAIN | Errno::NOBUFS | Errno::TOOMANYREFS)
}

/// Returns the prefix of the environment markers of a supervisor's programs. It must be unique on this
/// machine.
fn new_mark(supervisor: &Child) -> String {
    let outer = std::env::var_os(process_tree::MARK).map(OsString::into_string).and_then(Result::ok);
    let outer = outer.map(|mark| mark + "/").unwrap_or_default();
    let random = RandomState::new().hash_one(supervisor.id());
    format!("{outer}{random:016x}.")
}

/// Finds the calls of sockets through the supervisor. Weak, because the link has the record that asks.
#[derive(Debug)]
struct Askers(Weak<Link>);

impl CallLookup for Askers {
    fn call_of(&self, source: Source) -> Pin<Box<dyn Future<Output = Option<u64>> + Send + '_>> {
        Box::pin(async move { self.0.upgrade()?.find_call(source).await })
    }
}

impl Ticket {
    /// Returns the network access that the program was refused so far.
    pub(crate) async fn refused(&self) -> Vec<RefusedAccess> {
        self.link.refused.of(self.id).await
    }

    /// Waits until the program has ended, or its status can no longer become known.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn ended(&mut self) {
        if self.ending.is_none() {
            let ending = (&mut self.receiver).await;
            self.ending = Some(ending.unwrap_or_else(|_| Ending::Lost(self.link.failure())));
        }
    }

    /// Sends `TERM` to the program and its descendants.
    pub(crate) fn terminate(&self) {
        self.link.signal(self.id, Signal::TERM);
    }

    /// Sends `KILL` to the program and its descendants.
    pub(crate) fn kill(&self) {
        self.link.signal(self.id, Signal::KILL);
    }

    /// Returns the end of the program. Call it after [`Ticket::ended`].
    pub(crate) fn into_ending(mut self) -> Ending {
        self.ending.take().expect("BUG: the end of a program is awaited before it is asked for")
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // A signal for an ended program is ignored, but do not send it for nothing.
        if self.ending.is_none() && !self.receiver.is_terminated() {
            self.kill();
        }
        self.link.refused.end(self.id);
    }
}
