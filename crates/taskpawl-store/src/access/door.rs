//! The door to a plan: one descriptor, through which a channel comes for each that asks.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not told apart here is treated alike, also what is yet to come"
)]

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use super::channel::{Channel, Patience, wait_for};

/// The side of the door that a call has: what is behind `TASKPAWL_FD`. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Door(Arc<OwnedFd>);

/// The other side of the door.
#[derive(Debug)]
pub struct DoorKeeper(OwnedFd);

/// Returns both sides of a door. The door is shut when the keeper is gone; channels that came through it stay open.
///
/// # Errors
/// The system has no room for more descriptors.
pub fn door() -> io::Result<(Door, DoorKeeper)> {
    let (call, keeper) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok((Door(Arc::new(call)), DoorKeeper(keeper)))
}

impl Door {
    /// Returns the descriptor.
    pub fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.0)
    }

    /// Takes the next channel; `None` when the door is shut.
    ///
    /// # Errors
    /// As of [`Channel::send`].
    pub fn enter(&self, patience: Patience<'_>) -> io::Result<Option<Channel>> {
        loop {
            wait_for(self.0.as_fd(), PollFlags::IN, patience)?;
            let mut byte = [0];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let received = match recvmsg(&self.0, &mut [IoSliceMut::new(&mut byte)], &mut control, flags) {
                Ok(received) => received.bytes,
                // Somebody else was faster.
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
                // The kernel leaves out descriptors for which there is no room.
                None => return Err(Errno::MFILE.into()),
            }
        }
    }
}

impl From<Arc<OwnedFd>> for Door {
    fn from(descriptor: Arc<OwnedFd>) -> Self {
        Self(descriptor)
    }
}

impl From<OwnedFd> for Door {
    fn from(descriptor: OwnedFd) -> Self {
        Self(Arc::new(descriptor))
    }
}

impl PartialEq for Door {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Door {}

impl DoorKeeper {
    /// Puts a channel into the door, for whoever comes first, and returns its other side. Nothing that comes from the call is
    /// ever taken out of the door: no descriptor of its making reaches this process.
    ///
    /// # Errors
    /// The call has closed its side, or the system has no room for more descriptors.
    pub fn offer(&self) -> io::Result<Channel> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let rights = [theirs.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&rights)) {
            return Err(Errno::TOOBIG.into());
        }
        sendmsg(&self.0, &[IoSlice::new(&[0])], &mut control, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        Ok(Channel::new(ours))
    }
}
