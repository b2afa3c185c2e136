//! A folder below a base directory that symbolic links cannot leave, and atomic replacement of the files in it.
//!
//! Writers hold a kernel lock (`flock`) on the folder itself. So there are no lock files among the files of a project,
//! and no lock remains when its holder is killed.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// Largest file that is read, in bytes. Lists of models have a few thousand bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Location of a folder.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Base directory that must not be left.
    pub(crate) base: PathBuf,
    /// Path of the folder relative to `base`.
    pub(crate) folder: PathBuf,
    /// True if the folder and its files are only accessible to their owner.
    pub(crate) is_private: bool,
}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    is_private: bool,
}

impl Place {
    /// Opens the folder; `None` if it does not exist.
    pub(crate) fn open(&self) -> io::Result<Option<Folder>> {
        let Some(base) = self.open_base()? else { return Ok(None) };
        match open_beneath(&base, &self.folder, DIRECTORY) {
            Ok(fd) => Ok(Some(Folder { fd, is_private: self.is_private })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(named(errno, &self.folder)),
        }
    }

    /// Opens the folder, creates it if necessary, and waits for its lock. Dropping the returned folder releases the
    /// lock.
    pub(crate) fn open_locked(&self) -> io::Result<Folder> {
        loop {
            let folder = self.make()?;
            if folder.lock()? {
                return Ok(folder);
            }
        }
    }

    fn open_base(&self) -> io::Result<Option<OwnedFd>> {
        match rustix::fs::openat(CWD, &self.base, DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn make(&self) -> io::Result<Folder> {
        // Only a private base is created: a missing project root is an error.
        if self.is_private {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.base)?;
        }
        let base = self.open_base()?.ok_or_else(|| io::Error::from(Errno::NOENT))?;
        let mode = Mode::from_raw_mode(if self.is_private { 0o700 } else { 0o777 });
        let fd = make_beneath(&base, &self.folder, mode).map_err(|errno| named(errno, &self.folder))?;
        Ok(Folder { fd, is_private: self.is_private })
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

fn open_beneath(base: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    taskpawl_tools::open_beneath(base, path, flags, Mode::empty())
}

fn make_beneath(base: &OwnedFd, path: &Path, mode: Mode) -> Result<OwnedFd, Errno> {
    match (open_beneath(base, path, DIRECTORY), path.parent(), path.file_name()) {
        (Err(Errno::NOENT), Some(above), Some(name)) => {
            let parent = if above.as_os_str().is_empty() { Path::new(".") } else { above };
            let parent = make_beneath(base, parent, mode)?;
            match rustix::fs::mkdirat(&parent, name, mode) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            // The new directory entry has to be durable before anything inside is reported as durable.
            rustix::fs::fsync(&parent)?;
            open_beneath(base, path, DIRECTORY)
        }
        (opened, _, _) => opened,
    }
}

fn named(errno: Errno, folder: &Path) -> io::Error {
    match errno {
        Errno::XDEV => io::Error::other(format!("`{}` leads out of its folder", folder.display())),
        errno => errno.into(),
    }
}

impl Folder {
    /// Waits for the lock. Returns false if the folder was removed while waiting: a lock on it would then protect
    /// nothing.
    fn lock(&self) -> io::Result<bool> {
        if faults::is_unlocked() {
            return Ok(true);
        }
        loop {
            match rustix::fs::flock(&self.fd, FlockOperation::LockExclusive) {
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(()) => return Ok(rustix::fs::fstat(&self.fd)?.st_nlink > 0),
            }
        }
    }

    /// Reads a file; `None` if it does not exist.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        // `NONBLOCK` keeps a named pipe from blocking the open; `NOCTTY` keeps a terminal from becoming the controlling
        // one.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match open_beneath(&self.fd, Path::new(name), flags) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(named(errno, Path::new(name))),
        };
        let data = file.metadata()?;
        if !data.is_file() {
            return Err(io::Error::other(format!("`{name}` is not a regular file")));
        }
        if data.len() > MAX_BYTES {
            return Err(io::Error::other(format!("`{name}` has more than {MAX_BYTES} bytes")));
        }
        let mut content = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut content)?;
        Ok(Some(content))
    }

    /// Replaces a file atomically. The caller has to hold the lock.
    ///
    /// # Durability
    /// Once this returns, the new content survives a power failure. Until then the old content does.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        // The fixed name is safe, because only the holder of the lock writes it. It also means that the leftover of a
        // killed process is replaced.
        let fresh = format!(".{name}.new");
        match rustix::fs::unlinkat(&self.fd, &fresh, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let written = self.write(&fresh, content, self.mode_of(name));
        let renamed = written.and_then(|()| Ok(rustix::fs::renameat(&self.fd, &fresh, &self.fd, name)?));
        if let Err(error) = renamed {
            // The original error is more useful than an error of the clean-up.
            let _ = rustix::fs::unlinkat(&self.fd, &fresh, AtFlags::empty());
            return Err(error);
        }
        // The rename is only durable once the directory is synced.
        Ok(rustix::fs::fsync(&self.fd)?)
    }

    fn write(&self, fresh: &str, content: &[u8], mode: Option<Mode>) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let first = Mode::from_raw_mode(if self.is_private { 0o600 } else { 0o666 });
        let mut file = File::from(rustix::fs::openat(&self.fd, fresh, flags, first)?);
        if let Some(mode) = mode {
            rustix::fs::fchmod(&file, mode)?;
        }
        file.write_all(content)?;
        file.sync_all()
    }

    /// Returns the permissions of an existing file, which its replacement inherits.
    fn mode_of(&self, name: &str) -> Option<Mode> {
        let stat = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Mode::from_raw_mode(stat.st_mode & 0o777))
    }
}

/// Fault injection for the tests: switches off the lock of all folders.
#[cfg(test)]
pub(crate) mod faults {
    use std::sync::atomic::{AtomicBool, Ordering};

    static UNLOCKED: AtomicBool = AtomicBool::new(false);

    pub(crate) fn unlock() {
        UNLOCKED.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_unlocked() -> bool {
        UNLOCKED.load(Ordering::SeqCst)
    }
}

#[cfg(not(test))]
mod faults {
    pub(super) const fn is_unlocked() -> bool {
        false
    }
}
