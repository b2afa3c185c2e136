use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::io::Errno;

use super::askers;
use super::calls::Calls;
use super::connect::{Broker, Reach, RecentSources};
use super::signals::ChildSignals;
use super::socket::{MAX_DESCRIPTORS, Message, Received, receive};
use super::wire::{Hello, Reply, Request, VERSION};
use crate::faults::{self, Fault};
use crate::profile::{Enforcement, NetworkWall, Profile};
use crate::sandbox::{Enforced, enforce};

/// Serves the engine at the other end of standard input until it is gone. Returns the exit code.
pub(super) fn main() -> i32 {
    let Ok(socket) = take_socket() else {
        let _ = writeln!(
            io::stderr(),
            "this program supervises the programs of taskpawl; taskpawl starts it automatically"
        );
        return 2;
    };
    match prepare().and_then(|signals| supervise(socket, &signals)) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

/// Moves the socket away from descriptor 0, where programs expect their input.
fn take_socket() -> io::Result<OwnedFd> {
    let stdin = rustix::stdio::stdin();
    rustix::net::sockopt::socket_type(stdin)?;
    let socket = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(socket)
}

fn prepare() -> io::Result<ChildSignals> {
    // Leave the terminal: Ctrl-C or a hangup would kill programs without the knowledge of the engine.
    rustix::process::setsid()?;
    // As a subreaper the supervisor becomes the parent of all orphaned descendants, so that it can find and
    // kill them.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::process::chdir("/")?;
    // Otherwise the name would be `exe`, after `/proc/self/exe`.
    rustix::thread::set_name(c"taskpawl-superv")?;
    ChildSignals::listen()
}

fn supervise(socket: OwnedFd, signals: &ChildSignals) -> io::Result<()> {
    let Some(Greeted { calls, recent, lock }) = shake_hands(&socket)? else { return Ok(()) };
    let mut server = Server { socket, calls, recent, outbox: VecDeque::new() };
    let ended = server.serve(signals);
    if !faults::is_on(Fault::NoSweep) {
        server.calls().kill_everything();
    }
    // Release the lock last: while it is held, the run may still have processes.
    drop(lock);
    ended
}

/// The result of the handshake.
struct Greeted {
    calls: Arc<Mutex<Calls>>,
    recent: Arc<RecentSources>,
    lock: Option<OwnedFd>,
}

/// Receives the first message, sets up the sandbox, and replies.
fn shake_hands(socket: &OwnedFd) -> io::Result<Option<Greeted>> {
    poll(&mut [PollFd::new(socket, PollFlags::IN)], None)?;
    let Received::Message(message) = receive(socket)? else { return Ok(None) };
    let Request::Start(start) = Request::read(&message.bytes)? else { return Ok(None) };
    faults::enable_bits(start.faults);
    let mut descriptors = message.descriptors.into_iter();
    let lock = if start.has_lock { descriptors.next() } else { None };
    let mut enforced = match &start.profile {
        Some(profile) if start.version == VERSION => with_own_umask(|| enforce(profile)).map(Some),
        Some(_) | None => Ok(None),
    };
    let on = enforced.as_mut().ok().and_then(Option::as_mut);
    let (room, sockets) = on.map(|on| (on.room.take(), std::mem::take(&mut on.sockets))).unwrap_or_default();
    hand_out(sockets, socket)?;
    let calls = Arc::new(Mutex::new(Calls::new(start.mark.into_owned(), room)?));
    let recent = Arc::<RecentSources>::default();
    if let (Some(profile), Ok(Some(enforced))) = (&start.profile, &mut enforced) {
        broker_connections(profile, &mut enforced.enforcement, &calls, &recent, socket)?;
    }
    let (is_ready, reply) = match enforced {
        Ok(enforced) => (start.version == VERSION, Reply::Hello(hello(enforced))),
        Err(refusal) => (false, Reply::Refused(refusal)),
    };
    let mut bytes = Vec::new();
    reply.write(&mut bytes);
    Message::new(bytes, Vec::new())?.send(socket)?;
    let lock = lock.filter(|_| !faults::is_on(Fault::EarlyLock));
    Ok(is_ready.then_some(Greeted { calls, recent, lock }))
}

/// Starts the broker of connections. Must come after all other restrictions, and before the first program.
fn broker_connections(
    profile: &Profile,
    enforcement: &mut Enforcement,
    calls: &Arc<Mutex<Calls>>,
    recent: &Arc<RecentSources>,
    engine: &OwnedFd,
) -> io::Result<()> {
    // Otherwise there are no sockets to connect. Inside another sandbox, whose supervisor makes the connections, there are none either.
    let has_sockets = enforcement.mounts && enforcement.network != NetworkWall::Filter;
    if !has_sockets || faults::is_on(Fault::NoConnectBroker) {
        return Ok(());
    }
    let granted = [profile.write.as_slice(), &profile.read].concat();
    let reach = Reach { is_shared: enforcement.network == NetworkWall::Open, granted };
    let started = Broker::start(&reach, Arc::clone(calls), Arc::clone(recent), engine.try_clone()?);
    if let Err(error) = started {
        enforcement.gaps.push(format!(
            "sockets of other programs that appear during the run can be connected to: connections are not made by the supervisor ({error})"
        ));
    }
    Ok(())
}

/// Sends listening sockets to the engine, and closes them here.
fn hand_out(sockets: Vec<OwnedFd>, socket: &OwnedFd) -> io::Result<()> {
    let mut sockets = sockets.into_iter().peekable();
    while sockets.peek().is_some() {
        let mut bytes = Vec::new();
        Reply::Sockets.write(&mut bytes);
        Message::new(bytes, sockets.by_ref().take(MAX_DESCRIPTORS).collect())?.send(socket)?;
    }
    Ok(())
}

/// Runs `make` with a fixed umask, because its files must not depend on that of the caller. Programs get the
/// caller's umask.
fn with_own_umask<T>(make: impl FnOnce() -> T) -> T {
    let of_caller = rustix::process::umask(Mode::from_raw_mode(0o022));
    let result = make();
    rustix::process::umask(of_caller);
    result
}

fn hello(enforced: Option<Enforced>) -> Hello {
    let (enforcement, cgroup) = match enforced {
        Some(Enforced { enforcement, cgroup, room: _, sockets: _ }) => (Some(enforcement), cgroup),
        None => (None, None),
    };
    Hello { version: VERSION, enforcement, cgroup }
}

struct Server {
    socket: OwnedFd,
    calls: Arc<Mutex<Calls>>,
    recent: Arc<RecentSources>,
    /// Replies that did not fit into the socket: at most two per program, whose number the engine bounds.
    outbox: VecDeque<Message>,
}

impl Server {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves until the engine closes its end or dies.
    fn serve(&mut self, signals: &ChildSignals) -> io::Result<()> {
        loop {
            let (socket, children) = self.wait(signals)?;
            if socket.intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR) {
                // Discard the remaining requests: the engine no longer wants any program.
                return Ok(());
            }
            if children {
                // Cleared before reaping: a child that ends in between raises the signal again and is not
                // missed.
                signals.clear();
                let replies = self.calls().reap();
                self.queue_replies(&replies)?;
            }
            if socket.contains(PollFlags::IN) {
                match receive(&self.socket)? {
                    Received::Message(message) => self.execute(message)?,
                    Received::Nothing => {}
                    Received::End => return Ok(()),
                }
            }
            self.flush()?;
        }
    }

    /// Waits for work. Returns the readiness of the socket, and whether children have ended.
    fn wait(&self, signals: &ChildSignals) -> io::Result<(PollFlags, bool)> {
        let mut interest = PollFlags::IN | PollFlags::RDHUP;
        interest.set(PollFlags::OUT, !self.outbox.is_empty());
        let mut descriptors = [PollFd::new(&self.socket, interest), PollFd::new(signals, PollFlags::IN)];
        match poll(&mut descriptors, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok((descriptors[0].revents(), !descriptors[1].revents().is_empty()))
    }

    fn execute(&mut self, message: Message) -> io::Result<()> {
        match Request::read(&message.bytes)? {
            Request::Start(_) => {}
            Request::Spawn { id, spec } => {
                let started = if message.lacks_descriptors {
                    Err(Errno::MFILE)
                } else {
                    self.calls().start(id, &spec, message.descriptors)
                };
                if let Err(error) = started {
                    self.queue_replies(&[Reply::NotStarted { id, errno: error.raw_os_error() }])?;
                }
            }
            Request::Signal { id, signal } => self.calls().signal(id, signal),
            Request::FindCall { question, source } => {
                let call = askers::call_of(&self.calls(), &self.recent, source);
                self.queue_replies(&[Reply::FoundCall { question, call }])?;
            }
        }
        Ok(())
    }

    fn queue_replies(&mut self, replies: &[Reply]) -> io::Result<()> {
        if !replies.is_empty() {
            let mut bytes = Vec::new();
            for reply in replies {
                reply.write(&mut bytes);
            }
            self.outbox.push_back(Message::new(bytes, Vec::new())?);
        }
        Ok(())
    }

    /// Sends queued replies, as far as they fit.
    fn flush(&mut self) -> io::Result<()> {
        while let Some(message) = self.outbox.front() {
            match message.send(&self.socket) {
                Ok(()) => self.outbox.pop_front(),
                Err(Errno::AGAIN | Errno::NOBUFS) => break,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(())
    }
}
