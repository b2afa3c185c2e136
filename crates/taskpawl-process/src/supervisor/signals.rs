//! The few things about signals and children that have no safe way.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::Pid;

/// Tells when children have ended.
#[derive(Debug)]
pub(super) struct ChildSignals(OwnedFd);

impl ChildSignals {
    /// Handles signals from now on, once in a process.
    ///
    /// The end of a child is blocked and heard by a descriptor, which costs less than a handler; who starts programs has to
    /// unblock it for them. `TERM` and its like leave the supervisor alone: the engine gets them too, and ends its programs gently,
    /// for which it needs it. They have a handler, which programs do not inherit, and are not ignored, which they would.
    pub(super) fn listen() -> io::Result<Self> {
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            disarm(signal);
        }
        hear_children().map(Self)
    }

    /// Forgets the signals that have come so far.
    pub(super) fn clear(&self) {
        // Nothing to be read is nothing to forget.
        let _ = rustix::io::read(&self.0, &mut [0; size_of::<libc::signalfd_siginfo>()]);
    }
}

impl AsFd for ChildSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

extern "C" fn do_nothing(_: libc::c_int) {}

/// Makes a signal do nothing. One that whoever started the engine had ignored stays ignored for programs.
#[expect(unsafe_code, reason = "there is no safe way to install a handler")]
fn disarm(signal: libc::c_int) {
    // SAFETY: a handler that does nothing does nothing wrong.
    unsafe {
        if libc::signal(signal, do_nothing as *const () as libc::sighandler_t) == libc::SIG_IGN {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// Blocks the end of children and nothing else: the thread that started this process may have blocked signals. Returns what
/// becomes readable by it.
#[expect(unsafe_code, reason = "there is no safe way to receive signals by a descriptor")]
fn hear_children() -> io::Result<OwnedFd> {
    let mut children = none();
    // SAFETY: the set lives on this stack, and the descriptor is new and belongs to nobody else. The handling of the signal is
    // the normal one, even if it was ignored: then ended children would vanish.
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

/// Returns the set of no signals.
#[expect(unsafe_code, reason = "there is no safe way to make a set of signals")]
pub(super) fn none() -> libc::sigset_t {
    // SAFETY: all bits zero are a valid value, and the call initialises it.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        none
    }
}

/// Does something while no signal is handled.
#[expect(unsafe_code, reason = "there is no safe way to change the signal mask")]
pub(super) fn while_blocked<T>(work: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = (none(), none());
    // SAFETY: both sets live on this stack.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    let result = work();
    // SAFETY: the set lives on this stack and holds what the first call has written.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    result
}

/// What there is of children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Child {
    /// This one has ended. It is not reaped: its id, and that of its group, cannot belong to anybody else.
    Ended(Pid),
    /// Some, and all of them live.
    Living,
    None,
}

/// Looks for a child that has ended.
#[expect(unsafe_code, reason = "rustix does not say which child it was")]
pub(super) fn next_child() -> Child {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: all bits zero are a valid value, `waitid` writes to no more than it, and the id is defined for a child.
    let id = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        match libc::waitid(libc::P_ALL, 0, &raw mut info, flags) {
            0 => info.si_pid(),
            _ => return Child::None,
        }
    };
    Pid::from_raw(id).map_or(Child::Living, Child::Ended)
}
