use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;
use rustix::process::Pid;

use super::super::calls::Calls;
use super::super::signals::while_blocked;
use super::super::socket::Message;
use super::super::wire::Reply;
use super::address::{Address, UnixAddress, absolute, open, seen_by};
use super::listeners::{Listeners, is_unix};
use super::notifications::{GO_ON, Listener, Notification};
use super::recent::RecentSources;
use super::take::{check, connect, connect_to_file, errno_of, take};
use crate::faults::{self, Fault};
use crate::network::{Source, Transport};

/// The number of connections that are made at the same time; more wait. Only a socket that blocks needs a thread for long.
const MAX_THREADS: usize = 256;

/// The number of threads that wait for the next call after a burst.
const MAX_IDLE: usize = 2;

/// A thread has little on its stack.
const STACK: usize = 256 << 10;

/// The pauses between tries to report a refusal, in milliseconds, while the engine does not read.
const PAUSES: [u64; 4] = [1, 4, 16, 64];

/// The sockets that programs may connect to.
#[derive(Debug)]
pub(crate) struct Reach {
    /// Programs use the network of the user.
    pub(crate) is_shared: bool,
    /// Paths that the profile opens. Those that are sockets may be connected to.
    pub(crate) granted: Vec<PathBuf>,
}

/// Makes the connections of programs.
#[derive(Debug)]
pub(crate) struct Broker {
    listener: Listener,
    listeners: Listeners,
    is_shared: bool,
    calls: Arc<Mutex<Calls>>,
    recent: Arc<RecentSources>,
    /// The engine, which learns of refusals.
    engine: OwnedFd,
    threads: AtomicUsize,
    idle: AtomicUsize,
}

impl Broker {
    /// Takes over the `connect` calls of all programs that this thread starts from now on.
    ///
    /// This thread itself must not connect any more. The restrictions of this thread must be in force, because the threads of the broker
    /// inherit them.
    pub(crate) fn start(
        reach: &Reach,
        calls: Arc<Mutex<Calls>>,
        recent: Arc<RecentSources>,
        engine: OwnedFd,
    ) -> io::Result<()> {
        check()?;
        let listeners = Listeners::new(reach.is_shared, &reach.granted);
        let (sender, receiver) = mpsc::channel::<Arc<Self>>();
        // Before the filter, which threads inherit. Without signals, which the main thread waits for.
        let waiting = move || {
            if let Ok(broker) = receiver.recv() {
                broker.serve();
            }
        };
        while_blocked(|| thread::Builder::new().stack_size(STACK).spawn(waiting))?;
        // A network of its own has no slow connections.
        let listener = Listener::install(reach.is_shared)?;
        let (threads, idle) = (AtomicUsize::new(1), AtomicUsize::new(0));
        let is_shared = reach.is_shared;
        let broker = Self { listener, listeners, is_shared, calls, recent, engine, threads, idle };
        sender.send(Arc::new(broker)).map_err(|_| io::Error::other("its thread has ended"))
    }

    fn serve(self: &Arc<Self>) {
        loop {
            let is_spare = self.idle.fetch_add(1, Ordering::Relaxed) >= MAX_IDLE;
            if is_spare {
                self.idle.fetch_sub(1, Ordering::Relaxed);
                break;
            }
            let received = self.listener.receive();
            self.idle.fetch_sub(1, Ordering::Relaxed);
            // An error means that the kernel takes the interface back: later calls fail.
            let Ok(notification) = received else { break };
            let errno = self.connect(&notification).err().unwrap_or_default();
            self.listener.answer(&notification, errno);
        }
        self.threads.fetch_sub(1, Ordering::Relaxed);
    }

    /// Lets another thread receive calls while this one may block.
    fn lend_hand(self: &Arc<Self>) {
        if self.idle.load(Ordering::Relaxed) > 0 || self.threads.load(Ordering::Relaxed) >= MAX_THREADS {
            return;
        }
        self.threads.fetch_add(1, Ordering::Relaxed);
        let broker = Arc::clone(self);
        let started = thread::Builder::new().stack_size(STACK).spawn(move || broker.serve());
        if started.is_err() {
            // The limit of processes is reached. Then calls wait for this one.
            self.threads.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Makes the connection that a program asks for. Returns the error number.
    fn connect(self: &Arc<Self>, notification: &Notification) -> Result<(), i32> {
        let [descriptor, pointer, length, ..] = notification.arguments;
        let thread = i32::try_from(notification.thread).ok().and_then(Pid::from_raw).ok_or(libc::ESRCH)?;
        // The upper half of a register with a descriptor or a length has no meaning.
        #[expect(clippy::cast_possible_truncation, reason = "the kernel ignores the upper half as well")]
        let (descriptor, length) = ((descriptor as u32).cast_signed(), u64::from(length as u32));
        let socket = take(thread, descriptor).map_err(|error| errno_of(&error))?;
        let address = Address::copy(thread, pointer, length).map_err(|error| errno_of(&error))?;
        let asked = Asked { notification, thread, socket: &socket };
        self.check_waiting(&asked)?;
        self.lend_hand();
        match address.unix().filter(|_| is_unix(&socket)) {
            Some(UnixAddress::Path(path)) => self.connect_path(&asked, path),
            Some(UnixAddress::Abstract(name)) => match self.listeners.may_reach_name(name) {
                Ok(true) => connect(&socket, address.bytes()),
                Ok(false) | Err(_) => Err(libc::ECONNREFUSED),
            },
            None => self.connect_other(&asked, &address),
        }
    }

    /// The number of a thread that has ended may already be that of another one.
    fn check_waiting(&self, asked: &Asked<'_>) -> Result<(), i32> {
        if self.listener.still_waits(asked.notification) { Ok(()) } else { Err(libc::EINTR) }
    }

    fn connect_path(&self, asked: &Asked<'_>, path: &Path) -> Result<(), i32> {
        let refused = |errno: i32| {
            let path = absolute(asked.thread, path);
            self.report(asked.thread, |call| Reply::RefusedSocket { call, path });
            errno
        };
        let file = open(&seen_by(asked.thread, path)).map_err(|error| refused(errno_of(&error)))?;
        self.check_waiting(asked)?;
        match self.listeners.may_reach_file(&file) {
            Ok(true) if faults::is_on(Fault::CheckedConnect) => Err(GO_ON),
            Ok(true) => connect_to_file(asked.socket, &file),
            Ok(false) | Err(_) => Err(refused(libc::ECONNREFUSED)),
        }
    }

    /// Makes a connection that the network namespace bounds.
    fn connect_other(&self, asked: &Asked<'_>, address: &Address) -> Result<(), i32> {
        if faults::is_on(Fault::CheckedConnect) {
            return Err(GO_ON);
        }
        let result = connect(asked.socket, address.bytes());
        let to = address.internet().filter(|_| !self.is_shared);
        match (to, result) {
            (Some(to), Err(libc::ECONNREFUSED)) if is_loopback(to.ip()) => {
                self.report(asked.thread, |call| Reply::RefusedPort { call, port: to.port() });
            }
            (Some(_), Ok(()) | Err(libc::EINPROGRESS)) => {
                if let (Some(source), Some(call)) = (source_of(asked.socket), self.call_of(asked.thread)) {
                    self.recent.add(source, call);
                }
            }
            (Some(_) | None, _) => {}
        }
        result
    }

    fn call_of(&self, thread: Pid) -> Option<u64> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).call_of_program(thread)
    }

    /// Tells the engine of a refusal, before the program learns of it and can end.
    fn report(&self, thread: Pid, reply: impl FnOnce(u64) -> Reply) {
        let Some(call) = self.call_of(thread) else { return };
        let mut bytes = Vec::new();
        reply(call).write(&mut bytes);
        let Ok(message) = Message::new(bytes, Vec::new()) else { return };
        for pause in PAUSES {
            match message.send(&self.engine) {
                Err(Errno::AGAIN | Errno::NOBUFS) => thread::sleep(Duration::from_millis(pause)),
                Ok(()) | Err(_) => return,
            }
        }
    }
}

/// A call of a program.
struct Asked<'a> {
    notification: &'a Notification,
    thread: Pid,
    socket: &'a OwnedFd,
}

fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|address| address.is_loopback())
        }
    }
}

/// Returns the local end of a socket.
fn source_of(socket: &OwnedFd) -> Option<Source> {
    let transport = match socket_type(socket).ok()? {
        SocketType::STREAM => Transport::Tcp,
        SocketType::DGRAM => Transport::Udp,
        _ => return None,
    };
    let local = std::net::SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok()?;
    Some(Source { transport, port: local.port() })
}
