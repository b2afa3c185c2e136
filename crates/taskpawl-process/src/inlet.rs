use std::fs::File;
use std::future::pending;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, fcntl_setfl};
use tokio::net::unix::pipe;

/// Our end of a pipe that a program prints into.
///
/// A pipe and not the file itself: a script that prints to `/dev/stderr` by `>` opens it anew and truncated, which takes all that
/// was printed before from a file and nothing from a pipe.
#[derive(Debug, Default)]
pub(crate) enum Inlet {
    /// Looked at when it is asked: most programs are over before it is worth more.
    Asked(File),
    /// The runtime tells when something comes.
    Watched(pipe::Receiver),
    /// Nothing comes any more.
    #[default]
    Over,
}

impl Inlet {
    /// Returns our end of a new pipe and that of the program.
    pub(crate) fn open() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = io::pipe()?;
        let ours = OwnedFd::from(ours);
        fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        Ok((Self::Asked(ours.into()), theirs.into()))
    }

    /// Has the runtime watch it from now on.
    pub(crate) fn watch(&mut self) -> io::Result<()> {
        if let Self::Asked(_) = self
            && let Self::Asked(pipe) = std::mem::take(self)
        {
            *self = Self::Watched(pipe::Receiver::from_file_unchecked(pipe)?);
        }
        Ok(())
    }

    /// Leaves the runtime's opinion aside: it may not have heard yet of what came last.
    pub(crate) fn unwatch(&mut self) -> io::Result<()> {
        if let Self::Watched(_) = self
            && let Self::Watched(pipe) = std::mem::take(self)
        {
            *self = Self::Asked(pipe.into_nonblocking_fd()?.into());
        }
        Ok(())
    }

    /// Waits until something comes; for ever where it is not watched.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn readable(&self) {
        if let Self::Watched(pipe) = self
            && pipe.readable().await.is_ok()
        {
            return;
        }
        // An error says that the runtime is shutting down.
        pending::<()>().await;
    }

    /// Reads what is there, without waiting; nothing is 0 bytes.
    pub(crate) fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let read = match self {
            Self::Asked(pipe) => pipe.read(piece),
            Self::Watched(pipe) => pipe.try_read(piece),
            Self::Over => return Ok(0),
        };
        match read {
            Ok(0) => {
                *self = Self::Over;
                Ok(0)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(0)
            }
            read => read,
        }
    }
}
