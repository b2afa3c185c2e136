//! Files and directories that only their owner may read, and locks on them.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::faults::{self, Fault};

/// Returns `path` with `suffix` behind its last component.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns where a copy of a store of `version` is kept, before it is brought to a newer one.
pub(crate) fn backup_path(path: &Path, version: i64) -> PathBuf {
    with_suffix(path, &format!(".v{version}.bak"))
}

/// As [`backup_path`], with a number where another file has that name; `None` where one of them is the same copy already.
pub(crate) fn free_backup_path(
    path: &Path,
    version: i64,
    is_same: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let numbered = |number: u32| with_suffix(path, &format!(".v{version}.{number}.bak"));
    let names = std::iter::once(backup_path(path, version)).chain((2..=u32::MAX).map(numbered));
    for name in names {
        match fs::symlink_metadata(&name) {
            Err(error) if is_absent(&error) => return Some(name),
            Ok(data) if data.is_file() && is_same(&name) => return None,
            _ => {}
        }
    }
    None
}

/// Returns whether two files have the same content; one that cannot be read has not.
pub(crate) fn have_same_content(one: &Path, other: &Path) -> bool {
    let open = |path| File::open(path).map(|file| BufReader::new(file).bytes());
    let (Ok(mut one), Ok(mut other)) = (open(one), open(other)) else { return false };
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(Ok(one)), Some(Ok(other))) if one == other => {}
            _ => return false,
        }
    }
}

/// Returns the directory of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes a directory with those above it, for its owner alone. The entries are durable.
pub(crate) fn make_directory(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Ok(());
    }
    let above = directory_of(path);
    make_directory(above)?;
    match make_private(path) {
        Ok(()) => sync_directory(above),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(StoreError::io("make the directory", path, error)),
    }
}

/// Reads a file of text. What is no regular file is refused unread: a pipe that a program has put in its place would be waited for.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    check_regular(&fs::metadata(path)?)?;
    fs::read_to_string(path)
}

/// Refuses what is neither a file nor a directory, which says what it is when it is read.
pub(crate) fn check_regular(data: &fs::Metadata) -> io::Result<()> {
    if data.is_file() || data.is_dir() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "it is no regular file"))
}

/// Makes the entries of a directory durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    let synced = File::open(path).and_then(|directory| sync(&directory));
    synced.map_err(|error| StoreError::io("sync the directory", path, error))
}

/// Makes a file, or the entries of a directory, durable.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    if faults::is_on(Fault::SkipSync) { Ok(()) } else { file.sync_all() }
}

/// Returns options that make files for their owner alone.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Makes a directory that its owner can use, also with a umask that takes rights from the owner.
#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};

    fs::DirBuilder::new().mode(0o700).create(path)?;
    // Nothing but the store lies here, where no program of a run writes: the name is still that of the directory.
    match fs::symlink_metadata(path)?.permissions().mode() & 0o700 {
        0o700 => Ok(()),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(0o700)),
    }
}

/// Writes a file whole: a crash leaves the old content or the new one, and both are durable once this returns.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let fresh = with_suffix(path, ".new");
    let write = || {
        let mut file = private_file().write(true).create(true).truncate(true).open(&fresh)?;
        io::Write::write_all(&mut file, content)?;
        sync(&file)?;
        fs::rename(&fresh, path)
    };
    if let Err(error) = write() {
        // What is left of it is in nobody's way; the error is what counts.
        let _ = fs::remove_file(&fresh);
        return Err(StoreError::io("write", path, error));
    }
    // The new content is in its place: whatever the cause, the error must not read as if nothing was written.
    sync_directory(directory_of(path)).map_err(|error| StoreError::in_doubt(path, error))
}

/// What tells a file from another one that takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

/// Returns the identity of a file, or `None` if there is none.
pub(crate) fn identity(path: &Path) -> Result<Option<Identity>, StoreError> {
    match fs::metadata(path) {
        Ok(data) => Ok(Some(identity_of(&data))),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(StoreError::io("look at", path, error)),
    }
}

#[cfg(unix)]
pub(crate) fn identity_of(data: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Identity(data.dev(), data.ino())
}

#[cfg(not(unix))]
pub(crate) fn identity_of(_: &fs::Metadata) -> Identity {
    Identity(0, 0)
}

/// Returns the length of a file; 0 if there is none.
pub(crate) fn length(path: &Path) -> Result<u64, StoreError> {
    match fs::metadata(path) {
        Ok(data) => Ok(data.len()),
        Err(error) if is_absent(&error) => Ok(0),
        Err(error) => Err(StoreError::io("look at", path, error)),
    }
}

/// Returns whether the error says that there is no such file.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The lock that all processes take before they write: waiting in the kernel is fair, the retries of SQLite are not.
#[derive(Debug)]
pub(crate) struct LockFile {
    file: File,
    path: PathBuf,
}

impl LockFile {
    /// Opens the lock file beside `path`, and makes it if need be.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let path = with_suffix(path, ".lock");
        let file = private_file().read(true).write(true).create(true).truncate(false).open(&path);
        Ok(Self { file: file.map_err(|error| StoreError::io("open", &path, error))?, path })
    }

    /// Opens the lock file beside `path` if it is there.
    pub(crate) fn existing(path: &Path) -> Result<Option<Self>, StoreError> {
        let path = with_suffix(path, ".lock");
        match File::open(&path) {
            Ok(file) => Ok(Some(Self { file, path })),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(StoreError::io("open", &path, error)),
        }
    }

    /// Waits until nobody else holds it.
    pub(crate) fn lock(&self) -> Result<(), StoreError> {
        if faults::is_on(Fault::NoLockFile) {
            return Ok(());
        }
        self.retry(File::lock)
    }

    /// Takes it if nobody else holds it, and returns whether it did.
    pub(crate) fn try_lock(&self) -> Result<bool, StoreError> {
        if faults::is_on(Fault::NoLockFile) {
            return Ok(true);
        }
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(StoreError::io("lock", &self.path, error)),
        }
    }

    /// Waits until nobody holds it to write.
    pub(crate) fn lock_shared(&self) -> Result<(), StoreError> {
        self.retry(File::lock_shared)
    }

    /// Gives it back.
    pub(crate) fn unlock(&self) {
        // Closing the file would free it too; nothing can be done about an error here.
        let _ = self.file.unlock();
    }

    /// A signal that the program handles must not look like a failure.
    fn retry(&self, lock: impl Fn(&File) -> io::Result<()>) -> Result<(), StoreError> {
        loop {
            match lock(&self.file) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(|error| StoreError::io("lock", &self.path, error)),
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("project.json");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let _ = sender.send(read_text(&pipe).map_err(|error| error.to_string()));
        });
        let read = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(read, Err("it is no regular file".to_owned()));
    }
}
