use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::io::Errno;

use super::calls::Calls;
use super::signals::ChildSignals;
use super::socket::{Message, Received, receive};
use super::wire::{Hello, Reply, Request, VERSION};
use crate::faults::{self, Fault};
use crate::sandbox::{Enforced, enforce};

/// Works as the supervisor at the other end of standard input, until its engine is gone. Returns the exit code.
pub(super) fn main() -> i32 {
    let Ok(socket) = take_socket() else {
        let _ = writeln!(
            io::stderr(),
            "this is the part of taskpawl that owns programs; taskpawl starts it itself"
        );
        return 2;
    };
    match prepare().and_then(|signals| supervise(socket, &signals)) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

/// Takes the socket out of the place where programs find their input.
fn take_socket() -> io::Result<OwnedFd> {
    let stdin = rustix::stdio::stdin();
    rustix::net::sockopt::socket_type(stdin)?;
    let socket = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(socket)
}

fn prepare() -> io::Result<ChildSignals> {
    // Out of reach of the keys and the end of a terminal, which would end programs behind the engine's back.
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::process::chdir("/")?;
    // Otherwise it would be `exe`.
    rustix::thread::set_name(c"taskpawl-superv")?;
    ChildSignals::listen()
}

fn supervise(socket: OwnedFd, signals: &ChildSignals) -> io::Result<()> {
    let Some(Greeted { mark, lock, room }) = greet(&socket)? else { return Ok(()) };
    let mut server = Server { socket, calls: Calls::new(mark, room)?, outbox: VecDeque::new() };
    let ended = server.serve(signals);
    if !faults::is_on(Fault::NoSweep) {
        server.calls.kill_everything();
    }
    // The lock says that the run may still have programs.
    drop(lock);
    ended
}

/// What a supervisor knows that was greeted.
struct Greeted {
    mark: String,
    lock: Option<OwnedFd>,
    /// See [`Enforced`].
    room: Option<OwnedFd>,
}

/// Waits for the first message, does what it asks for, and answers it.
fn greet(socket: &OwnedFd) -> io::Result<Option<Greeted>> {
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
    let room = enforced.as_mut().ok().and_then(|enforced| enforced.as_mut()?.room.take());
    let (is_ready, reply) = match enforced {
        Ok(enforced) => (start.version == VERSION, Reply::Hello(hello(enforced))),
        Err(refusal) => (false, Reply::Refused(refusal)),
    };
    let mut bytes = Vec::new();
    reply.write(&mut bytes);
    Message::new(bytes, Vec::new())?.send(socket)?;
    let lock = lock.filter(|_| !faults::is_on(Fault::EarlyLock));
    Ok(is_ready.then(|| Greeted { mark: start.mark.into_owned(), lock, room }))
}

/// Does something whose files and directories must not depend on the umask of the caller, which programs get all the same.
fn with_own_umask<T>(make: impl FnOnce() -> T) -> T {
    let of_caller = rustix::process::umask(Mode::from_raw_mode(0o022));
    let result = make();
    rustix::process::umask(of_caller);
    result
}

fn hello(enforced: Option<Enforced>) -> Hello {
    let (enforcement, cgroup) = match enforced {
        Some(Enforced { enforcement, cgroup, room: _ }) => (Some(enforcement), cgroup),
        None => (None, None),
    };
    Hello { version: VERSION, enforcement, cgroup }
}

struct Server {
    socket: OwnedFd,
    calls: Calls,
    /// What could not be said yet. At most two replies for each program, and programs are bounded by who starts them.
    outbox: VecDeque<Message>,
}

impl Server {
    /// Works until the engine closes its end, or dies.
    fn serve(&mut self, signals: &ChildSignals) -> io::Result<()> {
        loop {
            let (socket, children) = self.wait(signals)?;
            if socket.intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR) {
                // Whatever it had asked for before is not wanted any more.
                return Ok(());
            }
            if children {
                signals.clear();
                let replies = self.calls.reap();
                self.say(&replies)?;
            }
            if socket.contains(PollFlags::IN) {
                match receive(&self.socket)? {
                    Received::Message(message) => self.obey(message)?,
                    Received::Nothing => {}
                    Received::End => return Ok(()),
                }
            }
            self.flush()?;
        }
    }

    /// Waits until something is to be done, and returns what the socket is ready for and whether children have ended.
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

    fn obey(&mut self, message: Message) -> io::Result<()> {
        match Request::read(&message.bytes)? {
            Request::Start(_) => {}
            Request::Spawn { id, recipe } => {
                if let Err(error) = self.calls.start(id, &recipe, message.descriptors) {
                    self.say(&[Reply::NotStarted { id, errno: error.raw_os_error() }])?;
                }
            }
            Request::Signal { id, signal } => self.calls.signal(id, signal),
        }
        Ok(())
    }

    fn say(&mut self, replies: &[Reply]) -> io::Result<()> {
        if !replies.is_empty() {
            let mut bytes = Vec::new();
            for reply in replies {
                reply.write(&mut bytes);
            }
            self.outbox.push_back(Message::new(bytes, Vec::new())?);
        }
        Ok(())
    }

    /// Sends what there is room for.
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
