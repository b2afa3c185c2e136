//! Messages with descriptors between the engine and its supervisor.
//!
//! The socket preserves message boundaries: each message arrives complete, with its own descriptors, or not
//! at all. A longer message is sent as a file in memory.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// Listening sockets of one message. A program needs only five: three streams, the passed descriptor and the file of a long message.
pub(super) const MAX_DESCRIPTORS: usize = 64;
const MAX_BYTES: usize = 16 << 10;
/// The content of a message whose bytes are in the file of its last descriptor.
const ELSEWHERE: &[u8] = &[0xff];

#[derive(Debug)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    pub(super) descriptors: Vec<OwnedFd>,
    /// True if the kernel dropped descriptors that did not fit into the descriptor table of the receiver.
    pub(super) lacks_descriptors: bool,
}

/// The result of a receive.
#[derive(Debug)]
pub(super) enum Received {
    Message(Message),
    Nothing,
    /// The peer has closed the connection.
    End,
}

/// Returns two connected close-on-exec sockets.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

impl Message {
    pub(super) fn new(bytes: Vec<u8>, mut descriptors: Vec<OwnedFd>) -> io::Result<Self> {
        if bytes.len() <= MAX_BYTES {
            return Ok(Self { bytes, descriptors, lacks_descriptors: false });
        }
        let mut file = File::from(rustix::fs::memfd_create("message", MemfdFlags::CLOEXEC)?);
        file.write_all(&bytes)?;
        descriptors.push(file.into());
        Ok(Self { bytes: ELSEWHERE.to_vec(), descriptors, lacks_descriptors: false })
    }

    /// Sends the message if it fits; never blocks.
    pub(super) fn send(&self, socket: impl AsFd) -> Result<(), Errno> {
        let borrowed: Vec<BorrowedFd<'_>> = self.descriptors.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !borrowed.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&borrowed)) {
            return Err(Errno::TOOBIG);
        }
        sendmsg(
            socket,
            &[IoSlice::new(&self.bytes)],
            &mut control,
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        )?;
        Ok(())
    }

    fn unpacked(mut self) -> io::Result<Self> {
        if self.bytes == ELSEWHERE {
            let mut file = File::from(self.descriptors.pop().ok_or(Errno::MFILE)?);
            file.rewind()?;
            self.bytes.clear();
            file.read_to_end(&mut self.bytes)?;
        }
        Ok(self)
    }
}

/// Receives the next message, if there is one; never blocks.
pub(super) fn receive(socket: impl AsFd) -> io::Result<Received> {
    let mut bytes = vec![0; MAX_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut received = recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags);
    if matches!(received, Err(Errno::CONNRESET)) {
        // Linux reports CONNRESET once if the peer closed with unread data. Its last messages can still be
        // received after that.
        received = recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags);
    }
    let (length, lacks_descriptors) = match received {
        Ok(received) => (received.bytes, received.flags.contains(ReturnFlags::CTRUNC)),
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Received::Nothing),
        Err(Errno::CONNRESET) => return Ok(Received::End),
        Err(error) => return Err(error.into()),
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if length == 0 {
        return Ok(Received::End);
    }
    bytes.truncate(length);
    Ok(Received::Message(Message { bytes, descriptors, lacks_descriptors }.unpacked()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrives(bytes: Vec<u8>) {
        let (here, there) = pair().unwrap();
        let null = || File::open("/dev/null").unwrap().into();
        Message::new(bytes.clone(), vec![null(), null(), null()]).unwrap().send(&here).unwrap();
        let Received::Message(message) = receive(&there).unwrap() else { panic!("no message") };
        assert_eq!((message.bytes, message.descriptors.len()), (bytes, 3));
        assert!(matches!(receive(&there).unwrap(), Received::Nothing));
        drop(here);
        // A child of another test may have inherited the socket until its `execve`.
        while matches!(receive(&there).unwrap(), Received::Nothing) {}
        assert!(matches!(receive(&there).unwrap(), Received::End));
    }

    #[test]
    fn short_and_long_messages_arrive_with_their_descriptors() {
        arrives(vec![1]);
        arrives(vec![1; MAX_BYTES]);
        arrives(vec![1; 3 << 20]);
    }

    #[test]
    fn messages_of_a_peer_that_closed_with_unread_data_arrive() {
        let (here, there) = pair().unwrap();
        for from in [&here, &there] {
            Message::new(vec![1], Vec::new()).unwrap().send(from).unwrap();
        }
        drop(there);
        assert!(matches!(receive(&here).unwrap(), Received::Message(message) if message.bytes == [1]));
        // A child of another test may have inherited the socket until its `execve`.
        while matches!(receive(&here).unwrap(), Received::Nothing) {}
        assert!(matches!(receive(&here).unwrap(), Received::End));
    }

    #[test]
    fn a_full_socket_refuses_without_blocking() {
        let (here, _there) = pair().unwrap();
        let message = Message::new(vec![1; 100], Vec::new()).unwrap();
        let mut sent = 0;
        let error = loop {
            match message.send(&here) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error, Errno::AGAIN);
        assert!(sent > 50, "{sent}");
    }
}
