//! Whether a run is alive: its lock tells, not a clock.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taskpawl_model::RunId;
use taskpawl_tools::{Programs, Supervision, keep_owner_rights, make_private_directories};

use crate::error::RunError;
use crate::temporary;

/// How long a run that is dropped waits for the end of its programs. They are killed, and so gone in no time; one that hangs in
/// the kernel must not hold up its host.
const PATIENCE: Duration = Duration::from_secs(1);

/// A run for as long as it lives: its lock, and its programs, of which none outlives it.
///
/// The kernel frees the lock when the last process that has it open ends, however that happens. The supervisor of the programs
/// has it open too: a run counts as alive until the last of its programs is gone.
#[derive(Debug)]
pub(crate) struct LiveRun {
    path: PathBuf,
    programs: Programs,
    temporary: Option<PathBuf>,
}

impl LiveRun {
    /// Starts a run. Its programs may have temporary files beneath `temporary`, if that is given.
    pub(crate) fn start(
        files: &Path,
        run: &RunId,
        supervision: Supervision,
        temporary: Option<&Path>,
    ) -> Result<Self, RunError> {
        let path = lock_path(files, run);
        let failed = |action, path: &Path, source| RunError::Files { action, path: path.to_owned(), source };
        if let Some(directory) = path.parent() {
            // Output may hold what only its owner should read.
            make_private_directories(directory).map_err(|source| failed("create", directory, source))?;
        }
        let mut file = locked(&path)?;
        let make = |base: &Path| {
            temporary::make(base, &mut file, &path, run)
                .map_err(|source| failed("create a directory in", base, source))
        };
        let temporary = temporary.map(make).transpose()?;
        Ok(Self { path, programs: Programs::with_lock(supervision, Arc::new(file)), temporary })
    }

    /// Returns the directory for the temporary files of its programs.
    pub(crate) fn temporary(&self) -> Option<&Path> {
        self.temporary.as_deref()
    }

    pub(crate) fn programs(&self) -> &Programs {
        &self.programs
    }
}

impl Drop for LiveRun {
    fn drop(&mut self) {
        // Without its file the run counts as over, and a file that stays behind is harmless: it is locked for as long as
        // anything of the run is alive, and leads whoever recovers the run to its temporary files.
        if self.programs.close_within(PATIENCE)
            && self.temporary.as_deref().is_none_or(|path| temporary::remove(path).is_ok())
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Returns whether the run still holds its lock. Where that cannot be told, it counts as alive: waiting is safe.
pub(crate) fn is_alive(files: &Path, run: &RunId) -> bool {
    let file = match OpenOptions::new().read(true).write(true).open(lock_path(files, run)) {
        Ok(file) => file,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    // Shared: several may ask at once, and none takes the other for the run.
    file.try_lock_shared().is_err()
}

/// Removes the lock of a run that is over; leaves it where it is held after all.
pub(crate) fn remove_lock(files: &Path, run: &RunId) -> io::Result<()> {
    let path = lock_path(files, run);
    let gone = |error: io::Error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) };
    let mut file = match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(file) => file,
        Err(error) => return gone(error),
    };
    // Held until the file is gone: a run that begins meanwhile notices.
    if file.try_lock().is_err() {
        return Ok(());
    }
    temporary::remove_by(&mut file)?;
    std::fs::remove_file(&path).or_else(gone)
}

/// Removes the temporary files of runs that died. What cannot be removed now is left to the next one who looks.
pub(crate) fn clear_up(files: &Path) {
    let locks = std::fs::read_dir(files.join("runs")).into_iter().flatten().flatten();
    for path in
        locks.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "lock"))
    {
        let Ok(mut file) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
        // Who looks whether the run lives takes this lock for the run's, so it is taken only where there is something to do.
        let has_some = file.metadata().is_ok_and(|data| data.len() > 0);
        if has_some && file.try_lock().is_ok() {
            let _ = temporary::remove_by(&mut file);
        }
    }
}

/// Makes the lock file of a run and takes the lock.
fn locked(path: &Path) -> Result<File, RunError> {
    let failed = |action, source| RunError::Files { action, path: path.to_owned(), source };
    loop {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path);
        let file = file.map_err(|source| failed("create", source))?;
        keep_owner_rights(&file).map_err(|source| failed("create", source))?;
        file.lock().map_err(|source| failed("lock", source))?;
        // Whoever took it for a leftover before it was locked has removed it: then nobody would see this lock.
        if file.metadata().is_ok_and(|data| data.nlink() > 0) {
            return Ok(file);
        }
    }
}

fn lock_path(files: &Path, run: &RunId) -> PathBuf {
    files.join("runs").join(format!("{run}.lock"))
}
