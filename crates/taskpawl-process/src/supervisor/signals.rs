//! Operations on signals and children for which there is no safe interface.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::Pid;

/// Becomes readable when children have ended.
#[derive(Debug)]
pub(super) struct ChildSignals(OwnedFd);

impl ChildSignals {
    /// Sets up signal handling, once per process.
    ///
    /// `SIGCHLD` is blocked and read from a signalfd, which is cheaper than a handler. Programs must be
    /// started with it unblocked. `SIGTERM`, `SIGINT` and `SIGHUP` must not end the supervisor: the engine
    /// gets them as well, and needs the supervisor to end its programs gracefully. They get an empty handler
    /// instead of `SIG_IGN`, because `execve` resets handlers, but programs would inherit ignored signals.
    pub(super) fn listen() -> io::Result<Self> {
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            disarm(signal);
        }
        hear_children().map(Self)
    }

    /// Discards the pending signals.
    pub(super) fn clear(&self) {
        // An error means that no signal was pending.
        let _ = rustix::io::read(&self.0, &mut [0; size_of::<libc::signalfd_siginfo>()]);
    }
}

impl AsFd for ChildSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

extern "C" fn do_nothing(_: libc::c_int) {}

/// Installs an empty handler. A signal that the parent of the engine had ignored stays ignored, so that
/// programs inherit that.
#[expect(unsafe_code, reason = "there is no safe way to install a handler")]
fn disarm(signal: libc::c_int) {
    // SAFETY: the handler is empty.
    unsafe {
        if libc::signal(signal, do_nothing as *const () as libc::sighandler_t) == libc::SIG_IGN {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// Blocks `SIGCHLD` and no other signal, because the thread that started this process may have blocked some.
/// Returns a descriptor that becomes readable when a child ends.
#[expect(unsafe_code, reason = "there is no safe way to receive signals by a descriptor")]
fn hear_children() -> io::Result<OwnedFd> {
    let mut children = none();
    // SAFETY: the set is on this stack, and the descriptor is new and has no other owner. The default
    // disposition is restored because children of a process that ignores SIGCHLD are reaped by the kernel,
    // without a status.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::sigaddset(&raw mut children, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const children, std::ptr::null_mut());
        match libc::signalfd(-1, &raw const children, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            descriptor if descriptor >= 0 => Ok(OwnedFd::from_raw_fd(descriptor)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Returns the empty signal set.
#[expect(unsafe_code, reason = "there is no safe way to make a set of signals")]
pub(super) fn none() -> libc::sigset_t {
    // SAFETY: all zero bits are a valid value, and the call initializes it.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        none
    }
}

/// Runs `work` with all signals blocked.
#[expect(unsafe_code, reason = "there is no safe way to change the signal mask")]
pub(super) fn while_blocked<T>(work: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = (none(), none());
    // SAFETY: both sets are on this stack.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    let result = work();
    // SAFETY: the set is on this stack and was written by the first call.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    result
}

/// The state of the children of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Child {
    /// This child has ended. It is not reaped, so neither its pid nor its group id can be reused.
    Ended(Pid),
    /// There are children, and none has ended.
    Living,
    None,
}

/// Finds a child that has ended, without reaping it.
#[expect(unsafe_code, reason = "rustix does not say which child it was")]
pub(super) fn next_child() -> Child {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: all zero bits are a valid value, `waitid` writes only to it, and the pid is defined for a
    // child.
    let id = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        match libc::waitid(libc::P_ALL, 0, &raw mut info, flags) {
            0 => info.si_pid(),
            _ => return Child::None,
        }
    };
    Pid::from_raw(id).map_or(Child::Living, Child::Ended)
}
