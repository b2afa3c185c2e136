//! Whether a run is alive: its lock tells, not a clock.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use taskpawl_model::RunId;

use crate::error::RunError;

/// The lock that a run holds for its life. The kernel frees it when the process ends, however that happens.
#[derive(Debug)]
pub(crate) struct RunLock {
    path: PathBuf,
    _file: File,
}

impl RunLock {
    pub(crate) fn take(files: &Path, run: &RunId) -> Result<Self, RunError> {
        let path = lock_path(files, run);
        let failed = |action, path: &Path, source| RunError::Files { action, path: path.to_owned(), source };
        if let Some(directory) = path.parent() {
            // Output may hold what only its owner should read.
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.map_err(|source| failed("create", directory, source))?;
        }
        let file = File::create(&path).map_err(|source| failed("create", &path, source))?;
        file.lock().map_err(|source| failed("lock", &path, source))?;
        Ok(Self { path, _file: file })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // A file that stays behind is harmless: without a lock on it the run counts as over.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns whether the run still holds its lock. Where that cannot be told, it counts as alive: waiting is safe.
pub(crate) fn is_alive(files: &Path, run: &RunId) -> bool {
    let file = match OpenOptions::new().read(true).write(true).open(lock_path(files, run)) {
        Ok(file) => file,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    file.try_lock().is_err()
}

fn lock_path(files: &Path, run: &RunId) -> PathBuf {
    files.join("runs").join(format!("{run}.lock"))
}
