use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::error::SpawnError;
use crate::filter::{OutputFilter, filter_file};
use crate::spare::SpareFiles;

/// Where the output of a program goes.
#[derive(Clone, Debug)]
pub struct OutputFiles {
    /// The file that is its standard output.
    pub stdout: PathBuf,
    /// The file that is its standard error; another one than `stdout`.
    pub stderr: PathBuf,
}

/// What a program has written to one of its streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The output, or its head and tail with a line between that says how much is missing. Bytes that are no
    /// UTF-8 are replaced by U+FFFD.
    pub text: String,
    /// How many bytes the output has.
    pub bytes: u64,
    /// Whether `text` is only head and tail.
    pub truncated: bool,
    /// The whole output; `None` when there was none.
    pub file: Option<PathBuf>,
}

/// The two output files of a running program.
#[derive(Debug)]
pub(crate) struct Capture {
    stdout: Stream,
    stderr: Stream,
    spares: SpareFiles,
}

impl Capture {
    pub(crate) fn create(files: &OutputFiles, spares: &SpareFiles) -> Result<Self, SpawnError> {
        let stream = |path| Stream::create(path, spares);
        let (stdout, stderr) = (stream(&files.stdout)?, stream(&files.stderr)?);
        Ok(Self { stdout, stderr, spares: spares.clone() })
    }

    /// Returns the ends for the program: standard output, standard error.
    pub(crate) fn ends(&self) -> Result<[OwnedFd; 2], SpawnError> {
        Ok([self.stdout.for_program()?, self.stderr.for_program()?])
    }

    /// Returns how many bytes are in both files.
    pub(crate) fn size(&self) -> io::Result<u64> {
        Ok(self.stdout.size()?.saturating_add(self.stderr.size()?))
    }

    /// Cuts the files to `max_bytes` together: between two looks a program can write far beyond its limit.
    pub(crate) fn cut(&self, max_bytes: u64) -> io::Result<()> {
        let (stdout, stderr) = share(max_bytes, self.stdout.size()?, self.stderr.size()?);
        self.stdout.file.set_len(stdout)?;
        self.stderr.file.set_len(stderr)
    }

    /// Gives back what no program was started for.
    pub(crate) fn discard(self) {
        // Empty files that stay behind say nothing and take no room.
        let _ = self.finish(0);
    }

    /// Lets a filter say what stays of the files.
    pub(crate) fn filter(&mut self, filter: &dyn OutputFilter) -> io::Result<()> {
        self.stdout.filter(filter)?;
        self.stderr.filter(filter)
    }

    /// Reads at most `keep_bytes` of both files together; those that are empty are spared.
    pub(crate) fn finish(self, keep_bytes: usize) -> io::Result<(Captured, Captured)> {
        let (stdout, stderr) = share(keep_bytes as u64, self.stdout.size()?, self.stderr.size()?);
        Ok((self.stdout.finish(stdout, &self.spares)?, self.stderr.finish(stderr, &self.spares)?))
    }
}

/// Shares `limit` between two streams: either gets half for sure and what the other leaves over.
fn share(limit: u64, stdout: u64, stderr: u64) -> (u64, u64) {
    let for_stderr = stderr.min(limit / 2);
    let for_stdout = stdout.min(limit - for_stderr);
    (for_stdout, stderr.min(limit - for_stdout))
}

/// One of its streams.
#[derive(Debug)]
pub(crate) struct Stream {
    path: PathBuf,
    file: File,
}

impl Stream {
    pub(crate) fn create(path: &Path, spares: &SpareFiles) -> Result<Self, SpawnError> {
        let file = match spares.take(path) {
            Some(file) => file,
            None => open(path).map_err(|source| SpawnError::File { path: path.to_owned(), source })?,
        };
        Ok(Self { path: path.to_owned(), file })
    }

    /// Opens the file once more for the program, under a shared lock: so it shows whether anybody still holds it.
    pub(crate) fn for_program(&self) -> Result<OwnedFd, SpawnError> {
        let open = || {
            let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
            let file = File::from(rustix::fs::open(&self.path, flags, Mode::empty())?);
            file.lock_shared()?;
            Ok(file.into())
        };
        open().map_err(|source| SpawnError::File { path: self.path.clone(), source })
    }

    pub(crate) fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Writes something behind what is there.
    pub(crate) fn append(&self, bytes: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut &self.file, bytes)
    }

    pub(crate) fn filter(&mut self, filter: &dyn OutputFilter) -> io::Result<()> {
        if self.size()? > 0
            && let Some(new) = filter_file(&self.path, filter)?
        {
            self.file = new;
        }
        Ok(())
    }

    pub(crate) fn finish(self, keep_bytes: u64, spares: &SpareFiles) -> io::Result<Captured> {
        let bytes = self.size()?;
        if bytes == 0 {
            spares.give(self.path, self.file)?;
            return Ok(Captured { text: String::new(), bytes, truncated: false, file: None });
        }
        let truncated = bytes > keep_bytes;
        let text =
            if truncated { self.head_and_tail(bytes, keep_bytes)? } else { lossy(self.read(0, bytes)?) };
        Ok(Captured { text, bytes, truncated, file: Some(self.path) })
    }

    fn head_and_tail(&self, bytes: u64, keep_bytes: u64) -> io::Result<String> {
        let head = trim_end(self.read(0, keep_bytes / 2)?);
        let tail = self.read(bytes - keep_bytes / 2, keep_bytes / 2)?;
        let tail = trim_start(&tail);
        let left_out = bytes - (head.len() + tail.len()) as u64;
        Ok(format!("{}\n… {left_out} bytes left out …\n{}", lossy(head), String::from_utf8_lossy(tail)))
    }

    fn read(&self, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
        let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
        let mut buffer = vec![0; bytes];
        let mut filled = 0;
        // A file may have become shorter since it was measured: a program may truncate its own output.
        while filled < bytes {
            match self.file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        buffer.truncate(filled);
        Ok(buffer)
    }
}

/// Opens a file for appending, so that a program which opens its own output anew loses nothing of it.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::APPEND | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(path, flags, mode) {
        Err(rustix::io::Errno::NOENT) => {
            let directory = path.parent().unwrap_or(Path::new("."));
            std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700)
                .create(directory)?;
            Ok(rustix::fs::open(path, flags, mode)?.into())
        }
        opened => Ok(opened?.into()),
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Drops a character that was cut at the end.
fn trim_end(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
        return bytes;
    }
    bytes
}

/// Drops the rest of a character that was cut at the start.
fn trim_start(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    &bytes[rest..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_share_a_limit() {
        assert_eq!(share(100, 10, 10), (10, 10));
        assert_eq!(share(100, 500, 10), (90, 10));
        assert_eq!(share(100, 10, 500), (10, 90));
        assert_eq!(share(100, 500, 500), (50, 50));
        assert_eq!(share(0, 1, 1), (0, 0));
    }

    #[test]
    fn characters_are_not_cut() {
        let text = "aä€".as_bytes();
        assert_eq!(trim_end(text[..5].to_vec()), "aä".as_bytes());
        assert_eq!(trim_end(text.to_vec()), text);
        assert_eq!(trim_start(&text[2..]), "€".as_bytes());
    }
}
