//! Whether the process that keeps a checklist is still there: its lock tells, not a clock, and not what it said last.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// As many names are tried: that of a lock is taken only where ids are counted, as in tests.
const MOST_NAMES: usize = 16;

/// The lock of a process that keeps checklists. The kernel frees it when the process ends, however that happens.
#[derive(Debug)]
pub(crate) struct Keeper {
    name: String,
    path: PathBuf,
    /// Locked for as long as it is open.
    _lock: File,
}

impl Keeper {
    /// Takes a lock beneath `files` whose name begins with `id`, and removes those of keepers that were killed.
    pub(crate) fn hold(files: &Path, id: &str) -> io::Result<Self> {
        let directory = directory(files);
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        clear_up(&directory);
        for count in 0..MOST_NAMES {
            let name = if count == 0 { id.to_owned() } else { format!("{id}.{count}") };
            let path = lock_path(&directory, &name);
            if let Some(lock) = taken(&path)? {
                return Ok(Self { name, path, _lock: lock });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns what others know it by.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // One that stays behind is free, which says the same.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns whether the keeper of this name has ended. Where that cannot be told, it counts as there.
pub(crate) fn is_gone(files: &Path, name: &str) -> bool {
    // A store that somebody edited leads nowhere else.
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')) {
        return false;
    }
    match File::open(lock_path(&directory(files), name)) {
        // Shared: several may ask at once, and none takes another for the keeper.
        Ok(file) => file.try_lock_shared().is_ok(),
        // Where there are no locks at all, as seen from within a call, those of others are elsewhere.
        Err(error) => error.kind() == io::ErrorKind::NotFound && directory(files).exists(),
    }
}

/// Makes a lock file and takes its lock; `None` where somebody else has it, or has just removed it as a leftover.
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

/// Removes the locks that nobody holds. What cannot be removed now is left to the next one.
fn clear_up(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if let Ok(file) = File::open(&path) {
            remove_if_free(&path, &file);
        }
    }
}

/// Removes a lock that was opened at a path, unless somebody holds it.
fn remove_if_free(path: &Path, file: &File) {
    // Since it was opened, another process may have removed it, and a keeper have taken the name. While this lock is held nobody
    // else removes the file that it is of: so what is looked at here is what is removed.
    if file.try_lock().is_ok() && is_at(path, file) {
        let _ = std::fs::remove_file(path);
    }
}

/// Returns whether a path leads to an open file still.
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
    fn a_keeper_is_there_until_it_is_dropped() {
        let files = tempfile::tempdir().unwrap();
        let keeper = Keeper::hold(files.path(), "k").unwrap();
        assert!(!is_gone(files.path(), "k"));
        drop(keeper);
        assert!(is_gone(files.path(), "k"));
        assert_eq!(std::fs::read_dir(directory(files.path())).unwrap().count(), 0);
    }

    #[test]
    fn a_lock_that_nobody_holds_says_nothing_and_goes_with_the_next_keeper() {
        let files = tempfile::tempdir().unwrap();
        let directory = directory(files.path());
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(lock_path(&directory, "killed"), "").unwrap();
        assert!(is_gone(files.path(), "killed"));
        let keeper = Keeper::hold(files.path(), "k").unwrap();
        assert!(!lock_path(&directory, "killed").exists());
        // Where ids are counted another process may have the same.
        let other = Keeper::hold(files.path(), "k").unwrap();
        assert_eq!([keeper.name(), other.name()], ["k", "k.1"]);
    }

    #[test]
    fn a_keeper_that_took_the_name_of_a_leftover_keeps_its_lock() {
        let files = tempfile::tempdir().unwrap();
        let path = lock_path(&directory(files.path()), "k");
        std::fs::create_dir(directory(files.path())).unwrap();
        std::fs::write(&path, "").unwrap();
        // One clears up and has opened the leftover; another one does, too, and takes the name.
        let leftover = File::open(&path).unwrap();
        let keeper = Keeper::hold(files.path(), "k").unwrap();
        assert_eq!(keeper.name(), "k");
        remove_if_free(&path, &leftover);
        assert!(!is_gone(files.path(), "k"));
        drop(keeper);
        assert!(is_gone(files.path(), "k"));
    }

    #[test]
    fn a_name_leads_to_no_other_place() {
        let files = tempfile::tempdir().unwrap();
        assert!(!is_gone(files.path(), "../../k"));
    }
}
