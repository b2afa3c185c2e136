//! A way to the plan of a call for programs that do not inherit its descriptor: agents start MCP servers through programs, such as node,
//! that pass nothing on. A relay inside the call holds the descriptor, and hands it out to each client of a socket file.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the variants that are not listed, and future ones, are treated alike"
)]

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, recvmsg};

use super::flags::RIGHTS_CLOSED_ON_EXEC;
use super::socket::{PlanSocket, send_descriptor};

impl PlanSocket {
    /// Hands the socket out to every client of `listener`, until that fails.
    pub fn relay(&self, listener: &UnixListener) -> io::Error {
        loop {
            match listener.accept() {
                // A client that is gone already has lost nothing.
                Ok((client, _)) => drop(send_descriptor(client.as_fd(), self.descriptor().as_fd())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error,
            }
        }
    }

    /// Receives the socket from the relay at a path.
    ///
    /// # Errors
    /// No relay listens there, or it is gone.
    pub fn through(path: &Path) -> io::Result<Self> {
        let relay = UnixStream::connect(path)?;
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        loop {
            let mut part = [IoSliceMut::new(&mut byte)];
            match recvmsg(&relay, &mut part, &mut control, RIGHTS_CLOSED_ON_EXEC) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => break,
            }
        }
        let descriptor = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
            _ => None,
        });
        descriptor.map(Self::from).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}
