//! Access to files beneath the project root.
//!
//! Every path is resolved in the same step that opens it ([`taskpawl_process::open_beneath`]). Checking a path
//! first and opening it afterwards would be a race: another process can swap a directory for a link in between. For the
//! same reason excluded paths are recognised by the path that the kernel reports for the open descriptor, not by the
//! path in the arguments of the call.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use taskpawl_process::PATH_ONLY;

use crate::context::CallContext;
use crate::error::ToolError;
use crate::sandbox::{ClosedPlaces, ClosedReason};

/// Directory that connects the project with its store; tools never write there.
const OWN_DIRECTORY: &str = ".taskpawl";

/// Returns whether a path lies outside of the root, judged by its text alone: it is absolute and elsewhere, or its
/// first component leaves the root. Links are not followed here; they are checked when the path is opened.
///
/// `names` are the known paths of the root, with and without links.
pub(crate) fn is_surely_outside(path: &Path, names: [&Path; 2]) -> bool {
    if path.is_absolute() {
        return !names.iter().any(|name| path.starts_with(name));
    }
    path.components().find(|part| *part != Component::CurDir) == Some(Component::ParentDir)
}

/// Open root of a project; all file access goes through its descriptor.
#[derive(Debug)]
pub(crate) struct Root {
    fd: OwnedFd,
    /// Path of the root without links, as the kernel reports it.
    real: PathBuf,
    /// Path of the root as the call knows it; absolute paths may begin with either of the two.
    named: PathBuf,
    /// Start of relative paths, relative to the root.
    dir: PathBuf,
    /// Paths beneath the root that are excluded for tools.
    closed: ClosedPlaces,
}

impl Root {
    pub(crate) fn open(cx: &CallContext) -> Result<Self, ToolError> {
        let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, &cx.root, flags, Mode::empty());
        let fd = opened.map_err(|errno| failed("open", &cx.root, errno))?;
        let real = path_of(&fd).map_err(|error| io_error("open", &cx.root, error))?;
        let (named, closed) = (cx.root.clone(), cx.closed.clone());
        let mut root = Self { fd, real, named, dir: PathBuf::new(), closed };
        root.dir = root.relative(&cx.dir)?;
        Ok(root)
    }

    /// Opens a directory beside the project in which nothing is excluded.
    pub(crate) fn at(directory: &Path) -> Result<Self, ToolError> {
        let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, directory, flags, Mode::empty());
        let fd = opened.map_err(|errno| failed("open", directory, errno))?;
        let real = path_of(&fd).map_err(|error| io_error("open", directory, error))?;
        let (named, closed) = (directory.to_owned(), ClosedPlaces::default());
        Ok(Self { fd, real, named, dir: PathBuf::new(), closed })
    }

    /// Sets the paths that are excluded.
    pub(crate) fn with_closed(self, closed: ClosedPlaces) -> Self {
        Self { closed, ..self }
    }

    /// Returns the absolute path of the root, without links.
    pub(crate) fn real(&self) -> &Path {
        &self.real
    }

    /// Opens a regular file for reading. Everything else is refused: reading a named pipe could block forever.
    pub(crate) fn read(&self, path: &Path) -> Result<File, ToolError> {
        // Without `NONBLOCK` the open itself would block on a named pipe, before its type can be checked. `NOCTTY`
        // keeps a terminal device from becoming the controlling terminal.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(self.open_beneath(&self.relative(path)?, flags, path, "read")?);
        let metadata = file.metadata().map_err(|error| io_error("read", path, error))?;
        if !metadata.is_file() {
            return Err(no_file(path));
        }
        let real = path_of_any(&file, &metadata).map_err(|error| io_error("read", path, error))?;
        // A hidden file may have a second name by a hard link, which only its inode number reveals.
        let reason = self.closed.hides(&real).or_else(|| self.closed.hides_other_name(&metadata));
        reason.map_or(Ok(file), |reason| Err(closed(path, reason)))
    }

    /// Opens a directory for reading its entries.
    pub(crate) fn list(&self, path: &Path) -> Result<OwnedFd, ToolError> {
        let fd =
            self.open_beneath(&self.relative(path)?, OFlags::RDONLY | OFlags::DIRECTORY, path, "list")?;
        let real = path_of(&fd).map_err(|error| io_error("list", path, error))?;
        self.check_shown(&real, path)?;
        Ok(fd)
    }

    /// Refuses hidden paths. `real` is the resolved form of `path`.
    pub(crate) fn check_shown(&self, real: &Path, path: &Path) -> Result<(), ToolError> {
        self.closed.hides(real).map_or(Ok(()), |reason| Err(closed(path, reason)))
    }

    /// Returns the paths beneath the root that are excluded for tools.
    pub(crate) fn closed(&self) -> &ClosedPlaces {
        &self.closed
    }

    /// Opens a regular file for appending, and creates it with its directories if it is missing.
    ///
    /// Everything else is refused: the content would end up in the reader of a pipe, or in a device.
    pub(crate) fn append(&self, path: &Path) -> Result<File, ToolError> {
        check_names_file(path)?;
        let relative = self.relative(path)?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY;
        let (_, _, mut new) = self.parent(&relative, path)?;
        // `EXCL` refuses to follow a dangling link: creating its target could create a protected file. An existing
        // file, also one behind a link, is opened in the second step without `CREATE`.
        let opened = match self.try_open(&relative, flags | OFlags::CREATE | OFlags::EXCL) {
            // `NXIO` is the error for a named pipe without a reader.
            Err(Errno::EXIST) => match self.try_open(&relative, flags) {
                Err(Errno::NXIO) => return Err(no_file(path)),
                opened => opened,
            },
            made => made,
        };
        let file = File::from(opened.map_err(|errno| failed("append to", path, errno))?);
        let metadata = file.metadata().map_err(|error| io_error("append to", path, error))?;
        if !metadata.is_file() {
            return Err(no_file(path));
        }
        let real = path_of_any(&file, &metadata).map_err(|error| io_error("append to", path, error))?;
        self.check_written(&real, path)?;
        if let Some(reason) = self.closed.keeps_other_name(&metadata) {
            return Err(closed(path, reason));
        }
        new.keep();
        Ok(file)
    }

    /// Returns the absolute path of an existing file, without links.
    pub(crate) fn real_path(&self, path: &Path) -> Result<PathBuf, ToolError> {
        let fd = self.open_beneath(&self.relative(path)?, PATH_ONLY, path, "open")?;
        path_of(&fd).map_err(|error| io_error("open", path, error))
    }

    /// Returns the absolute path, without links, of the directory that relative paths start from.
    pub(crate) fn real_dir(&self) -> Result<PathBuf, ToolError> {
        self.real_path(Path::new("."))
    }

    /// Replaces the file at `path`, or the target of a link there, in one step: readers never see it half written.
    ///
    /// The new file gets the mode of the old one unless `mode` is given, but never its set-id bits: they would give the owner's
    /// rights to new content. Missing directories are created, and removed
    /// again if the file is not written in the end.
    ///
    /// # Durability
    ///
    /// After this returns, a power cut leaves either the old file or the complete new content, never an empty file.
    pub(crate) fn replace(
        &self,
        path: &Path,
        mode: Option<u32>,
        write: impl FnOnce(&mut File) -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        let (target, old_mode) = self.target(path)?;
        let (parent, name, new) = self.parent(&target, path)?;
        let (temporary, mut file) = Temporary::create(parent, new, path)?;
        write(&mut file)?;
        let finish = || {
            if let Some(mode) = mode.or(old_mode) {
                file.set_permissions(std::fs::Permissions::from_mode(mode))?;
            }
            // Some file systems commit a rename before the data of the file; without this a power cut could leave an
            // empty file.
            file.sync_data()?;
            temporary.rename(&name)
        };
        finish().map_err(|error| io_error("write", path, error))
    }

    /// Checks in advance that [`replace`](Self::replace) would succeed, as far as that is known. Creates nothing.
    #[cfg(feature = "http")]
    pub(crate) fn check_replaceable(&self, path: &Path) -> Result<(), ToolError> {
        let (target, _) = self.target(path)?;
        target.file_name().ok_or_else(|| no_file(path))?;
        for above in target.ancestors().skip(1) {
            let directory = match self.try_open(above, PATH_ONLY | OFlags::DIRECTORY) {
                Ok(directory) => directory,
                // Only existing directories can be resolved; the missing ones below them would be created with exactly
                // these names.
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(failed("write", path, errno)),
            };
            let existing = path_of(&directory).map_err(|error| io_error("write", path, error))?;
            let real = existing.join(target.strip_prefix(above).unwrap_or(&target));
            self.check_written(&real, path)?;
            return self.closed.keeps_way(&real).map_or(Ok(()), |reason| Err(closed(path, reason)));
        }
        Err(outside(path))
    }

    /// Returns the target of a path after following links, and the mode of the existing file.
    fn target(&self, path: &Path) -> Result<(PathBuf, Option<u32>), ToolError> {
        check_names_file(path)?;
        let relative = self.relative(path)?;
        let fd = match self.try_open(&relative, PATH_ONLY) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok((relative, None)),
            Err(errno) => return Err(failed("write", path, errno)),
        };
        let real = path_of(&fd).map_err(|error| io_error("write", path, error))?;
        let metadata = File::from(fd).metadata().map_err(|error| io_error("write", path, error))?;
        if !metadata.is_file() {
            return Err(no_file(path));
        }
        let target = real.strip_prefix(&self.real).map_err(|_| outside(path))?;
        Ok((target.to_owned(), Some(metadata.permissions().mode() & 0o777)))
    }

    /// Opens the parent directory of `relative`, creating it if needed, and returns the file name in it.
    fn parent(&self, relative: &Path, path: &Path) -> Result<(OwnedFd, PathBuf, NewDirectories), ToolError> {
        let name = relative.file_name().ok_or_else(|| no_file(path))?;
        let parent = relative.parent().unwrap_or(Path::new(""));
        let mut new = NewDirectories::default();
        let directory = self.make_dirs(parent, path, &mut new)?;
        let real = path_of(&directory).map_err(|error| io_error("write", path, error))?.join(name);
        self.check_written(&real, path)?;
        match self.closed.keeps_way(&real) {
            Some(reason) => Err(closed(path, reason)),
            None => Ok((directory, name.into(), new)),
        }
    }

    /// Refuses to write protected, hidden and taskpawl's own paths, whether they exist or not. `real` is the resolved
    /// form of `path`.
    fn check_written(&self, real: &Path, path: &Path) -> Result<(), ToolError> {
        if real.starts_with(self.real.join(OWN_DIRECTORY)) {
            return Err(ToolError::Protected { path: path.to_owned() });
        }
        self.closed.keeps(real).map_or(Ok(()), |reason| Err(closed(path, reason)))
    }

    fn make_dirs(
        &self,
        relative: &Path,
        path: &Path,
        new: &mut NewDirectories,
    ) -> Result<OwnedFd, ToolError> {
        let flags = PATH_ONLY | OFlags::DIRECTORY;
        match (self.try_open(relative, flags), relative.file_name(), relative.parent()) {
            (Err(Errno::NOENT), Some(name), Some(parent)) => {
                let parent = self.make_dirs(parent, path, new)?;
                let real = path_of(&parent).map_err(|error| io_error("write", path, error))?;
                self.check_written(&real.join(name), path)?;
                match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) => {
                        new.0.push((parent, name.to_owned()));
                        self.open_beneath(relative, flags, path, "write")
                    }
                    // Another process created the directory in the meantime. It is opened through the root, for it may
                    // be a link.
                    Err(Errno::EXIST) => self.open_beneath(relative, flags, path, "write"),
                    Err(errno) => Err(failed("write", path, errno)),
                }
            }
            (opened, _, _) => opened.map_err(|errno| failed("write", path, errno)),
        }
    }

    /// Returns a path relative to the root. It may still lead out of the root; the kernel refuses that on opening.
    fn relative(&self, path: &Path) -> Result<PathBuf, ToolError> {
        if path.is_relative() {
            return Ok(self.dir.join(path));
        }
        let beneath = path.strip_prefix(&self.named).or_else(|_| path.strip_prefix(&self.real));
        beneath.map(Path::to_owned).map_err(|_| outside(path))
    }

    fn open_beneath(
        &self,
        relative: &Path,
        flags: OFlags,
        path: &Path,
        action: &'static str,
    ) -> Result<OwnedFd, ToolError> {
        self.try_open(relative, flags).map_err(|errno| failed(action, path, errno))
    }

    fn try_open(&self, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o666) } else { Mode::empty() };
        taskpawl_process::open_beneath(&self.fd, path, flags, mode)
    }
}

/// Directories created for a file, outer ones first, each with the descriptor of its parent.
///
/// They are removed on drop unless [`keep`](Self::keep) was called. Directories that are no longer empty stay.
#[derive(Debug, Default)]
struct NewDirectories(Vec<(OwnedFd, OsString)>);

impl NewDirectories {
    fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for NewDirectories {
    fn drop(&mut self) {
        for (parent, name) in self.0.iter().rev() {
            // If a directory stays because it is in use, the outer ones are not empty either.
            if rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).is_err() {
                return;
            }
        }
    }
}

/// Temporary file that is removed on drop unless it was renamed.
struct Temporary {
    parent: OwnedFd,
    name: Option<String>,
    /// Directories created for it; they are removed after the file, since fields are dropped after `drop` runs.
    new: NewDirectories,
}

impl Temporary {
    fn create(parent: OwnedFd, new: NewDirectories, path: &Path) -> Result<(Self, File), ToolError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);

        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!(".taskpawl-{}-{count}.tmp", std::process::id());
            match rustix::fs::openat(&parent, &name, flags, Mode::from_raw_mode(0o666)) {
                Ok(fd) => return Ok((Self { parent, name: Some(name), new }, fd.into())),
                // Left over from a killed process with the same id.
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed("write", path, errno)),
            }
        }
    }

    fn rename(mut self, to: &Path) -> io::Result<()> {
        let name = self.name.as_ref().expect("BUG: a temporary file is renamed once");
        rustix::fs::renameat(&self.parent, name, &self.parent, to)?;
        self.name = None;
        self.new.keep();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlinkat(&self.parent, name, AtFlags::empty());
        }
    }
}

// The kernel's own answer: it reflects renames and links up to this moment, unlike a path that was resolved before.
#[cfg(target_os = "linux")]
fn path_of(fd: &impl AsFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()))
}

#[cfg(target_vendor = "apple")]
fn path_of(fd: &impl AsFd) -> io::Result<PathBuf> {
    let path = rustix::fs::getpath(fd)?;
    Ok(OsStr::from_bytes(path.as_bytes()).into())
}

/// Returns the path of an open file, or its last path if it has been removed.
fn path_of_any(file: &File, metadata: &Metadata) -> io::Result<PathBuf> {
    const REMOVED: &[u8] = b" (deleted)";

    let path = path_of(file)?;
    // A name may really end in ` (deleted)`; only the link count tells that from the mark of the kernel.
    match path.as_os_str().as_bytes().strip_suffix(REMOVED) {
        Some(before) if metadata.nlink() == 0 => Ok(Path::new(OsStr::from_bytes(before)).to_owned()),
        Some(_) | None => Ok(path),
    }
}

fn failed(action: &'static str, path: &Path, errno: Errno) -> ToolError {
    match errno {
        // An attempt to leave the root.
        Errno::XDEV => outside(path),
        _ => io_error(action, path, errno.into()),
    }
}

fn outside(path: &Path) -> ToolError {
    ToolError::OutsideRoot { path: path.to_owned() }
}

fn closed(path: &Path, reason: ClosedReason) -> ToolError {
    ToolError::Closed { path: path.to_owned(), reason }
}

fn no_file(path: &Path) -> ToolError {
    ToolError::failed(format!("`{}` is not a regular file", path.display()))
}

/// Fails for `dir/`: creating a file of that name is not what the caller meant.
fn check_names_file(path: &Path) -> Result<(), ToolError> {
    if !path.as_os_str().as_bytes().ends_with(b"/") {
        return Ok(());
    }
    let path = path.display();
    Err(ToolError::failed(format!("`{path}` names a directory; name the file, without `/` at its end")))
}

pub(crate) fn io_error(action: &'static str, path: &Path, source: io::Error) -> ToolError {
    ToolError::Io { action, path: path.to_owned(), source }
}

/// Writes all of `content`; errors name `path`.
pub(crate) fn write_all(file: &mut File, content: &[u8], path: &Path) -> Result<(), ToolError> {
    file.write_all(content).map_err(|error| io_error("write", path, error))
}

/// Returns whether a path stays beneath its starting point by its text alone, without links taken into account.
pub(crate) fn is_inner(path: &Path) -> bool {
    path.components().all(|component| matches!(component, Component::Normal(_) | Component::CurDir))
}
