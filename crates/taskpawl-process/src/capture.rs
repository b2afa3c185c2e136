use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Mode, OFlags, access};
use rustix::io::Errno;

use crate::error::SpawnError;
use crate::filter::{OutputFilter, filter_file};
use crate::output::{Captured, OutputFiles};
use crate::pipe_reader::PipeReader;
use crate::private::{keep_owner_rights, make_private_directories};

/// Bytes per read from a pipe.
const PIECE: usize = 16 << 10;

/// Reads per call of [`Capture::take`], so that one noisy program cannot starve the other tasks of the
/// runtime thread.
const SOME_PIECES: usize = 32;

/// Reads after the program has ended: far more than a pipe holds. The limit stops a surviving process that
/// keeps writing.
const MAX_PIECES: usize = 2000;

/// The two output files of a running program, with the pipes that feed them.
#[derive(Debug)]
pub(crate) struct Capture {
    stdout: OutputReader,
    stderr: OutputReader,
}

impl Capture {
    pub(crate) fn begin(files: &OutputFiles) -> Result<Self, SpawnError> {
        Ok(Self { stdout: OutputReader::begin(&files.stdout)?, stderr: OutputReader::begin(&files.stderr)? })
    }

    /// Opens the pipes and returns the ends for the program: standard output, standard error.
    pub(crate) fn ends(&mut self) -> Result<[OwnedFd; 2], SpawnError> {
        Ok([self.stdout.end()?, self.stderr.end()?])
    }

    /// Registers the pipes with the runtime, which then reports output.
    pub(crate) fn watch(&mut self) -> io::Result<()> {
        self.stdout.pipe_reader.watch()?;
        self.stderr.pipe_reader.watch()
    }

    /// Waits until the program prints something. Never completes before [`Capture::watch`].
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn readable(&self) {
        tokio::select! {
            () = self.stdout.pipe_reader.readable() => {}
            () = self.stderr.pipe_reader.readable() => {}
        }
    }

    /// Moves available output to the files, up to a limit.
    pub(crate) fn take(&mut self) -> io::Result<()> {
        let mut piece = [0; PIECE];
        self.stdout.take(SOME_PIECES, &mut piece)?;
        self.stderr.take(SOME_PIECES, &mut piece)
    }

    /// Moves the remaining output to the files, after the program has ended.
    pub(crate) fn take_rest(&mut self) -> io::Result<()> {
        let mut piece = [0; PIECE];
        self.stdout.take_rest(&mut piece)?;
        self.stderr.take_rest(&mut piece)
    }

    /// Returns the number of bytes in both files.
    pub(crate) fn size(&self) -> u64 {
        self.stdout.bytes.saturating_add(self.stderr.bytes)
    }

    /// Truncates the files to `max_bytes` in total, because the last read may have gone beyond the limit.
    pub(crate) fn cut(&self, max_bytes: u64) -> io::Result<()> {
        let (stdout, stderr) = share(max_bytes, self.stdout.bytes, self.stderr.bytes);
        self.stdout.stream.cut(stdout)?;
        self.stderr.stream.cut(stderr)
    }

    /// Applies a filter to both files.
    pub(crate) fn filter(&mut self, filter: &dyn OutputFilter) -> io::Result<()> {
        self.stdout.stream.filter(filter)?;
        self.stderr.stream.filter(filter)
    }

    /// Reads back at most `keep_bytes` of both files in total. Removes files that are empty.
    pub(crate) fn finish(self, keep_bytes: usize) -> io::Result<(Captured, Captured)> {
        let (stdout, stderr) = (self.stdout.stream, self.stderr.stream);
        let (for_stdout, for_stderr) = share(keep_bytes as u64, stdout.size()?, stderr.size()?);
        Ok((stdout.finish(for_stdout)?, stderr.finish(for_stderr)?))
    }
}

/// One output stream: its pipe and its file.
#[derive(Debug)]
struct OutputReader {
    pipe_reader: PipeReader,
    stream: Stream,
    /// Bytes received so far.
    bytes: u64,
}

impl OutputReader {
    fn begin(path: &Path) -> Result<Self, SpawnError> {
        Ok(Self { pipe_reader: PipeReader::default(), stream: Stream::begin(path)?, bytes: 0 })
    }

    /// Opens the pipe and returns the end for the program.
    fn end(&mut self) -> Result<OwnedFd, SpawnError> {
        let opened = PipeReader::open();
        let (pipe_reader, end) =
            opened.map_err(|source| SpawnError::File { path: Path::new("pipe").to_owned(), source })?;
        self.pipe_reader = pipe_reader;
        Ok(end)
    }

    /// Moves output from the pipe to the file until the pipe is empty, with at most `pieces` reads.
    fn take(&mut self, pieces: usize, piece: &mut [u8]) -> io::Result<()> {
        for _ in 0..pieces {
            let read = self.pipe_reader.read(piece)?;
            if read == 0 {
                break;
            }
            self.stream.append(&piece[..read])?;
            self.bytes += read as u64;
        }
        Ok(())
    }

    fn take_rest(&mut self, piece: &mut [u8]) -> io::Result<()> {
        self.pipe_reader.unwatch()?;
        self.take(MAX_PIECES, piece)?;
        // Closes the pipe: a surviving process that still writes gets SIGPIPE from now on.
        self.pipe_reader = PipeReader::Over;
        Ok(())
    }
}

/// Splits `limit` between two streams. Each gets half, plus the part of the other half that the other stream
/// does not need.
fn share(limit: u64, stdout: u64, stderr: u64) -> (u64, u64) {
    let for_stderr = stderr.min(limit / 2);
    let for_stdout = stdout.min(limit - for_stderr);
    (for_stdout, stderr.min(limit - for_stdout))
}

/// The file of one output stream. Created with the first byte, because most programs print nothing to one of
/// their streams.
#[derive(Debug)]
pub(crate) struct Stream {
    path: PathBuf,
    file: Option<File>,
}

impl Stream {
    /// Removes a file of an earlier program at `path`, and creates its directory.
    pub(crate) fn begin(path: &Path) -> Result<Self, SpawnError> {
        match clear(path) {
            Ok(()) => Ok(Self { path: path.to_owned(), file: None }),
            Err(source) => Err(SpawnError::File { path: path.to_owned(), source }),
        }
    }

    pub(crate) fn size(&self) -> io::Result<u64> {
        self.file.as_ref().map_or(Ok(0), |file| Ok(file.metadata()?.len()))
    }

    /// Appends to the file.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let file = match self.file.take() {
            Some(file) => file,
            None => make(&self.path)?,
        };
        io::Write::write_all(&mut self.file.insert(file), bytes)
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.set_len(length))
    }

    pub(crate) fn filter(&mut self, filter: &dyn OutputFilter) -> io::Result<()> {
        if self.size()? > 0
            && let Some(new) = filter_file(&self.path, filter)?
        {
            self.file = Some(new);
        }
        Ok(())
    }

    pub(crate) fn finish(self, keep_bytes: u64) -> io::Result<Captured> {
        let bytes = self.size()?;
        let nothing = Captured { text: String::new(), bytes: 0, truncated: false, file: None };
        let Some(file) = self.file else { return Ok(nothing) };
        if bytes == 0 {
            // The filter has removed all output. An empty file that cannot be deleted is harmless.
            let _ = std::fs::remove_file(&self.path);
            return Ok(nothing);
        }
        let truncated = bytes > keep_bytes;
        let text =
            if truncated { head_and_tail(&file, bytes, keep_bytes)? } else { lossy(read(&file, 0, bytes)?) };
        Ok(Captured { text, bytes, truncated, file: Some(self.path) })
    }
}

fn head_and_tail(file: &File, bytes: u64, keep_bytes: u64) -> io::Result<String> {
    let head = trim_end(read(file, 0, keep_bytes / 2)?);
    let tail = read(file, bytes - keep_bytes / 2, keep_bytes / 2)?;
    let tail = trim_start(&tail);
    let left_out = bytes - (head.len() + tail.len()) as u64;
    Ok(format!("{}\n… {left_out} bytes left out …\n{}", lossy(head), String::from_utf8_lossy(tail)))
}

fn read(file: &File, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
    let mut buffer = vec![0; bytes];
    let mut filled = 0;
    // Another process may have truncated the file since its size was read.
    while filled < bytes {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer.truncate(filled);
    Ok(buffer)
}

/// Checks that the file can be created, so that a fault is found before the program starts and not when it
/// prints.
fn clear(path: &Path) -> io::Result<()> {
    let directory = directory_of(path);
    match access(directory, Access::WRITE_OK | Access::EXEC_OK) {
        Err(Errno::NOENT) => return make_private_directories(directory),
        checked => checked?,
    }
    // The file rarely exists, and a `stat` is cheaper than a failed `unlink`.
    match path.symlink_metadata().and_then(|_| std::fs::remove_file(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Creates a file for appending. `O_EXCL` refuses a file or a symbolic link that a program has put in its
/// place.
fn make(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let descriptor = match rustix::fs::open(path, flags, mode) {
        Err(Errno::NOENT) => {
            make_private_directories(directory_of(path))?;
            rustix::fs::open(path, flags, mode)
        }
        opened => opened,
    };
    let file = File::from(descriptor?);
    keep_owner_rights(&file)?;
    Ok(file)
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Removes an incomplete character at the end.
fn trim_end(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
        return bytes;
    }
    bytes
}

/// Removes the rest of an incomplete character at the start.
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
