use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A running program that this process has started, with the processes in its group.
///
/// Dropping it kills the group. The program is watched through a pidfd instead of tokio's child handling.
/// That would install a signal handler in the host program to reap a dropped child. The pidfd also allows
/// killing the group before its leader is reaped, so that the group id cannot be reused by another process.
#[derive(Debug)]
pub(crate) struct OwnGroup {
    leader: Option<Child>,
    id: Pid,
    pidfd: AsyncFd<OwnedFd>,
}

impl OwnGroup {
    /// Starts `command`, which must lead its own process group.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        let leader = Leader(Some(command.spawn()?));
        let id = leader.id();
        let pidfd = pidfd_open(id, PidfdFlags::NONBLOCK)?;
        Ok(Self { pidfd: watched(pidfd)?, leader: leader.disarm(), id })
    }

    /// Waits for the end of the leader, which stays a zombie until [`OwnGroup::reap`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn ended(&self) {
        // An error means that the runtime is shutting down. The group is then killed and reaped without
        // waiting.
        let _ = self.pidfd.readable().await;
    }

    /// Sends `TERM` to the group.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends `KILL` to the group.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Sends a signal and ignores errors, which mean that the processes are gone. The leader is also
    /// signalled through its pidfd, because it may have moved to another group.
    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.id, signal);
        let _ = pidfd_send_signal(&self.pidfd, signal);
    }

    /// Kills the rest of the group and returns the status of the leader. Does not block after
    /// [`OwnGroup::ended`].
    pub(crate) fn reap(mut self) -> io::Result<ExitStatus> {
        // Before the leader is reaped: afterwards the group id may belong to another process.
        let _ = kill_process_group(self.id, Signal::KILL);
        self.leader.take().expect("BUG: a leader is taken once").wait()
    }
}

impl Drop for OwnGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.leader.take() {
            self.kill();
            reap_elsewhere(leader);
        }
    }
}

#[expect(unsafe_code, reason = "tokio has no safe way to register a descriptor")]
fn watched(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, and only the `AsyncFd` that takes it can close it.
    Ok(unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?)
}

/// Kills the child on drop, if a pidfd for it could not be opened or registered.
struct Leader(Option<Child>);

impl Leader {
    fn id(&self) -> Pid {
        Pid::from_child(self.0.as_ref().expect("BUG: a leader is taken once"))
    }

    fn disarm(mut self) -> Option<Child> {
        self.0.take()
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if let Some(child) = self.0.take() {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            reap_elsewhere(child);
        }
    }
}

/// Reaps a killed child. It usually ends within milliseconds, but one that hangs in the kernel must not block
/// the thread that drops the future.
fn reap_elsewhere(mut child: Child) {
    if matches!(child.try_wait(), Ok(None)) {
        let _ = std::thread::Builder::new().name("taskpawl-reap".to_owned()).spawn(move || child.wait());
    }
}
