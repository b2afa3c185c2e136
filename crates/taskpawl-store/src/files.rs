//! Files and directories with owner-only permissions, atomic replacement, and the lock file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::faults::{self, Fault};

/// Appends `suffix` to the last component of `path`.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the path of the copy that is kept before a store of `version` is migrated.
pub(crate) fn backup_path(path: &Path, version: i64) -> PathBuf {
    with_suffix(path, &format!(".v{version}.bak"))
}

/// Like [`backup_path`], but with a number if that name is taken. Returns `None` if one of the existing files
/// is the same copy.
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

/// Returns whether two files have the same content. An unreadable file equals no other.
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

/// Returns the directory of a file, `.` for a bare file name.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Creates a directory and its missing ancestors with mode 0700. The new directory entries are durable on
/// return.
pub(crate) fn make_directory(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Ok(());
    }
    let above = directory_of(path);
    make_directory(above)?;
    match make_private(path) {
        Ok(()) => sync_directory(above),
        // Another process may have created it in the meantime.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(StoreError::io("create the directory", path, error)),
    }
}

/// Reads a text file. Refuses anything but a regular file, because opening a FIFO would block until it has a
/// writer.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    check_regular(&fs::metadata(path)?)?;
    fs::read_to_string(path)
}

/// Refuses FIFOs, sockets and devices. Directories pass, because reading one fails with a clear error anyway.
pub(crate) fn check_regular(data: &fs::Metadata) -> io::Result<()> {
    if data.is_file() || data.is_dir() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file"))
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

/// Returns options that create files with mode 0600.
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

/// Creates a directory with mode 0700, even if the umask removes permissions of the owner.
#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};

    fs::DirBuilder::new().mode(0o700).create(path)?;
    // Programs of a run cannot write here, so the path still names the directory created above and not a
    // symbolic link.
    match fs::symlink_metadata(path)?.permissions().mode() & 0o700 {
        0o700 => Ok(()),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(0o700)),
    }
}

/// Replaces the content of a file atomically: after a crash it has the old or the new content. Durable on
/// return.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let fresh = with_suffix(path, ".new");
    let write = || {
        let mut file = private_file().write(true).create(true).truncate(true).open(&fresh)?;
        io::Write::write_all(&mut file, content)?;
        // The order matters: a rename that is durable before the data would leave an empty file after a power
        // failure.
        sync(&file)?;
        fs::rename(&fresh, path)
    };
    if let Err(error) = write() {
        // A leftover is harmless, and `doctor --fix` removes it. The first error is the one to report.
        let _ = fs::remove_file(&fresh);
        return Err(StoreError::io("write", path, error));
    }
    // The new content is already in place, so this error must not read as if nothing was written.
    sync_directory(directory_of(path)).map_err(|error| StoreError::in_doubt(path, error))
}

/// Device and inode of a file. They differ if another file has taken its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

/// Returns the identity of a file, or `None` if it does not exist.
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

/// Returns the length of a file in bytes, 0 if it does not exist.
pub(crate) fn length(path: &Path) -> Result<u64, StoreError> {
    match fs::metadata(path) {
        Ok(data) => Ok(data.len()),
        Err(error) if is_absent(&error) => Ok(0),
        Err(error) => Err(StoreError::io("look at", path, error)),
    }
}

/// Returns the first 16 bytes of a file.
pub(crate) fn start_of(path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(16).read_to_end(&mut start));
    read.map_err(|error| StoreError::io("read", path, error))?;
    Ok(start)
}

/// Returns whether the error means that the file does not exist.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The lock that every process takes before it writes. Lock waiters queue in the kernel, which is fair;
/// SQLite retries are not.
#[derive(Debug)]
pub(crate) struct LockFile {
    file: File,
    path: PathBuf,
}

impl LockFile {
    /// Opens the lock file beside `path`, and creates it if necessary.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let path = with_suffix(path, ".lock");
        let file = private_file().read(true).write(true).create(true).truncate(false).open(&path);
        Ok(Self { file: file.map_err(|error| StoreError::io("open", &path, error))?, path })
    }

    /// Opens the lock file beside `path` if it exists.
    pub(crate) fn existing(path: &Path) -> Result<Option<Self>, StoreError> {
        let path = with_suffix(path, ".lock");
        match File::open(&path) {
            Ok(file) => Ok(Some(Self { file, path })),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(StoreError::io("open", &path, error)),
        }
    }

    /// Takes the lock, waiting until no other process holds it.
    pub(crate) fn lock(&self) -> Result<(), StoreError> {
        if faults::is_on(Fault::NoLockFile) {
            return Ok(());
        }
        self.retry(File::lock)
    }

    /// Tries to take the lock without waiting. Returns whether it is held now.
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

    /// Takes the lock for reading, waiting until no process holds it for writing.
    pub(crate) fn lock_shared(&self) -> Result<(), StoreError> {
        self.retry(File::lock_shared)
    }

    /// Releases the lock.
    pub(crate) fn unlock(&self) {
        // Closing the file would release it as well, and an error here has no remedy.
        let _ = self.file.unlock();
    }

    /// Repeats the operation after a signal: one that the host program handles must not look like a failed
    /// lock.
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
    fn a_fifo_is_refused_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("project.json");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let _ = sender.send(read_text(&pipe).map_err(|error| error.to_string()));
        });
        let read = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(read, Err("it is not a regular file".to_owned()));
    }
}
