//! Preallocation of the write-ahead log.
//!
//! SQLite extends the log with each commit, so that each sync also has to write a new file length and new
//! blocks. For frequent commits the log is extended ahead with zeros, and the next frames overwrite them.
//! SQLite ignores bytes after the last valid frame, whatever they are.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::files;

/// Bytes per extension. With less, the file length changes often; with more, zeros are written that no frame
/// overwrites.
pub(super) const STEP: u64 = 256 << 10;

/// Bytes per write.
const PART: usize = 64 << 10;

/// No extension beyond this length, where SQLite has checkpointed (after 1,000 frames) and starts again at
/// the beginning of the log. It also bounds several writers that extend the log in turn because of each
/// other.
pub(super) const MAX: u64 = 4 << 20;

/// Connections with at most this many commits never extend the log.
pub(super) const COMMITS: u32 = 8;

/// The write-ahead log of a writing connection.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// Commits since the log was opened, or since an extension failed.
    commits: u32,
    file: Option<File>,
    /// The length at the last check, including the extension made then.
    length: Option<u64>,
}

impl Log {
    pub(super) fn new(database: &Path) -> Self {
        Self { path: files::with_suffix(database, "-wal"), commits: 0, file: None, length: None }
    }

    /// Extends the log if the previous commits have used up the last extension. Call it only inside a
    /// transaction that has written, because no other process can extend the log then.
    ///
    /// This is an optimization only. If it fails, the log has its old length, and SQLite extends it as usual.
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
        // `seek` instead of `metadata`: after a `stat` has returned the modification time, the next write has
        // to update it again.
        let length = log.seek(SeekFrom::End(0))?;
        let before = self.length.replace(length);
        if before.is_none_or(|before| length <= before) || length >= MAX {
            return Ok(());
        }
        let zeros = vec![0; PART];
        let written = (0..STEP / PART as u64).try_for_each(|_| log.write_all(&zeros));
        if written.is_ok() {
            self.length = Some(length + STEP);
        } else {
            // The disk is probably full. Give the space back for the frames.
            log.set_len(length)?;
        }
        written
    }
}
