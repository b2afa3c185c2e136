//! The few things about signals and children that have no safe way.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::Pid;

/// Where the handler leaves word.
static WORD: AtomicI32 = AtomicI32::new(-1);

/// Tells when children have ended.
#[derive(Debug)]
pub(super) struct ChildSignals(OwnedFd);

impl ChildSignals {
    /// Handles signals from now on, once in a process.
    ///
    /// A handler instead of a blocked signal and a `signalfd`: programs inherit what is blocked, but no handlers. `TERM` and
    /// its like leave the supervisor alone: the engine gets them too, and ends its programs gently, for which it needs it.
    pub(super) fn listen() -> io::Result<Self> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        WORD.store(descriptor.as_raw_fd(), Ordering::Relaxed);
        handle(libc::SIGCHLD);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            handle_unless_ignored(signal);
        }
        unblock_all();
        Ok(Self(descriptor))
    }

    /// Forgets the signals that have come so far.
    pub(super) fn clear(&self) {
        // Nothing to be read is nothing to forget.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for ChildSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[expect(unsafe_code, reason = "a signal handler gets no descriptor that it could borrow")]
extern "C" fn leave_word(_: libc::c_int) {
    // SAFETY: the descriptor stays open as long as the process: `ChildSignals` lives in the supervisor's `main`. The call
    // goes to the kernel directly, which signal handlers may do, and leaves `errno` alone.
    let descriptor = unsafe { BorrowedFd::borrow_raw(WORD.load(Ordering::Relaxed)) };
    let _ = rustix::io::write(descriptor, &1_u64.to_ne_bytes());
}

#[expect(unsafe_code, reason = "there is no safe way to install a handler")]
fn handle(signal: libc::c_int) -> libc::sighandler_t {
    // SAFETY: the handler does only what a handler may do.
    unsafe { libc::signal(signal, leave_word as *const () as libc::sighandler_t) }
}

/// A signal that whoever started the engine had ignored stays ignored for programs.
fn handle_unless_ignored(signal: libc::c_int) {
    if handle(signal) == libc::SIG_IGN {
        ignore(signal);
    }
}

#[expect(unsafe_code, reason = "there is no safe way to ignore a signal")]
fn ignore(signal: libc::c_int) {
    // SAFETY: there is no handler that could do anything wrong.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// The thread that started this process may have blocked signals, and programs would inherit that too.
#[expect(unsafe_code, reason = "there is no safe way to change the signal mask")]
fn unblock_all() {
    // SAFETY: both calls get a set that lives on this stack, and the first one initialises it.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Returns a child that has ended, without reaping it: its id, and that of its group, cannot belong to anybody else.
#[expect(unsafe_code, reason = "rustix does not say which child it was")]
pub(super) fn ended_child() -> Option<Pid> {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: all bits zero are a valid value, `waitid` writes to no more than it, and the id is defined for a child.
    let id = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        match libc::waitid(libc::P_ALL, 0, &raw mut info, flags) {
            0 => info.si_pid(),
            _ => 0,
        }
    };
    Pid::from_raw(id)
}
