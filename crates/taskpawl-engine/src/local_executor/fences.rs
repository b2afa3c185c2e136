//! The fencing numbers of stores whose calls have run here, on disk.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::RunError;

/// The largest fencing number of each store.
#[derive(Debug)]
pub(super) struct Fences {
    path: PathBuf,
    known: BTreeMap<String, u64>,
}

impl Fences {
    pub(super) fn open(files: &Path, worker: &str) -> Result<Self, RunError> {
        let path = files.join("runs").join(format!("worker-{worker}.fences"));
        let failed = |source| RunError::Files { action: "read", path: path.clone(), source };
        let known = match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| failed(error.into()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { path, known })
    }

    /// Returns whether a call of a store with this number may run here, and records a larger number first.
    pub(super) fn admit(&mut self, store: &str, fence: u64) -> io::Result<bool> {
        let known = self.known.get(store).copied().unwrap_or_default();
        if fence > known {
            self.known.insert(store.to_owned(), fence);
            self.write()?;
        }
        Ok(fence >= known)
    }

    /// Written seldom, and synced: after a loss of power the old store must stay fenced.
    fn write(&self) -> io::Result<()> {
        let new = self.path.with_extension("fences.new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(&self.known)?)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        self.path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    }
}
