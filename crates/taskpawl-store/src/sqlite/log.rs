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
pub(super) const STEP: u64 = 256 << 10;

/// How much is written at once.
const PART: usize = 64 << 10;

/// A log of this length grows no further ahead: after so many frames (1,000) SQLite brings them to the database, and begins anew. It is
/// also what several writers come to at most who find the log longer each time because of each other.
pub(super) const MOST: u64 = 4 << 20;

/// Who commits no more often than this leaves the log as long as it is.
pub(super) const COMMITS: u32 = 8;

/// The log of a connection that writes.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// How many commits there were since it was opened, or could not grow.
    commits: u32,
    file: Option<File>,
    /// As the last look found it, with what was put behind it.
    length: Option<u64>,
}

impl Log {
    pub(super) fn new(database: &Path) -> Self {
        Self { path: files::with_suffix(database, "-wal"), commits: 0, file: None, length: None }
    }

    /// Makes room for the frames of a commit where those before it have used up what there was. Only within a transaction that has
    /// written: nobody else makes the log longer then.
    ///
    /// Nothing depends on it: where it does not succeed, the log is as long as it was, and SQLite goes on by itself.
    pub(super) fn make_room(&mut self) {
        self.commits = self.commits.saturating_add(1);
        if self.commits > COMMITS && self.keep_ahead().is_err() {
            self.commits = 0;
        }
    }

    fn keep_ahead(&mut self) -> io::Result<()> {
        let log = match &mut self.file {
            Some(file) => file,
            none => none.insert(OpenOptions::new().write(true).open(&self.path)?),
        };
        // Who asks for the length alone does not ask for the time of the last write: each write after that would have to note one.
        let length = log.seek(SeekFrom::End(0))?;
        let before = self.length.replace(length);
        if before.is_none_or(|before| length <= before) || length >= MOST {
            return Ok(());
        }
        let zeros = vec![0; PART];
        let written = (0..STEP / PART as u64).try_for_each(|_| log.write_all(&zeros));
        if written.is_ok() {
            self.length = Some(length + STEP);
        } else {
            // What little room there is belongs to frames.
            log.set_len(length)?;
        }
        written
    }
}
