//! Length-prefixed frames over a socket, each bounded in size and in time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::flags::NO_SIGNAL;

/// Bytes of the length prefix of a frame, a little-endian `u32`.
const LENGTH: usize = 4;

/// One connection between a call and its run.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// Limits on the time that one operation may take.
#[derive(Debug, Clone, Copy, Default)]
pub struct Patience<'a> {
    /// The deadline; without one the operation may block forever.
    pub until: Option<Instant>,
    /// Aborts the operation as soon as this descriptor becomes readable.
    pub stop: Option<BorrowedFd<'a>>,
}

impl Channel {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// `TimedOut` after the deadline, `ConnectionAborted` after a stop, or the error of the system call.
    pub fn send(&self, bytes: &[u8], patience: Patience<'_>) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).map_err(|_| too_long(bytes.len()))?;
        self.write(&length.to_le_bytes(), patience)?;
        self.write(bytes, patience)
    }

    /// Receives a frame of at most `most` bytes, or `None` after the peer has closed the connection.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send), `InvalidData` for a frame that is too long, `UnexpectedEof` for a
    /// truncated one.
    pub fn receive(&self, most: usize, patience: Patience<'_>) -> io::Result<Option<Vec<u8>>> {
        let mut length = [0; LENGTH];
        if !self.read(&mut length, patience)? {
            return Ok(None);
        }
        let length = usize::try_from(u32::from_le_bytes(length)).map_err(io::Error::other)?;
        // The length comes from another process: check it before allocating.
        if length > most {
            return Err(too_long(length));
        }
        let mut bytes = vec![0; length];
        if !bytes.is_empty() && !self.read(&mut bytes, patience)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(bytes))
    }

    /// Waits until the peer has sent something or has closed the connection.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send).
    pub fn wait(&self, patience: Patience<'_>) -> io::Result<()> {
        wait_for(self.0.as_fd(), PollFlags::IN, patience)
    }

    fn write(&self, mut bytes: &[u8], patience: Patience<'_>) -> io::Result<()> {
        while !bytes.is_empty() {
            // NOSIGNAL: a closed peer must be an error, not a SIGPIPE that ends the host program. DONTWAIT: a
            // blocking send would ignore the deadline and the stop descriptor.
            match send(&self.0, bytes, NO_SIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::AGAIN) => wait_for(self.0.as_fd(), PollFlags::OUT, patience)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Fills the buffer. Returns false if the connection was closed before the first byte.
    fn read(&self, buffer: &mut [u8], patience: Patience<'_>) -> io::Result<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            match recv(&self.0, &mut buffer[filled..], RecvFlags::DONTWAIT) {
                // Linux reports CONNRESET if the peer closed its end while data that we had sent was still
                // unread. Between two frames that is an ordinary end of the connection.
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

/// Waits until a descriptor is ready, the deadline has passed, or the stop descriptor is readable.
pub(super) fn wait_for(
    descriptor: BorrowedFd<'_>,
    interest: PollFlags,
    patience: Patience<'_>,
) -> io::Result<()> {
    loop {
        // Computed in every round, so that signals (INTR) do not extend the deadline.
        let left = patience.until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        let mut descriptors = vec![PollFd::from_borrowed_fd(descriptor, interest)];
        descriptors.extend(patience.stop.map(|stop| PollFd::from_borrowed_fd(stop, PollFlags::IN)));
        match poll(&mut descriptors, left.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            // A stop wins over readiness: a peer that keeps sending could otherwise hold up the shutdown.
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
    io::Error::new(io::ErrorKind::InvalidData, format!("a message of {bytes} bytes exceeds the limit"))
}
