//! Files of a project's programs: directories among the files of its store, which its runs share.
//!
//! Their `/tmp` and `/var/tmp` are kept between runs, so that a run that continues finds the files that finished tasks have written
//! there. Their changes to caches are kept, so that a package is downloaded once.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use taskpawl_model::value::Timestamp;
use taskpawl_tools::{PRIVATE_CACHES, make_private_directories};

use crate::temporary;

/// Time without a run after which temporary files are removed.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Time without a run after which changes to caches are removed.
const MAX_CACHE_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Size in bytes above which temporary files are removed before the next run.
const MAX_SIZE: u64 = 2 << 30;

/// Size in bytes above which changes to caches are removed before the next run.
pub(crate) const MAX_CACHE_SIZE: u64 = 8 << 30;

/// The directory among the files of a store that has them.
pub(crate) const DIRECTORY: &str = "private";

/// The directories for temporary files, as `taskpawl-tools` expects them.
const NAMES: [&str; 2] = ["tmp", "var-tmp"];

/// The directories that were emptied because they were too large.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Emptied {
    pub(crate) temporary: bool,
    pub(crate) caches: bool,
}

/// The directories of a project, in use by a run.
#[derive(Debug)]
pub(crate) struct PrivateTmp {
    path: PathBuf,
    /// Shared by the runs of the project. A run that can take it alone may remove the files.
    lock: File,
}

impl PrivateTmp {
    /// Creates the directories below `files` if they are missing. Files that are too old or too large are removed if no other run
    /// uses them; the second value names those that were too large.
    pub(crate) fn open(files: &Path, now: Timestamp) -> io::Result<(Self, Emptied)> {
        let now =
            SystemTime::UNIX_EPOCH + Duration::from_secs(now.timestamp().try_into().unwrap_or_default());
        let path = files.join(DIRECTORY);
        make_private_directories(&path)?;
        let lock = open_lock(&path)?;
        let mut emptied = Emptied::default();
        if lock.try_lock().is_ok() {
            let age = now.duration_since(lock.metadata()?.modified()?).unwrap_or_default();
            emptied.temporary = NAMES.iter().any(|name| is_larger(&path.join(name), MAX_SIZE));
            emptied.caches = is_larger(&path.join(PRIVATE_CACHES), MAX_CACHE_SIZE);
            if age > MAX_CACHE_AGE || emptied.caches {
                temporary::remove(&path.join(PRIVATE_CACHES))?;
            }
            if age > MAX_AGE || emptied.temporary {
                remove(&path)?;
            }
            lock.unlock()?;
        }
        lock.lock_shared()?;
        lock.set_modified(now)?;
        for name in NAMES.into_iter().chain([PRIVATE_CACHES]) {
            make_private_directories(&path.join(name))?;
        }
        Ok((Self { path, lock }, emptied))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the mount point of a run's own directory, whose programs have ended.
    pub(crate) fn forget(&self, temporary: Option<&Path>) {
        if let Some(name) = temporary.and_then(Path::file_name) {
            // Missing where programs had no `/tmp` of their own, and not empty if they used another one at this path.
            let _ = fs::remove_dir(self.path.join("tmp").join(name));
        }
    }

    /// Removes the temporary files of a project whose tasks are all finished, unless another run uses them.
    pub(crate) fn finished(self) -> io::Result<()> {
        // Unlocked first, because the shared lock of this process would stay otherwise if the exclusive one is refused.
        self.lock.unlock()?;
        if self.lock.try_lock().is_ok() { remove(&self.path) } else { Ok(()) }
    }
}

/// Returns the size of a project's changes to caches on disk, in bytes.
pub(crate) fn size_of_caches(files: &Path) -> u64 {
    size(&files.join(DIRECTORY).join(PRIVATE_CACHES), u64::MAX)
}

/// Returns the space that a directory takes on disk, in bytes. Reads all directories in it.
pub(crate) fn size_on_disk(path: &Path) -> u64 {
    size(path, u64::MAX)
}

/// Removes the changes to caches, unless a run uses them. Returns whether it did.
pub(crate) fn remove_caches(files: &Path) -> io::Result<bool> {
    let path = files.join(DIRECTORY);
    if !path.is_dir() {
        return Ok(true);
    }
    let lock = open_lock(&path)?;
    if lock.try_lock().is_err() {
        return Ok(false);
    }
    temporary::remove(&path.join(PRIVATE_CACHES)).map(|()| true)
}

fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path.join("lock"))
}

fn remove(path: &Path) -> io::Result<()> {
    NAMES.iter().try_for_each(|name| temporary::remove(&path.join(name)))
}

/// Returns whether the files below a directory take more than `limit` bytes on disk.
fn is_larger(path: &Path, limit: u64) -> bool {
    size(path, limit) > limit
}

/// Returns the size of the files below a directory on disk, at least up to `limit`. Unreadable ones count as nothing.
fn size(path: &Path, limit: u64) -> u64 {
    use std::os::unix::fs::MetadataExt as _;

    let (mut size, mut waiting) = (0_u64, vec![path.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            // Of a link this is the link itself.
            let Ok(metadata) = entry.metadata() else { continue };
            size = size.saturating_add(metadata.blocks() * 512);
            if size > limit {
                return size;
            }
            if metadata.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u32 = 1_800_000_000;

    fn now() -> Timestamp {
        Timestamp::from_timestamp(NOW.into(), 0).unwrap()
    }

    fn open(files: &Path) -> PrivateTmp {
        PrivateTmp::open(files, now()).unwrap().0
    }

    #[test]
    fn files_stay_for_the_next_run_until_all_tasks_are_finished() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("private/tmp/a");
        let first = open(dir.path());
        fs::write(&file, "").unwrap();
        drop(first);
        let (second, third) = (open(dir.path()), open(dir.path()));
        assert!(file.exists());
        second.finished().unwrap();
        assert!(file.exists(), "another run uses it");
        third.finished().unwrap();
        assert!(!file.exists());
        open(dir.path());
        assert!(dir.path().join("private/var-tmp").is_dir());
    }

    #[test]
    fn old_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (file, lock) = (dir.path().join("private/tmp/a"), dir.path().join("private/lock"));
        drop(open(dir.path()));
        fs::write(&file, "").unwrap();
        let age = |hours: u64| {
            let file = File::options().write(true).open(&lock).unwrap();
            let then = Duration::from_secs(u64::from(NOW) - hours * 3600);
            file.set_modified(SystemTime::UNIX_EPOCH + then).unwrap();
        };
        age(7 * 24 - 1);
        drop(open(dir.path()));
        assert!(file.exists());
        age(7 * 24 + 1);
        let cache = dir.path().join("private/caches/a");
        fs::write(&cache, "").unwrap();
        drop(open(dir.path()));
        assert!(!file.exists() && cache.exists());
        age(30 * 24 + 1);
        drop(open(dir.path()));
        assert!(!cache.exists());
    }

    #[test]
    fn caches_are_removed_unless_a_run_uses_them() {
        let dir = tempfile::tempdir().unwrap();
        assert!(remove_caches(dir.path()).unwrap());
        let run = open(dir.path());
        let cache = dir.path().join("private/caches/a");
        fs::write(&cache, vec![1; 1 << 20]).unwrap();
        assert!(size_of_caches(dir.path()) >= 1 << 20);
        assert!(!remove_caches(dir.path()).unwrap() && cache.exists());
        drop(run);
        assert!(remove_caches(dir.path()).unwrap() && !cache.exists());
        assert_eq!(size_of_caches(dir.path()), 0);
    }

    #[test]
    fn sizes_are_those_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        // A file with a hole takes no room.
        File::create(dir.path().join("a/sparse")).unwrap().set_len(1 << 30).unwrap();
        assert!(!is_larger(dir.path(), 1 << 20));
        fs::write(dir.path().join("a/full"), vec![1; 2 << 20]).unwrap();
        assert!(is_larger(dir.path(), 1 << 20));
    }
}
