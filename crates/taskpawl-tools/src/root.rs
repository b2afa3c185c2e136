//! Files beneath the project root.
//!
//! Every path is resolved by the kernel in the same step that opens it (`openat2` with `RESOLVE_BENEATH`). Checking a
//! path first and opening it then can be raced: somebody swaps a directory for a link between the two. What is closed to tools is
//! therefore recognised by the path that the kernel says of what is open, not by the one that a call has written.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::context::CallContext;
use crate::error::ToolError;
use crate::sandbox::{ClosedPlaces, ClosedReason};

/// What ties the project to its store: no tool writes there.
const OWN_DIRECTORY: &str = ".taskpawl";

/// Returns whether a path is not beneath the root, which has these names, whatever lies there: it starts elsewhere, or its first step
/// leaves the root. Where links lead is found out when it is opened.
pub(crate) fn is_surely_outside(path: &Path, names: [&Path; 2]) -> bool {
    if path.is_absolute() {
        return !names.iter().any(|name| path.starts_with(name));
    }
    path.components().find(|part| *part != Component::CurDir) == Some(Component::ParentDir)
}

/// The open root of a project, through which all files are reached.
#[derive(Debug)]
pub(crate) struct Root {
    fd: OwnedFd,
    /// The root as the kernel knows it, without links.
    real: PathBuf,
    /// The root as the call knows it; absolute paths may begin with either.
    named: PathBuf,
    /// Where relative paths start, from the root.
    dir: PathBuf,
    /// What beneath the root is left alone.
    closed: ClosedPlaces,
}

impl Root {
    pub(crate) fn open(cx: &CallContext) -> Result<Self, ToolError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, &cx.root, flags, Mode::empty());
        let fd = opened.map_err(|errno| failed("open", &cx.root, errno))?;
        let real = path_of(&fd).map_err(|error| io_error("open", &cx.root, error))?;
        let (named, closed) = (cx.root.clone(), cx.closed.clone());
        let mut root = Self { fd, real, named, dir: PathBuf::new(), closed };
        root.dir = root.relative(&cx.dir)?;
        Ok(root)
    }

    /// Returns the root, absolute and without links.
    pub(crate) fn real(&self) -> &Path {
        &self.real
    }

    /// Opens a file for reading. Whatever is no regular file is refused: a named pipe would hold the call for ever.
    pub(crate) fn read(&self, path: &Path) -> Result<File, ToolError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(self.open_beneath(&self.relative(path)?, flags, path, "read")?);
        let metadata = file.metadata().map_err(|error| io_error("read", path, error))?;
        if !metadata.is_file() {
            return Err(no_file(path));
        }
        let real = path_of_any(&file, &metadata).map_err(|error| io_error("read", path, error))?;
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

    /// Refuses what is hidden; `real` is what `path` means.
    pub(crate) fn check_shown(&self, real: &Path, path: &Path) -> Result<(), ToolError> {
        self.closed.hides(real).map_or(Ok(()), |reason| Err(closed(path, reason)))
    }

    /// Returns what beneath the root is left alone.
    pub(crate) fn closed(&self) -> &ClosedPlaces {
        &self.closed
    }

    /// Opens a file for appending, and makes it with its directories where it is missing. Whatever is no regular file is refused: the
    /// content would go to whoever reads the pipe, or to a device.
    pub(crate) fn append(&self, path: &Path) -> Result<File, ToolError> {
        check_names_file(path)?;
        let relative = self.relative(path)?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY;
        let (_, _, mut new) = self.parent(&relative, path)?;
        // Made exclusively: following a link that leads to nothing would make what it names, which may be protected.
        let opened = match self.try_open(&relative, flags | OFlags::CREATE | OFlags::EXCL) {
            // A pipe that nobody reads.
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

    /// Returns the absolute path, without links, of something that exists.
    pub(crate) fn real_path(&self, path: &Path) -> Result<PathBuf, ToolError> {
        let fd = self.open_beneath(&self.relative(path)?, OFlags::PATH, path, "open")?;
        path_of(&fd).map_err(|error| io_error("open", path, error))
    }

    /// Returns the directory, absolute and without links, that relative paths start from.
    pub(crate) fn real_dir(&self) -> Result<PathBuf, ToolError> {
        self.real_path(Path::new("."))
    }

    /// Puts a file in the place of `path`, or of what it links to, in one step: nobody sees it half written.
    /// It takes over the mode of the file that it replaces, unless `mode` is given. Missing directories are made, and where the file is
    /// not written after all, they are taken away again.
    ///
    /// # Durability
    ///
    /// Once this returns, the content survives a power cut if the name does: no file of zero bytes stays behind.
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
            file.sync_data()?;
            temporary.rename(&name)
        };
        finish().map_err(|error| io_error("write", path, error))
    }

    /// Checks that [`replace`](Self::replace) would put a file there, as far as that is known before. Makes nothing.
    #[cfg(feature = "http")]
    pub(crate) fn check_replaceable(&self, path: &Path) -> Result<(), ToolError> {
        let (target, _) = self.target(path)?;
        target.file_name().ok_or_else(|| no_file(path))?;
        for above in target.ancestors().skip(1) {
            let directory = match self.try_open(above, OFlags::PATH | OFlags::DIRECTORY) {
                Ok(directory) => directory,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(failed("write", path, errno)),
            };
            let there = path_of(&directory).map_err(|error| io_error("write", path, error))?;
            let real = there.join(target.strip_prefix(above).unwrap_or(&target));
            self.check_written(&real, path)?;
            return self.closed.keeps_way(&real).map_or(Ok(()), |reason| Err(closed(path, reason)));
        }
        Err(outside(path))
    }

    /// Returns what a path means after following links, and the mode of the file that is there.
    fn target(&self, path: &Path) -> Result<(PathBuf, Option<u32>), ToolError> {
        check_names_file(path)?;
        let relative = self.relative(path)?;
        let fd = match self.try_open(&relative, OFlags::PATH) {
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
        Ok((target.to_owned(), Some(metadata.permissions().mode() & 0o7777)))
    }

    /// Opens the directory that holds `relative`, made where it is missing, and returns the name in it.
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

    /// Refuses to write what is protected, hidden or taskpawl's own, be it there or not; `real` is what `path` means.
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
        let flags = OFlags::PATH | OFlags::DIRECTORY;
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
                    Err(Errno::EXIST) => self.open_beneath(relative, flags, path, "write"),
                    Err(errno) => Err(failed("write", path, errno)),
                }
            }
            (opened, _, _) => opened.map_err(|errno| failed("write", path, errno)),
        }
    }

    /// Returns a path as seen from the root. It may still lead out of it; the kernel refuses that on opening.
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
        // The kernel gives up with EAGAIN when something is renamed while it walks over `..`.
        for _ in 0..100 {
            match rustix::fs::openat2(&self.fd, path, flags | OFlags::CLOEXEC, mode, ResolveFlags::BENEATH) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }
}

/// Directories that were made for a file, each with the one that holds it, outer ones first. They disappear unless they are kept;
/// those in which somebody else has put something stay.
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
            if rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).is_err() {
                return;
            }
        }
    }
}

/// A file under a name of its own that disappears unless it is renamed.
struct Temporary {
    parent: OwnedFd,
    name: Option<String>,
    /// Those that were made for it, which go after it.
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
                // Left behind by a killed process that had the same id.
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

fn path_of(fd: &impl AsRawFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Returns the path of an open file, or the one that it had when it was removed.
fn path_of_any(file: &File, metadata: &Metadata) -> io::Result<PathBuf> {
    const REMOVED: &[u8] = b" (deleted)";

    let path = path_of(file)?;
    match path.as_os_str().as_bytes().strip_suffix(REMOVED) {
        Some(before) if metadata.nlink() == 0 => Ok(Path::new(OsStr::from_bytes(before)).to_owned()),
        Some(_) | None => Ok(path),
    }
}

fn failed(action: &'static str, path: &Path, errno: Errno) -> ToolError {
    match errno {
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
    ToolError::failed(format!("`{}` is no regular file", path.display()))
}

/// Fails for `dir/`: taken for a file, it would be one where a directory was meant.
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

/// Writes all of `content`, with the error that belongs to `path`.
pub(crate) fn write_all(file: &mut File, content: &[u8], path: &Path) -> Result<(), ToolError> {
    file.write_all(content).map_err(|error| io_error("write", path, error))
}

/// Tells whether a path can only mean something beneath where it starts.
pub(crate) fn is_inner(path: &Path) -> bool {
    path.components().all(|component| matches!(component, Component::Normal(_) | Component::CurDir))
}
