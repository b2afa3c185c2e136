//! Frames over a socket, each with a bound on its size and on the time that it takes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// The bytes that tell the length of a frame.
const LENGTH: usize = 4;

/// One conversation.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// How long something may take.
#[derive(Debug, Clone, Copy, Default)]
pub struct Patience<'a> {
    /// When it has to be over.
    pub until: Option<Instant>,
    /// Cuts it short as soon as it can be read.
    pub stop: Option<BorrowedFd<'a>>,
}

impl Channel {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// `TimedOut` after the time given, `ConnectionAborted` when it was stopped, and what the system says.
    pub fn send(&self, bytes: &[u8], patience: Patience<'_>) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).map_err(|_| too_long(bytes.len()))?;
        self.write(&length.to_le_bytes(), patience)?;
        self.write(bytes, patience)
    }

    /// Receives a frame of at most `most` bytes; `None` when there will be none any more.
    ///
    /// # Errors
    /// As of [`send`](Self::send); and where a frame is longer, or is cut off.
    pub fn receive(&self, most: usize, patience: Patience<'_>) -> io::Result<Option<Vec<u8>>> {
        let mut length = [0; LENGTH];
        if !self.read(&mut length, patience)? {
            return Ok(None);
        }
        let length = usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?;
        if length > most {
            return Err(too_long(length));
        }
        let mut bytes = vec![0; length];
        if !bytes.is_empty() && !self.read(&mut bytes, patience)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(bytes))
    }

    /// Waits until the other side says something, or has gone.
    ///
    /// # Errors
    /// As of [`send`](Self::send).
    pub fn wait(&self, patience: Patience<'_>) -> io::Result<()> {
        wait_for(self.0.as_fd(), PollFlags::IN, patience)
    }

    fn write(&self, mut bytes: &[u8], patience: Patience<'_>) -> io::Result<()> {
        while !bytes.is_empty() {
            match send(&self.0, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::AGAIN) => wait_for(self.0.as_fd(), PollFlags::OUT, patience)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Fills the buffer; returns false if there is nothing any more before its first byte.
    fn read(&self, buffer: &mut [u8], patience: Patience<'_>) -> io::Result<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            match recv(&self.0, &mut buffer[filled..], RecvFlags::DONTWAIT) {
                Ok((0, _)) | Err(Errno::CONNRESET) if filled == 0 => return Ok(false),
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((received, _)) => filled += received,
                Err(Errno::AGAIN) => wait_for(self.0.as_fd(), PollFlags::IN, patience)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

/// Waits until a descriptor is ready.
pub(super) fn wait_for(
    descriptor: BorrowedFd<'_>,
    interest: PollFlags,
    patience: Patience<'_>,
) -> io::Result<()> {
    loop {
        let left = patience.until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        let mut descriptors = vec![PollFd::from_borrowed_fd(descriptor, interest)];
        descriptors.extend(patience.stop.map(|stop| PollFd::from_borrowed_fd(stop, PollFlags::IN)));
        match poll(&mut descriptors, left.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) if descriptors.get(1).is_some_and(|stop| !stop.revents().is_empty()) => {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn too_long(bytes: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a message of {bytes} bytes is more than is allowed"))
}
