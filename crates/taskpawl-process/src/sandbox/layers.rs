//! Private layers over directories such as caches: programs write them, and the directories stay as they are.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, mount};

use super::mounts::copy;
use super::places::{Places, list};
use crate::private::make_private_directories;

/// The most supervisors of a project that have layers at a time.
const MAX_PARTS: u32 = 64;

/// Directories to mount, in place of those that programs must not change.
#[derive(Debug, Default)]
pub(super) struct Layered {
    /// Directories with changes on top, and missing ones.
    pub(super) overlaid: Vec<(PathBuf, OwnedFd)>,
    /// Directories of which programs see their own files alone.
    pub(super) own: Vec<(PathBuf, OwnedFd)>,
}

/// Mounts an overlay on each directory of the profile, and returns copies of these mounts, which stay writable when all else
/// becomes read-only. Must come before that, because the kernel writes the changes through the mount that holds them now.
pub(super) fn make(places: &Places, gaps: &mut Vec<String>) -> Layered {
    let mut layered = Layered::default();
    let Some(source) = &places.layers.source else { return layered };
    let part = match take_part(source) {
        Ok(part) => part,
        Err(error) => {
            gaps.push(format!("{NOT_WRITABLE}: {}: {error}", list(&places.layers.overlaid)));
            return layered;
        }
    };
    let mut failed: Option<(Vec<PathBuf>, io::Error)> = None;
    for path in &places.layers.overlaid {
        match overlay(path, &part) {
            Ok(tree) => layered.overlaid.push((path.clone(), tree)),
            Err(error) => failed.get_or_insert_with(|| (Vec::new(), error)).0.push(path.clone()),
        }
    }
    for path in &places.layers.own {
        match changes(&part, path).and_then(|changes| copy(&changes)) {
            Ok(tree) => layered.own.push((path.clone(), tree)),
            Err(error) => failed.get_or_insert_with(|| (Vec::new(), error)).0.push(path.clone()),
        }
    }
    gaps.extend(failed.map(|(paths, error)| format!("{NOT_WRITABLE}: {}: {error}", list(&paths))));
    layered
}

const NOT_WRITABLE: &str = "no private changes to caches";

/// Returns the first part of the directory for changes that no other supervisor uses. It belongs to this process until it ends.
///
/// The kernel does not say what two overlays with the same changes show to programs.
fn take_part(source: &Path) -> io::Result<PathBuf> {
    for number in 0..MAX_PARTS {
        let part = source.join(number.to_string());
        make_private_directories(&part)?;
        // Not for writing: the mount with a file that is open for writing cannot be made read-only.
        let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::CLOEXEC;
        let lock = File::from(rustix::fs::open(part.join("lock"), flags, Mode::RUSR | Mode::WUSR)?);
        match lock.try_lock() {
            Ok(()) => {
                // Never closed. Programs do not inherit it.
                std::mem::forget(lock);
                return Ok(part);
            }
            Err(std::fs::TryLockError::WouldBlock) => {}
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::other(format!("{MAX_PARTS} other supervisors of this project are running")))
}

/// Returns the directory with the changes to `path`.
fn changes(part: &Path, path: &Path) -> io::Result<PathBuf> {
    let changes = part.join(file_name(path)).join("changes");
    make_private_directories(&changes)?;
    Ok(changes)
}

/// Returns a file name for a path; different paths have different ones.
fn file_name(path: &Path) -> OsString {
    let escaped = path.as_os_str().as_bytes().iter().flat_map(|byte| match byte {
        b'/' => b"%2F".to_vec(),
        b'%' => b"%25".to_vec(),
        // Separators in the options of the overlay.
        b',' | b':' | b'\\' => format!("%{byte:02X}").into_bytes(),
        byte => vec![*byte],
    });
    OsString::from_vec(escaped.collect())
}

/// Returns a directory with changes on top, or the changes alone if it is missing.
fn overlay(path: &Path, part: &Path) -> io::Result<OwnedFd> {
    let changes = changes(part, path)?;
    if !path.exists() {
        return copy(&changes);
    }
    // The kernel's directory for incomplete changes.
    let work = changes.with_file_name("work");
    make_private_directories(&work)?;
    let mut options = Vec::new();
    for (name, directory) in [("lowerdir=", path), (",upperdir=", &changes), (",workdir=", &work)] {
        let bytes = directory.as_os_str().as_bytes();
        if bytes.iter().any(|byte| b",:\\\"".contains(byte)) {
            let problem = "a path with a comma, a colon, a quote or a backslash cannot be overlaid";
            return Err(io::Error::other(problem));
        }
        options.extend_from_slice(name.as_bytes());
        options.extend_from_slice(bytes);
    }
    // Without the privileges of the machine's root, the kernel keeps its notes in attributes of the user.
    options.extend_from_slice(b",userxattr");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("overlay", path, "overlay", flags, CString::new(options)?.as_c_str())?;
    copy(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_supervisor_has_a_part_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let parts = [take_part(dir.path()).unwrap(), take_part(dir.path()).unwrap()];
        assert_eq!(parts, ["0", "1"].map(|name| dir.path().join(name)));
    }

    #[test]
    fn different_paths_have_different_file_names() {
        let name = |path: &str| file_name(Path::new(path)).into_string().unwrap();
        assert_eq!(name("/a/b"), "%2Fa%2Fb");
        assert_eq!(name("/a%2Fb"), "%2Fa%252Fb");
        assert_eq!(name("/a,b"), "%2Fa%2Cb");
    }
}
