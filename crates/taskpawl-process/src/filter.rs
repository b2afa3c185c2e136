//! Filters output files after their programs have ended.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::private::{keep_owner_rights, make_private_directories};

/// Transforms the output of programs, for example to remove secrets. While a program runs, its files have the
/// original output. After its end they are replaced by the filtered output, and only that is read back.
pub trait OutputFilter: Debug + Send + Sync {
    /// Creates the filter for one file.
    fn begin(&self) -> Box<dyn StreamFilter>;
}

/// A filter for one file, which is read in chunks.
pub trait StreamFilter: Send {
    /// Filters a chunk. Appends to `out` all output that is final; the rest may be held back for the next
    /// chunk.
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>);

    /// Appends the output that was held back.
    fn finish(self: Box<Self>, out: &mut Vec<u8>);
}

/// Bytes per read.
const PIECE: usize = 64 << 10;

/// Replaces a file by its filtered content. Returns the new file, open for reading, or `None` if the filter
/// changed nothing.
///
/// The replacement is atomic: readers see either the complete old file or the complete new one.
///
/// # Errors
/// The file could not be read, or the new one not written. The old file is unchanged.
pub fn filter_file(path: &Path, filter: &dyn OutputFilter) -> io::Result<Option<File>> {
    let mut stream = filter.begin();
    let mut file = File::open(path)?;
    let (mut piece, mut out) = (vec![0; PIECE], Vec::new());
    let mut same = Same::default();
    let mut new: Option<Replacement> = None;
    loop {
        let read = read_piece(&mut file, &mut piece)?;
        out.clear();
        match read {
            0 => break,
            read => stream.push(&piece[..read], &mut out),
        }
        take(path, &mut new, &mut same, &piece[..read], &out)?;
    }
    stream.finish(&mut out);
    take(path, &mut new, &mut same, &[], &out)?;
    if new.is_none() && !same.is_settled() {
        new = Some(Replacement::begin(path, same.length)?);
    }
    new.map(|new| new.put(path)).transpose()
}

fn read_piece(file: &mut File, piece: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Compares a chunk with its filtered output. Nothing is written until the first difference.
fn take(
    path: &Path,
    new: &mut Option<Replacement>,
    same: &mut Same,
    read: &[u8],
    out: &[u8],
) -> io::Result<()> {
    if let Some(new) = new {
        return new.file.write_all(out);
    }
    same.ahead.extend_from_slice(read);
    if same.ahead.starts_with(out) {
        same.ahead.drain(..out.len());
        same.length += out.len() as u64;
        return Ok(());
    }
    new.insert(Replacement::begin(path, same.length)?).file.write_all(out)
}

/// The common prefix of the file and its filtered output.
#[derive(Default)]
struct Same {
    length: u64,
    /// Bytes that were read but that the filter has not returned yet.
    ahead: Vec<u8>,
}

impl Same {
    fn is_settled(&self) -> bool {
        self.ahead.is_empty()
    }
}

/// A new file that will replace another one.
struct Replacement {
    file: File,
    path: PathBuf,
}

impl Replacement {
    /// Creates the new file with the first `same` bytes of the old one.
    fn begin(path: &Path, same: u64) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        if let Some(directory) = path.parent() {
            make_private_directories(directory)?;
        }
        // An existing file is left over from a crash, or is a symbolic link of a program to another place.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&part)?;
        keep_owner_rights(&file)?;
        let mut new = Self { file, path: part };
        match io::copy(&mut File::open(path)?.take(same), &mut new.file) {
            Ok(_) => Ok(new),
            Err(error) => Err(new.give_up(error)),
        }
    }

    fn put(self, path: &Path) -> io::Result<File> {
        match fs::rename(&self.path, path) {
            Ok(()) => Ok(self.file),
            Err(error) => Err(self.give_up(error)),
        }
    }

    fn give_up(&self, error: io::Error) -> io::Error {
        // Report the first error, not that of the cleanup.
        let _ = fs::remove_file(&self.path);
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Removes every `x`, and holds each byte back until the next one arrives.
    #[derive(Debug)]
    struct WithoutX;

    struct Held(Option<u8>);

    impl OutputFilter for WithoutX {
        fn begin(&self) -> Box<dyn StreamFilter> {
            Box::new(Held(None))
        }
    }

    impl StreamFilter for Held {
        fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
            for byte in piece {
                out.extend(self.0.replace(*byte).filter(|byte| *byte != b'x'));
            }
        }

        fn finish(self: Box<Self>, out: &mut Vec<u8>) {
            out.extend(self.0.filter(|byte| *byte != b'x'));
        }
    }

    #[test]
    fn a_file_is_replaced_only_if_the_filter_changes_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        for (length, at) in [
            (0, None),
            (10, None),
            (200_000, None),
            (10, Some(9)),
            (200_000, Some(150_000)),
            (200_000, Some(0)),
            (1, Some(0)),
        ] {
            let mut bytes: Vec<u8> =
                (0..length).map(|index: u32| b'a' + u8::try_from(index % 20).unwrap()).collect();
            if let Some(at) = at {
                bytes[at] = b'x';
            }
            fs::write(&path, &bytes).unwrap();
            let new = filter_file(&path, &WithoutX).unwrap();
            assert_eq!(new.is_some(), at.is_some());
            bytes.retain(|byte| *byte != b'x');
            assert!(fs::read(&path).unwrap() == bytes, "{length} {at:?}");
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        }
    }
}
