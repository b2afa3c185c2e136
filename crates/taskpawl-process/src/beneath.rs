//! Opens files by paths that must not leave a directory.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// The maximum of links that are followed. The Linux kernel has the same limit.
const MAX_LINKS: usize = 40;

/// The flag of a descriptor that stands for a path alone.
#[cfg(target_os = "linux")]
pub const PATH_ONLY: OFlags = OFlags::PATH;
/// The flag of a descriptor that stands for a path alone: here the file is opened, without waiting for the other end of a pipe.
#[cfg(not(target_os = "linux"))]
pub const PATH_ONLY: OFlags = OFlags::NONBLOCK;

/// Retries of an open that another process disturbs by renaming. The bound keeps constant renaming from holding the caller forever.
const MAX_TRIES: usize = 100;

/// Opens a path relative to a directory. The descriptor is closed at `execve`, and `mode` is the mode of a new file.
///
/// The kernel resolves the path in the same step that opens it (`openat2`). A sandbox of taskpawl denies that call to its programs, so
/// a run inside another one resolves the path component by component, as do systems without that call. Neither way can be raced out of
/// the directory.
///
/// # Errors
/// `XDEV` if the path, or a link on it, leads out of the directory. Otherwise the error of the kernel.
pub fn open_beneath(directory: impl AsFd, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    match open_at_once(&directory, path, flags, mode) {
        Err(Errno::NOSYS) => walk(directory, path, flags, mode),
        opened => opened,
    }
}

/// Opens a path in one system call.
///
/// # Errors
/// `NOSYS` where there is no such call.
#[cfg(target_os = "linux")]
fn open_at_once(directory: impl AsFd, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    for _ in 0..MAX_TRIES {
        // With `..` in the path the kernel returns `AGAIN` if a rename happens anywhere on the system meanwhile, for then it cannot
        // prove that the path stayed beneath the directory.
        match openat2(&directory, path, flags, mode, ResolveFlags::BENEATH) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn open_at_once(_: impl AsFd, _: &Path, _: OFlags, _: Mode) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Opens a path like [`open_beneath`], without `openat2`.
///
/// Only single names are opened, and never through a link, so each descriptor belongs to an entry of the one before. A `..` returns to
/// the descriptor before instead of asking the kernel for the parent, which may have been moved elsewhere in the meantime.
fn walk(directory: impl AsFd, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    if flags.contains(OFlags::CREATE) && path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(Errno::ISDIR);
    }
    let mut walk = Walk { base: &directory, inner: Vec::new(), rest: VecDeque::new(), links: 0 };
    walk.put_first(path.as_os_str())?;
    loop {
        let part = walk.rest.pop_front().ok_or(Errno::NOENT)?;
        let is_last = walk.rest.is_empty();
        match part.as_bytes() {
            b"." if !is_last => {}
            b".." => {
                walk.inner.pop().ok_or(Errno::XDEV)?;
                if is_last {
                    return walk.open(OsStr::new("."), flags, mode);
                }
            }
            _ if is_last => {
                if let Some(opened) = walk.open_last(&part, flags, mode)? {
                    return Ok(opened);
                }
            }
            _ => walk.enter(&part)?,
        }
    }
}

/// A path that is being resolved.
struct Walk<'a, F> {
    base: &'a F,
    /// The directories that were entered, outer ones first.
    inner: Vec<OwnedFd>,
    rest: VecDeque<OsString>,
    links: usize,
}

impl<F: AsFd> Walk<'_, F> {
    /// Puts the parts of a path before the rest. A `/` at the end means the directory itself, and becomes `.`.
    fn put_first(&mut self, path: &OsStr) -> Result<(), Errno> {
        let bytes = path.as_bytes();
        match bytes.first() {
            None => return Err(Errno::NOENT),
            Some(b'/') => return Err(Errno::XDEV),
            Some(_) => {}
        }
        if bytes.ends_with(b"/") {
            self.rest.push_front(".".into());
        }
        for part in bytes.split(|byte| *byte == b'/').rev().filter(|part| !part.is_empty()) {
            self.rest.push_front(OsStr::from_bytes(part).to_owned());
        }
        Ok(())
    }

    fn open(&self, name: &OsStr, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        loop {
            let opened = match self.inner.last() {
                Some(directory) => rustix::fs::openat(directory, name, flags, mode),
                None => rustix::fs::openat(self.base, name, flags, mode),
            };
            if !matches!(opened, Err(Errno::INTR)) {
                return opened;
            }
        }
    }

    /// Returns the target of a link; `None` for everything else, also for a missing name.
    fn target_of(&self, name: &OsStr) -> Option<OsString> {
        let read = match self.inner.last() {
            Some(directory) => rustix::fs::readlinkat(directory, name, Vec::new()),
            None => rustix::fs::readlinkat(self.base, name, Vec::new()),
        };
        read.ok().map(|target| OsStr::from_bytes(target.as_bytes()).to_owned())
    }

    /// Continues at the target of a link. Returns false if the name is no link.
    fn follow(&mut self, name: &OsStr) -> Result<bool, Errno> {
        let Some(target) = self.target_of(name) else { return Ok(false) };
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP);
        }
        self.put_first(&target).map(|()| true)
    }

    /// Enters the directory `name`, or continues at its target if it is a link.
    fn enter(&mut self, name: &OsStr) -> Result<(), Errno> {
        let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..MAX_TRIES {
            match self.open(name, flags, Mode::empty()) {
                Ok(directory) => {
                    self.inner.push(directory);
                    return Ok(());
                }
                // A link, a file, or a link that another process has replaced by a directory in the meantime.
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    if self.follow(name)? {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        // Neither a directory nor a link, at every look.
        Err(Errno::NOTDIR)
    }

    /// Opens the last part; `None` if it is a link, whose target is then the rest of the path.
    fn open_last(&mut self, name: &OsStr, flags: OFlags, mode: Mode) -> Result<Option<OwnedFd>, Errno> {
        // The kernel follows no link at the end of these either.
        let is_exact = flags.contains(OFlags::NOFOLLOW) || flags.contains(OFlags::CREATE | OFlags::EXCL);
        if is_exact {
            return self.open(name, flags, mode).map(Some);
        }
        for _ in 0..MAX_TRIES {
            if self.follow(name)? {
                return Ok(None);
            }
            match self.open(name, flags | OFlags::NOFOLLOW, mode) {
                // Without `DIRECTORY`, a descriptor for a path alone is opened for a link itself.
                Ok(opened) if flags.contains(PATH_ONLY) && type_of(&opened) == FileType::Symlink => {}
                // The name has become a link in the meantime, unless it is no directory.
                Err(Errno::LOOP) => {}
                Err(Errno::NOTDIR) if self.target_of(name).is_some() => {}
                opened => return opened.map(Some),
            }
        }
        Err(Errno::AGAIN)
    }
}

fn type_of(file: &OwnedFd) -> FileType {
    rustix::fs::fstat(file).map_or(FileType::Unknown, |status| FileType::from_raw_mode(status.st_mode))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{CWD, RenameFlags, renameat_with};

    use super::*;

    /// A directory `base` with files and links, and a file `secret` beside it.
    fn tree() -> (tempfile::TempDir, File) {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("base/a/b")).unwrap();
        fs::write(at("secret"), "secret").unwrap();
        fs::write(at("base/file"), "file").unwrap();
        fs::write(at("base/a/b/deep"), "deep").unwrap();
        for (target, link) in [
            ("file", "to-file"),
            ("a/b", "to-b"),
            ("a/b/", "to-b-slash"),
            ("../file", "a/up"),
            ("../../secret", "a/out"),
            ("../secret", "out"),
            ("..", "parent"),
            ("/etc/passwd", "absolute"),
            ("/", "root"),
            ("missing", "dangling"),
            ("loop", "loop"),
            ("to-b/../up", "winding"),
            ("file/", "file-slash"),
        ] {
            symlink(target, at("base").join(link)).unwrap();
        }
        let base = File::open(at("base")).unwrap();
        (directory, base)
    }

    /// The same error, or the same file.
    fn summary(opened: Result<OwnedFd, Errno>) -> Result<(u64, u64), Errno> {
        let status = rustix::fs::fstat(opened?)?;
        Ok((status.st_dev, status.st_ino))
    }

    #[test]
    fn both_ways_open_the_same() {
        let (_directory, base) = tree();
        let names = [
            "file",
            "a",
            "a/b",
            "a/b/deep",
            "to-file",
            "to-b",
            "to-b/deep",
            "to-b-slash",
            "to-b-slash/deep",
            "a/up",
            "a/out",
            "out",
            "parent",
            "parent/secret",
            "absolute",
            "root",
            "root/etc",
            "dangling",
            "missing",
            "missing/x",
            "loop",
            "loop/x",
            "winding",
            "file-slash",
            "file/",
            "file/x",
            "a/",
            "a//b",
            ".",
            "./",
            "..",
            "../secret",
            "a/..",
            "a/../file",
            "a/../..",
            "a/../../secret",
            "/etc/passwd",
            "",
            "a/b/../../file",
            "to-b/..",
            "to-b/../up",
            "a/./b/.",
        ];
        let path = OFlags::PATH;
        let ways = [
            OFlags::RDONLY | OFlags::NONBLOCK,
            OFlags::WRONLY | OFlags::APPEND,
            OFlags::RDONLY | OFlags::DIRECTORY,
            path,
            path | OFlags::DIRECTORY,
            path | OFlags::NOFOLLOW,
            OFlags::WRONLY | OFlags::NOFOLLOW,
        ];
        for name in names {
            for flags in ways {
                let (path, none) = (Path::new(name), Mode::empty());
                let kernel = open_beneath(&base, path, flags, none);
                assert_eq!(summary(walk(&base, path, flags, none)), summary(kernel), "`{name}` {flags:?}");
            }
        }
    }

    #[test]
    fn both_ways_create_the_same() {
        let names = [
            "new",
            "a/new",
            "file",
            "dangling",
            "out",
            "absolute",
            "missing/new",
            "a",
            "to-b/new",
            "parent/new",
            "new/",
            "loop",
        ];
        let mode = Mode::from_raw_mode(0o640);
        for flags in [OFlags::CREATE, OFlags::CREATE | OFlags::EXCL] {
            let flags = flags | OFlags::WRONLY;
            for name in names {
                let path = Path::new(name);
                let outcome = |open: &dyn Fn(&File) -> Result<OwnedFd, Errno>| {
                    let (directory, base) = tree();
                    let opened = open(&base).map(drop);
                    let files = ["base/new", "base/a/new", "base/a/b/new", "base/missing", "new"];
                    (opened, files.map(|file| directory.path().join(file).exists()))
                };
                let kernel = outcome(&|base| open_beneath(base, path, flags, mode));
                assert_eq!(outcome(&|base| walk(base, path, flags, mode)), kernel, "`{name}` {flags:?}");
            }
        }
    }

    #[test]
    fn a_walk_is_not_raced_out_of_its_directory() {
        let (directory, base) = tree();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("outside/b")).unwrap();
        fs::write(at("outside/b/deep"), "outside").unwrap();
        symlink("../outside", at("base/link")).unwrap();
        let names: [PathBuf; 2] = ["a", "link"].map(|name| at("base").join(name));
        let is_over = AtomicBool::new(false);
        let (mut inside, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    renameat_with(CWD, &names[0], CWD, &names[1], RenameFlags::EXCHANGE).unwrap();
                }
            });
            for round in 0..20_000 {
                let path = Path::new(["a/b/deep", "a/b/../b/deep"][round % 2]);
                match walk(&base, path, OFlags::RDONLY, Mode::empty()) {
                    Ok(file) => {
                        let text = std::io::read_to_string(File::from(file));
                        if text.as_deref().is_ok_and(|text| text == "deep") {
                            inside += 1;
                        } else {
                            is_over.store(true, Ordering::Relaxed);
                            panic!("{text:?}");
                        }
                    }
                    Err(_) => refused += 1,
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(inside > 0 && refused > 0, "nothing was raced: {inside} inside, {refused} refused");
    }
}
