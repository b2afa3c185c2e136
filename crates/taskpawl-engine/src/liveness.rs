//! Crash detection: a run is alive as long as it holds its file lock. No timeouts are involved.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use taskpawl_model::value::RunId;
use taskpawl_tools::{Programs, Supervision, keep_owner_rights, make_private_directories};

use crate::error::RunError;
use crate::temporary;

/// Time that dropping a run waits for its killed programs. A process that hangs in the kernel must not block the host
/// program.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest wait for the removal of temporary files. Programs may leave millions of them, or a file system that does
/// not answer. The next run removes the rest.
const MAX_REMOVAL: Duration = Duration::from_secs(2);

/// A running run: its lock, and its programs, none of which outlives it.
///
/// The kernel releases the lock when the last process that has the file open ends, however that happens. The supervisor
/// of the programs has it open as well, so that a run counts as alive until the last of its programs is gone.
#[derive(Debug)]
pub(crate) struct LiveRun {
    path: PathBuf,
    lock: Arc<File>,
    programs: Programs,
    temporary: Option<PathBuf>,
}

impl LiveRun {
    /// Starts a run: takes the lock, and creates a directory for temporary files below `temporary` if that is given.
    pub(crate) fn start(
        files: &Path,
        run: &RunId,
        supervision: Supervision,
        temporary: Option<&Path>,
    ) -> Result<Self, RunError> {
        let path = lock_path(files, run);
        let failed = |action, path: &Path, source| RunError::Files { action, path: path.to_owned(), source };
        if let Some(directory) = path.parent() {
            // Output may contain data that only its owner should read.
            make_private_directories(directory).map_err(|source| failed("create", directory, source))?;
        }
        let mut file = locked(&path)?;
        let make = |base: &Path| {
            temporary::make(base, &mut file, &path, run)
                .map_err(|source| failed("create a directory in", base, source))
        };
        let temporary = temporary.map(make).transpose()?;
        let lock = Arc::new(file);
        Ok(Self { path, programs: Programs::with_lock(supervision, Arc::clone(&lock)), lock, temporary })
    }

    /// Returns the directory for the temporary files of the run's programs.
    pub(crate) fn temporary(&self) -> Option<&Path> {
        self.temporary.as_deref()
    }

    pub(crate) fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Ends the run as dropping it does, on a thread that may block.
    ///
    /// # Cancel safety
    /// Dropping the future only stops waiting.
    pub(crate) async fn end(self) {
        // A runtime that shuts down drops the closure, and with it the run.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

impl Drop for LiveRun {
    fn drop(&mut self) {
        // A missing lock file means that the run is over, so it is only removed once all programs are gone.
        if self.programs.close_within(PATIENCE) {
            let (path, temporary) = (self.path.clone(), self.temporary.take());
            clear_away(path, Arc::clone(&self.lock), temporary, MAX_REMOVAL, temporary::remove);
        }
    }
}

/// Removes the temporary files of a run that is over, and then its lock file.
///
/// A lock file that stays behind is harmless: it leads the next run to the temporary files. The lock is held until they
/// are gone, so that no other run removes them at the same time.
fn clear_away(
    path: PathBuf,
    lock: Arc<File>,
    temporary: Option<PathBuf>,
    patience: Duration,
    remove: impl FnOnce(&Path) -> io::Result<()> + Send + 'static,
) {
    let Some(temporary) = temporary else { return drop(std::fs::remove_file(path)) };
    within(patience, move || {
        if remove(&temporary).is_ok() {
            let _ = std::fs::remove_file(path);
        }
        drop(lock);
    });
}

/// Runs `work` on a thread of its own, and waits for it at most for `patience`. The thread goes on until the process ends.
fn within(patience: Duration, work: impl FnOnce() + Send + 'static) {
    let (done, waiting) = sync_channel::<()>(0);
    let thread = std::thread::Builder::new().name("taskpawl-remover".to_owned()).spawn(move || {
        work();
        drop(done);
    });
    // Without a thread the work is left to the next run.
    if thread.is_ok() {
        let _ = waiting.recv_timeout(patience);
    }
}

/// Returns whether the run still holds its lock. If that cannot be determined the run counts as alive, because waiting
/// is safe.
pub(crate) fn is_alive(files: &Path, run: &RunId) -> bool {
    let file = match OpenOptions::new().read(true).write(true).open(lock_path(files, run)) {
        Ok(file) => file,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    // The lock is shared, so that concurrent checks do not take each other for the run.
    file.try_lock_shared().is_err()
}

/// Removes the lock file of a finished run; does nothing if the lock is held after all.
pub(crate) fn remove_lock(files: &Path, run: &RunId) -> io::Result<()> {
    let path = lock_path(files, run);
    let gone = |error: io::Error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) };
    let mut file = match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(file) => file,
        Err(error) => return gone(error),
    };
    // Held until the file is removed: a run that starts meanwhile waits in `locked` and then detects the removal.
    if file.try_lock().is_err() {
        return Ok(());
    }
    temporary::remove_by(&mut file)?;
    std::fs::remove_file(&path).or_else(gone)
}

/// Removes the temporary files of dead runs. Failures, and files that cannot be removed in time, are left to the next
/// recovery.
pub(crate) fn clear_up(files: &Path) {
    let locks = std::fs::read_dir(files.join("runs")).into_iter().flatten().flatten();
    // An empty lock file has nothing to remove.
    let has_some = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "lock") && path.metadata().is_ok_and(|data| data.len() > 0)
    };
    let locks: Vec<PathBuf> = locks.map(|entry| entry.path()).filter(has_some).collect();
    if !locks.is_empty() {
        within(MAX_REMOVAL, move || clear_up_now(&locks));
    }
}

fn clear_up_now(locks: &[PathBuf]) {
    for path in locks {
        let Ok(mut file) = OpenOptions::new().read(true).write(true).open(path) else { continue };
        // Another process that checks this run would mistake our exclusive lock for the run's, so it is only taken if
        // there is work to do.
        let has_some = file.metadata().is_ok_and(|data| data.len() > 0);
        if has_some && file.try_lock().is_ok() {
            let _ = temporary::remove_by(&mut file);
        }
    }
}

/// Creates the lock file of a run and locks it.
fn locked(path: &Path) -> Result<File, RunError> {
    let failed = |action, source| RunError::Files { action, path: path.to_owned(), source };
    loop {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path);
        let file = file.map_err(|source| failed("create", source))?;
        keep_owner_rights(&file).map_err(|source| failed("create", source))?;
        file.lock().map_err(|source| failed("lock", source))?;
        // Another process may have removed the file as a leftover between the open and the lock. The link count is then
        // zero, and a lock on the unlinked file would be invisible to others.
        if file.metadata().is_ok_and(|data| data.nlink() > 0) {
            return Ok(file);
        }
    }
}

/// Returns the record of the files that other programs obeyed before a run. A run that ends in order removes it.
pub(crate) fn baseline_path(files: &Path, run: &RunId) -> PathBuf {
    files.join("runs").join(format!("{run}.{BASELINE}"))
}

/// Returns the runs that were killed before they could look for new files that other programs obey.
pub(crate) fn unfinished_looks(files: &Path) -> Vec<RunId> {
    let entries = std::fs::read_dir(files.join("runs")).into_iter().flatten().flatten();
    let records =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == BASELINE));
    let mut runs: Vec<RunId> = records
        .filter_map(|path| Some(RunId::from(path.file_stem()?.to_str()?.to_owned())))
        // The supervisor holds the lock, too: programs of a run that was just killed may still write.
        .filter(|run| !is_alive(files, run))
        .collect();
    runs.sort();
    runs
}

/// The ending of the records of [`baseline_path`].
const BASELINE: &str = "obeyed";

fn lock_path(files: &Path, run: &RunId) -> PathBuf {
    files.join("runs").join(format!("{run}.lock"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// The lock file of a run, its lock, and its temporary directory.
    fn run(files: &Path) -> (PathBuf, Arc<File>, PathBuf) {
        let run = RunId::from("r1".to_owned());
        let path = lock_path(files, &run);
        make_private_directories(path.parent().unwrap()).unwrap();
        let mut lock = locked(&path).unwrap();
        let temporary = temporary::make(files, &mut lock, &path, &run).unwrap();
        std::fs::write(temporary.join("file"), "").unwrap();
        (path, Arc::new(lock), temporary)
    }

    #[test]
    fn temporary_files_that_cannot_be_removed_in_time_are_left_to_the_next_run() {
        let dir = tempfile::tempdir().unwrap();
        let (path, lock, temporary) = run(dir.path());
        let (_held, hung) = channel::<()>();
        let remove = move |_: &Path| {
            let _ = hung.recv();
            Ok(())
        };
        clear_away(path.clone(), lock, Some(temporary.clone()), Duration::from_millis(20), remove);
        assert!(temporary.exists() && path.exists());
        clear_up(dir.path());
        assert!(temporary.exists(), "no other run removes it meanwhile");
    }

    #[test]
    fn the_next_run_removes_what_a_run_left() {
        let dir = tempfile::tempdir().unwrap();
        let (path, lock, temporary) = run(dir.path());
        let failed = |_: &Path| Err(io::Error::other("busy"));
        clear_away(path.clone(), lock, Some(temporary.clone()), MAX_REMOVAL, failed);
        assert!(temporary.exists() && path.exists());
        clear_up(dir.path());
        assert!(!temporary.exists());
    }

    #[test]
    fn work_that_takes_too_long_is_left_to_its_thread() {
        let begin = std::time::Instant::now();
        super::within(Duration::from_millis(10), || std::thread::sleep(Duration::from_secs(20)));
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    }
}
