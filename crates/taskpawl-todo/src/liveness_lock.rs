//! Detects the end of a process that publishes checklists, by its lock file. Neither timeouts nor its last message are
//! involved.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Number of names that are tried. A name is only taken if ids are counted instead of random, as in tests.
const MAX_NAMES: usize = 16;

/// Liveness lock of a process that publishes checklists. The kernel releases it when the process ends, however that
/// happens.
#[derive(Debug)]
pub(crate) struct LivenessLock {
    name: String,
    path: PathBuf,
    /// Keeps the lock: it is held as long as the file is open.
    _lock: File,
}

impl LivenessLock {
    /// Creates and locks a file below `files` whose name begins with `id`. Also removes the lock files of processes
    /// that were killed.
    pub(crate) fn hold(files: &Path, id: &str) -> io::Result<Self> {
        let directory = directory(files);
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        clear_up(&directory);
        for count in 0..MAX_NAMES {
            let name = if count == 0 { id.to_owned() } else { format!("{id}.{count}") };
            let path = lock_path(&directory, &name);
            if let Some(lock) = taken(&path)? {
                return Ok(Self { name, path, _lock: lock });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns the name that is published with the checklists.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for LivenessLock {
    fn drop(&mut self) {
        // If the removal fails, the remaining file is unlocked and thus means the same.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns whether the process with this lock has ended. If that cannot be determined, it counts as alive.
pub(crate) fn is_gone(files: &Path, name: &str) -> bool {
    // The name comes from the store, which may have been edited. It must not lead to another directory.
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')) {
        return false;
    }
    match File::open(lock_path(&directory(files), name)) {
        // The lock is shared, so that concurrent checks do not take each other for the owner.
        Ok(file) => file.try_lock_shared().is_ok(),
        // Inside the sandbox of a call the directory of the locks is missing. That says nothing about the locks of
        // other processes.
        Err(error) => error.kind() == io::ErrorKind::NotFound && directory(files).exists(),
    }
}

/// Creates a lock file and locks it. Returns `None` if the name is taken, or if another process has just removed the
/// file as a leftover.
fn taken(path: &Path) -> io::Result<Option<File>> {
    let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
    let file = match made {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_mine = file.try_lock().is_ok() && file.metadata()?.nlink() > 0;
    Ok(is_mine.then_some(file))
}

/// Removes the lock files that no process holds. Failures are left to the next process.
fn clear_up(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if let Ok(file) = File::open(&path) {
            remove_if_free(&path, &file);
        }
    }
}

/// Removes an opened lock file unless a process holds it.
fn remove_if_free(path: &Path, file: &File) {
    // After it was opened, another process may have removed the file, and a third one may have created a new file of
    // that name. Lock first, then compare: while this lock is held no other process removes the same file, so the
    // compared file is the one that is removed.
    if file.try_lock().is_ok() && is_at(path, file) {
        let _ = std::fs::remove_file(path);
    }
}

/// Returns whether a path still leads to the open file, by device and inode.
fn is_at(path: &Path, file: &File) -> bool {
    let (Ok(there), Ok(open)) = (std::fs::symlink_metadata(path), file.metadata()) else { return false };
    (there.dev(), there.ino()) == (open.dev(), open.ino())
}

fn directory(files: &Path) -> PathBuf {
    files.join("keepers")
}

fn lock_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keeper_is_alive_until_it_is_dropped() {
        let files = tempfile::tempdir().unwrap();
        let liveness_lock = LivenessLock::hold(files.path(), "k").unwrap();
        assert!(!is_gone(files.path(), "k"));
        drop(liveness_lock);
        assert!(is_gone(files.path(), "k"));
        assert_eq!(std::fs::read_dir(directory(files.path())).unwrap().count(), 0);
    }

    #[test]
    fn an_unlocked_file_counts_as_gone_and_is_removed_by_the_next_keeper() {
        let files = tempfile::tempdir().unwrap();
        let directory = directory(files.path());
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(lock_path(&directory, "killed"), "").unwrap();
        assert!(is_gone(files.path(), "killed"));
        let liveness_lock = LivenessLock::hold(files.path(), "k").unwrap();
        assert!(!lock_path(&directory, "killed").exists());
        // If ids are counted, another process may use the same id.
        let other = LivenessLock::hold(files.path(), "k").unwrap();
        assert_eq!([liveness_lock.name(), other.name()], ["k", "k.1"]);
    }

    #[test]
    fn removing_a_leftover_spares_a_new_lock_of_the_same_name() {
        let files = tempfile::tempdir().unwrap();
        let path = lock_path(&directory(files.path()), "k");
        std::fs::create_dir(directory(files.path())).unwrap();
        std::fs::write(&path, "").unwrap();
        // Simulates a process that has opened the leftover for removal, while another one removes it and creates a new
        // lock of that name.
        let leftover = File::open(&path).unwrap();
        let liveness_lock = LivenessLock::hold(files.path(), "k").unwrap();
        assert_eq!(liveness_lock.name(), "k");
        remove_if_free(&path, &leftover);
        assert!(!is_gone(files.path(), "k"));
        drop(liveness_lock);
        assert!(is_gone(files.path(), "k"));
    }

    #[test]
    fn a_name_with_path_separators_counts_as_alive() {
        let files = tempfile::tempdir().unwrap();
        assert!(!is_gone(files.path(), "../../k"));
    }
}
