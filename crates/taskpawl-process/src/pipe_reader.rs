use std::fs::File;
use std::future::pending;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, fcntl_setfl};
use tokio::net::unix::pipe;

/// The reading end of a pipe that a program prints into.
///
/// Programs get a pipe instead of the file itself: a shell redirection to `/dev/stderr` reopens and truncates
/// a file, which would lose all earlier output. A pipe cannot be truncated.
#[derive(Debug, Default)]
pub(crate) enum PipeReader {
    /// Read on demand. Most programs end before it pays to register the pipe with the runtime.
    Asked(File),
    /// Registered with the runtime.
    Watched(pipe::Receiver),
    /// At its end, or closed.
    #[default]
    Over,
}

impl PipeReader {
    /// Creates a pipe. Returns the reading end and the end for the program.
    pub(crate) fn open() -> io::Result<(Self, OwnedFd)> {
        let (reader, writer) = io::pipe()?;
        let reader = OwnedFd::from(reader);
        fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        Ok((Self::Asked(reader.into()), writer.into()))
    }

    /// Registers the pipe with the runtime.
    pub(crate) fn watch(&mut self) -> io::Result<()> {
        if let Self::Asked(_) = self
            && let Self::Asked(pipe) = std::mem::take(self)
        {
            *self = Self::Watched(pipe::Receiver::from_file_unchecked(pipe)?);
        }
        Ok(())
    }

    /// Takes the pipe back from the runtime, which may not have noticed the last output yet and would then
    /// report an empty pipe.
    pub(crate) fn unwatch(&mut self) -> io::Result<()> {
        if let Self::Watched(_) = self
            && let Self::Watched(pipe) = std::mem::take(self)
        {
            *self = Self::Asked(pipe.into_nonblocking_fd()?.into());
        }
        Ok(())
    }

    /// Waits for output. Never completes unless the pipe is registered.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn readable(&self) {
        if let Self::Watched(pipe) = self
            && pipe.readable().await.is_ok()
        {
            return;
        }
        // An error means that the runtime is shutting down.
        pending::<()>().await;
    }

    /// Reads available output without waiting; returns 0 if there is none.
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
