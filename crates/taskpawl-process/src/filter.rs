//! Changes output files when their programs are over.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::private::{keep_owner_rights, make_private_directories};

/// Says what stays of the output of programs. While a program runs its files hold what it wrote; when it is over, they are
/// replaced by what the filter makes of them, and only that is read back.
pub trait OutputFilter: Debug + Send + Sync {
    /// Begins to read one file.
    fn begin(&self) -> Box<dyn StreamFilter>;
}

/// A file that is read in pieces.
pub trait StreamFilter: Send {
    /// Reads a piece, and appends to `out` what stays of the file as far as that is known.
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>);

    /// Appends what stays of the rest.
    fn finish(self: Box<Self>, out: &mut Vec<u8>);
}

/// How much is read at once.
const PIECE: usize = 64 << 10;

/// Replaces a file by what a filter makes of it. Returns the new file, open for reading; `None` when nothing is different.
///
/// The new one takes the place of the old one at once: who reads finds all of one or all of the other.
///
/// # Errors
/// It could not be read, or the new one not written: then the file is what it was.
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

/// Takes in a piece of both sides: as long as they are the same nothing is written.
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

/// How far both sides are the same.
#[derive(Default)]
struct Same {
    length: u64,
    /// What was read and not yet answered by the filter.
    ahead: Vec<u8>,
}

impl Same {
    fn is_settled(&self) -> bool {
        self.ahead.is_empty()
    }
}

/// A file that is to stand in the place of another one.
struct Replacement {
    file: File,
    path: PathBuf,
}

impl Replacement {
    /// Begins with so many bytes of the other one.
    fn begin(path: &Path, same: u64) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        if let Some(directory) = path.parent() {
            make_private_directories(directory)?;
        }
        // One that is there was left behind, or leads elsewhere.
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
        // What went wrong first is what counts.
        let _ = fs::remove_file(&self.path);
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes out every `x`, and holds each byte back until the next one.
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
    fn a_file_is_replaced_only_where_something_is_different() {
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
