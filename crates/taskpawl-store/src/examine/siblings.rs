//! The files of a store: checks of their modes, and of files that an interrupted write left behind.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::examine::diagnostic::{Diagnostic, Severity};
use crate::files::{self, LockFile};

/// Checks the modes of the store at `path` and of its companion files, and looks for leftovers.
pub(super) fn look(path: &Path) -> Result<Vec<Diagnostic>, StoreError> {
    let mut found = Vec::new();
    for file in siblings(path)? {
        found.extend(wide_mode(&file));
        if is_left_over(path, &file) {
            let message = "an incomplete write left it behind";
            let remedy = "remove it: the original file is intact";
            found.push(Diagnostic::new("left_over", Severity::Repairable, file.display(), message, remedy));
        }
    }
    Ok(found)
}

/// Narrows file modes and removes leftovers, under the write lock, so that no leftover belongs to a running
/// write.
pub(super) fn repair(path: &Path) -> Result<(), StoreError> {
    let lock = LockFile::open(path)?;
    lock.lock()?;
    for file in siblings(path)? {
        if is_left_over(path, &file) {
            fs::remove_file(&file).map_err(|error| StoreError::io("remove", &file, error))?;
        } else {
            narrow_mode(&file)?;
        }
    }
    lock.unlock();
    Ok(())
}

/// Returns a diagnostic if users other than the owner may access a file or directory of a store.
pub fn wide_mode(path: &Path) -> Option<Diagnostic> {
    let data = fs::symlink_metadata(path).ok().filter(|data| data.is_file() || data.is_dir())?;
    let mode = data.mode() & 0o777;
    if mode == mode & 0o700 {
        return None;
    }
    let message = format!("its mode is {mode:04o}: other users can access it");
    let remedy = format!("set its mode to {:04o}", mode & 0o700);
    Some(Diagnostic::new("mode", Severity::Repairable, path.display(), message, remedy))
}

/// Removes the permissions of group and others from a file or directory.
pub fn narrow_mode(path: &Path) -> Result<(), StoreError> {
    if wide_mode(path).is_none() {
        return Ok(());
    }
    let narrow = || {
        let mode = fs::metadata(path)?.mode() & 0o700;
        fs::set_permissions(path, Permissions::from_mode(mode))
    };
    narrow().map_err(|error| StoreError::io("change the mode of", path, error))
}

/// Returns whether `file` is an unfinished copy. Only the suffix after the name of the store counts: the name
/// of the store itself may end in `.bak.new`, and so may unrelated files in its directory.
fn is_left_over(store: &Path, file: &Path) -> bool {
    let bytes = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
    let suffix = bytes(file).strip_prefix(bytes(store).as_slice()).map(<[u8]>::to_vec).unwrap_or_default();
    suffix.ends_with(b".bak.new")
}

/// Returns the files that a store creates beside `path`, including the store itself.
fn siblings(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let directory = files::directory_of(path);
    let fail = |error| StoreError::io("list", directory, error);
    let own = path.file_name().unwrap_or_default().as_encoded_bytes();
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        let suffix = name.as_encoded_bytes().strip_prefix(own);
        if suffix.is_some_and(|suffix| std::str::from_utf8(suffix).is_ok_and(is_companion)) {
            found.push(directory.join(name));
        }
    }
    found.sort();
    Ok(found)
}

/// Returns whether a store creates files with this suffix.
fn is_companion(suffix: &str) -> bool {
    let is_copy = suffix.starts_with(".v") || suffix.starts_with(".mended-");
    let end = suffix.strip_suffix(".new").unwrap_or(suffix).rsplit('.').next();
    ["", "-wal", "-shm", "-journal", ".lock"].contains(&suffix) || is_copy && end == Some("bak")
}
