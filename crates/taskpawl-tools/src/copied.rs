//! Copies of a project's files in another directory. No link leads out of either of them.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::fs::Dir;

use crate::error::ToolError;
use crate::root::{Root, io_error};
use crate::sandbox::ClosedPlaces;
use crate::scan::ScanBounds;

/// Copies files of one directory to the same paths in another one, without those that programs must not see.
///
/// Programs may change the first directory meanwhile: its files are opened beneath it. Nothing else may write the other one.
#[derive(Debug)]
pub struct FileCopier<'a> {
    source: Root,
    closed: ClosedPlaces,
    to: &'a Path,
    bounds: &'a ScanBounds,
    copied: CopiedFiles,
}

/// The files that were copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopiedFiles {
    /// Their number, with links.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The bytes that need no space of their own, because the file system shares them with the original until one of both changes.
    pub shared: u64,
}

impl<'a> FileCopier<'a> {
    /// Copies from `from` to `to`, except what `closed` hides.
    ///
    /// # Errors
    /// `from` is not there.
    pub fn new(
        from: &Path,
        to: &'a Path,
        closed: ClosedPlaces,
        bounds: &'a ScanBounds,
    ) -> Result<Self, ToolError> {
        let source = Root::at(from)?.with_closed(closed.clone());
        Ok(Self { source, closed, to, bounds, copied: CopiedFiles::default() })
    }

    /// Returns the files that were copied so far.
    pub fn copied(&self) -> CopiedFiles {
        self.copied
    }

    /// Copies a file, a link, or a directory with everything in it. Links stay links. Blocks.
    ///
    /// # Errors
    /// The path is not there, is there already in the other directory, or cannot be read or written; or the bounds are reached.
    pub fn copy(&mut self, path: &Path) -> Result<(), ToolError> {
        self.make_above(path)?;
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            self.bounds.check().map_err(|stopped| ToolError::failed(stopped.to_string()))?;
            let real = self.source.real().join(&path);
            if self.closed.hides(&real).is_some() {
                continue;
            }
            let failed = |error| io_error("copy", &path, error);
            let kind = real.symlink_metadata().map_err(failed)?.file_type();
            if kind.is_dir() {
                fs::create_dir(self.to.join(&path)).map_err(failed)?;
                open.extend(self.names_in(&path)?);
            } else if kind.is_symlink() {
                self.copy_link(&path).map_err(failed)?;
            } else if kind.is_file() {
                self.copy_file(&path)?;
            }
        }
        Ok(())
    }

    /// Makes the directories above a path. A link in their place is refused.
    fn make_above(&self, path: &Path) -> Result<(), ToolError> {
        let above = path.parent().unwrap_or(Path::new(""));
        let mut place = self.to.to_owned();
        for part in above.components() {
            let Component::Normal(name) = part else {
                return Err(io_error("copy", path, io::ErrorKind::InvalidInput.into()));
            };
            place.push(name);
            match place.symlink_metadata() {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(io_error("copy", path, io::ErrorKind::NotADirectory.into())),
                Err(_) => fs::create_dir(&place).map_err(|error| io_error("copy", path, error))?,
            }
        }
        Ok(())
    }

    fn names_in(&self, path: &Path) -> Result<Vec<PathBuf>, ToolError> {
        let directory = self.source.list(path)?;
        let failed = |error: rustix::io::Errno| io_error("list", path, error.into());
        let mut names = Vec::new();
        for entry in Dir::read_from(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(path.join(name));
            }
        }
        Ok(names)
    }

    fn copy_link(&mut self, path: &Path) -> io::Result<()> {
        let leads = fs::read_link(self.source.real().join(path))?;
        // It would lead back to the original, which must stay as it is.
        let leads = match leads.strip_prefix(self.source.real()) {
            Ok(inner) => self.to.join(inner),
            Err(_) => leads,
        };
        self.copied.files += 1;
        symlink(leads, self.to.join(path))
    }

    fn copy_file(&mut self, path: &Path) -> Result<(), ToolError> {
        let failed = |error: io::Error| io_error("copy", path, error);
        let mut file = self.source.read(path)?;
        let found = file.metadata().map_err(failed)?;
        let mode = found.permissions().mode() & 0o777;
        let target = File::options().write(true).create_new(true).mode(mode).open(self.to.join(path));
        let mut target = target.map_err(failed)?;
        let is_shared = share_blocks(&file, &target);
        let bytes = if is_shared { found.len() } else { io::copy(&mut file, &mut target).map_err(failed)? };
        // Build tools compare times.
        if let Ok(modified) = found.modified() {
            target.set_times(FileTimes::new().set_modified(modified)).map_err(failed)?;
        }
        self.copied.files += 1;
        self.copied.bytes += bytes;
        self.copied.shared += if is_shared { bytes } else { 0 };
        Ok(())
    }
}

/// Lets a new file share the blocks of another one, where the file system can.
#[cfg(target_os = "linux")]
fn share_blocks(file: &File, target: &File) -> bool {
    rustix::fs::ioctl_ficlone(target, file).is_ok()
}

/// Shares nothing: other systems have other calls for that.
#[cfg(not(target_os = "linux"))]
fn share_blocks(_file: &File, _target: &File) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        directory: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let scene = Self { directory: tempfile::tempdir().unwrap() };
            for name in ["from/a/b", "from/away", "to", "outside"] {
                fs::create_dir_all(scene.at(name)).unwrap();
            }
            scene
        }

        fn at(&self, name: &str) -> PathBuf {
            self.directory.path().canonicalize().unwrap().join(name)
        }

        fn copy(&self, path: &str) -> Result<CopiedFiles, ToolError> {
            let (to, bounds) = (self.at("to"), ScanBounds::default());
            let mut copier = FileCopier::new(&self.at("from"), &to, ClosedPlaces::default(), &bounds)?;
            copier.copy(Path::new(path))?;
            Ok(copier.copied())
        }
    }

    #[test]
    fn directories_are_copied_with_modes_times_and_links() {
        let scene = Scene::new();
        let file = scene.at("from/a/b/one");
        fs::write(&file, "one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_times(FileTimes::new().set_modified(old))
            .unwrap();
        symlink("b/one", scene.at("from/a/near")).unwrap();
        symlink(&file, scene.at("from/a/back")).unwrap();
        let copied = scene.copy("a").unwrap();
        assert_eq!((copied.files, copied.bytes), (3, 3));
        let made = scene.at("to/a/b/one").metadata().unwrap();
        assert_eq!((made.permissions().mode() & 0o777, made.modified().unwrap()), (0o755, old));
        assert_eq!(fs::read_to_string(scene.at("to/a/near")).unwrap(), "one");
        assert_eq!(fs::read_link(scene.at("to/a/back")).unwrap(), scene.at("to/a/b/one"));
        fs::write(scene.at("to/a/back"), "changed").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    }

    #[test]
    fn no_link_leads_out_of_either_directory() {
        let scene = Scene::new();
        fs::write(scene.at("outside/secret"), "s").unwrap();
        symlink(scene.at("outside"), scene.at("from/out")).unwrap();
        // The link itself is copied, not its target.
        scene.copy("out").unwrap();
        assert!(scene.at("to/out").is_symlink());
        assert!(scene.copy("out/secret").is_err());
        assert!(scene.copy("none").is_err());
        assert!(scene.copy("../outside").is_err());
        fs::write(scene.at("from/away/x"), "x").unwrap();
        symlink(scene.at("outside"), scene.at("to/away")).unwrap();
        assert!(scene.copy("away/x").is_err());
        assert!(!scene.at("outside/x").exists());
    }
}
