//! The listener socket of a plan: one descriptor through which each client receives a connection of its own.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the variants that are not listed, and future ones, are treated alike"
)]

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use super::channel::{Channel, Patience, wait_for};
use super::flags::{CLOSED_ON_EXEC, NO_SIGNAL, RIGHTS_CLOSED_ON_EXEC};

/// The end of the listener socket that a call has, passed as `TASKPAWL_FD`. Clones share one descriptor.
#[derive(Debug, Clone)]
pub struct PlanSocket(Arc<OwnedFd>);

/// The end of the listener socket that the run keeps.
#[derive(Debug)]
pub struct Acceptor(OwnedFd);

/// Creates both ends of a listener socket. Dropping the [`Acceptor`] closes the listener; open connections
/// stay usable.
///
/// # Errors
/// The process or the system is out of descriptors.
pub fn plan_socket() -> io::Result<(PlanSocket, Acceptor)> {
    // SEQPACKET: each receive takes exactly one message, so that concurrent programs of a call never share a
    // connection.
    let (call, acceptor) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, CLOSED_ON_EXEC, None)?;
    Ok((PlanSocket(Arc::new(call)), Acceptor(acceptor)))
}

impl PlanSocket {
    /// Returns the descriptor, to be inherited by a program of the call.
    pub fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.0)
    }

    /// Receives the next connection, or `None` after the listener was closed.
    ///
    /// # Errors
    /// The errors of [`Channel::send`], and `EMFILE` if this process is out of descriptors.
    pub fn enter(&self, patience: Patience<'_>) -> io::Result<Option<Channel>> {
        loop {
            wait_for(self.0.as_fd(), PollFlags::IN, patience)?;
            let mut byte = [0];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RIGHTS_CLOSED_ON_EXEC;
            let received = match recvmsg(&self.0, &mut [IoSliceMut::new(&mut byte)], &mut control, flags) {
                Ok(received) => received.bytes,
                // Another program of the same call took the connection that `poll` announced.
                Err(Errno::AGAIN | Errno::INTR) => continue,
                Err(Errno::CONNRESET) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let mut sockets = control.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
                _ => None,
            });
            match sockets.next() {
                Some(socket) => return Ok(Some(Channel::new(socket))),
                None if received == 0 => return Ok(None),
                // The kernel silently drops descriptors that do not fit into the receiver's descriptor table.
                None => return Err(Errno::MFILE.into()),
            }
        }
    }
}

impl From<Arc<OwnedFd>> for PlanSocket {
    fn from(descriptor: Arc<OwnedFd>) -> Self {
        Self(descriptor)
    }
}

impl From<OwnedFd> for PlanSocket {
    fn from(descriptor: OwnedFd) -> Self {
        Self(Arc::new(descriptor))
    }
}

impl PartialEq for PlanSocket {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PlanSocket {}

impl Acceptor {
    /// Offers one connection to the first client that asks, and returns the run's end of it. The run never
    /// receives anything through the listener, so a call cannot pass descriptors of its own into this
    /// process.
    ///
    /// # Errors
    /// The call has closed its end, or the system is out of descriptors.
    pub fn offer(&self) -> io::Result<Channel> {
        // STREAM: frames may be longer than the largest packet of a SEQPACKET socket.
        let (run_end, call_end) = socketpair(AddressFamily::UNIX, SocketType::STREAM, CLOSED_ON_EXEC, None)?;
        send_descriptor(self.0.as_fd(), call_end.as_fd())?;
        Ok(Channel::new(run_end))
    }
}

/// Sends a descriptor to the other end of a socket, without waiting for it.
pub(super) fn send_descriptor(to: BorrowedFd<'_>, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let rights = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&rights)) {
        return Err(Errno::TOOBIG.into());
    }
    sendmsg(to, &[IoSlice::new(&[0])], &mut control, SendFlags::DONTWAIT | NO_SIGNAL)?;
    Ok(())
}
