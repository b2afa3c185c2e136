//! The length of the write-ahead log.
//!
//! SQLite makes it longer by what a commit brings, so that each sync also has to note a new length of the file and new blocks. Whoever
//! commits often lets it grow ahead, in steps: the frames of the next commits are then written over zeros that are there already. What
//! stands behind the last frame is no frame for SQLite, whatever it is.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::files;

/// By how much a log grows ahead: by less, and its length changes often; by more, and zeros are written that nothing takes the place of.
const STEP: u64 = 256 << 10;

/// How much is written at once.
const PART: usize = 64 << 10;

/// Who commits no more often than this leaves the log as long as it is.
const COMMITS: u32 = 8;

/// The log of a connection that writes.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// How many commits there were, up to the first that looks.
    commits: u32,
    file: Option<File>,
    /// As the last commit found it, with what was put behind it.
    length: u64,
}

impl Log {
    pub(super) fn new(database: &Path) -> Self {
        Self { path: files::with_suffix(database, "-wal"), commits: 0, file: None, length: 0 }
    }

    /// Makes room for the frames of a commit where those before it have used up what there was. Only within a transaction that has
    /// written: nobody else makes the log longer then.
    ///
    /// Nothing depends on it: where it does not succeed, SQLite finds the same trouble and says so.
    pub(super) fn make_room(&mut self) {
        if self.commits < COMMITS {
            self.commits += 1;
        } else if let Ok(length) = self.grown() {
            self.length = length;
        }
    }

    /// Returns the length that the log has now.
    fn grown(&mut self) -> io::Result<u64> {
        let log = match &mut self.file {
            Some(file) => file,
            none => none.insert(OpenOptions::new().write(true).open(&self.path)?),
        };
        // Who asks for the length alone does not ask for the time of the last write: each write after that would have to note one.
        let length = log.seek(SeekFrom::End(0))?;
        if length <= self.length {
            return Ok(length);
        }
        let zeros = vec![0; PART];
        (0..STEP / PART as u64).try_for_each(|_| log.write_all(&zeros))?;
        Ok(length + STEP)
    }
}
