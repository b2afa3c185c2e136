//! Context of all measurements.

use std::path::{Path, PathBuf};

use crate::Failure;
use crate::peers::Peers;

/// Context of all measurements.
#[derive(Debug)]
pub(crate) struct Context {
    peers: Peers,
    scratch: tempfile::TempDir,
    is_full: bool,
}

impl Context {
    pub(crate) fn new(peers: PathBuf, scratch: Option<&Path>, is_full: bool) -> Result<Self, Failure> {
        let scratch = match scratch {
            Some(path) => tempfile::tempdir_in(path)?,
            None => tempfile::tempdir()?,
        };
        // The path is made absolute, because some peers are started in another directory.
        Ok(Self { peers: Peers::at(std::path::absolute(peers)?), scratch, is_full })
    }

    pub(crate) fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Returns a directory on the disk that is measured; it is removed at the end.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Returns the number of tasks of the large measurements.
    pub(crate) fn many(&self) -> usize {
        if self.is_full { 1_000_000 } else { 100_000 }
    }
}
