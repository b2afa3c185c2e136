//! Files in the user's state directory, which programs of calls cannot reach.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::mem;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use taskpawl::tools::{make_private_directories, read_if_there};

use crate::context::Context;

/// Returns the path of a file in the user's state directory; `None` without `HOME` and `XDG_STATE_HOME`.
pub(crate) fn state_file(context: &Context, name: &str) -> Option<PathBuf> {
    let environment = context.environment();
    let home = || environment.path("HOME").map(|home| home.join(".local").join("state"));
    let base = environment.path("XDG_STATE_HOME").filter(|path| path.is_absolute()).or_else(home)?;
    Some(base.join("taskpawl").join(name))
}

/// Creates the directory of a state file, accessible only to the user, and returns it.
pub(crate) fn state_directory_of(path: &Path) -> io::Result<&Path> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    make_private_directories(directory)?;
    Ok(directory)
}

/// Replaces a state file atomically and durably: writes a temporary file, syncs it and renames it.
pub(crate) fn write_state(path: &Path, text: &str) -> io::Result<()> {
    state_directory_of(path)?;
    // The process id keeps parallel commands from writing the same temporary file.
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all())?;
    fs::rename(&new, path)
}

/// Takes the lock beside a state file, and holds it until the returned file is dropped.
pub(crate) fn lock_state(path: &Path) -> io::Result<File> {
    let file = lock_file(&path.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

/// Opens a lock file, and creates it if it is missing.
pub(crate) fn lock_file(path: &Path) -> io::Result<File> {
    state_directory_of(path)?;
    fs::OpenOptions::new().write(true).create(true).truncate(false).open(path)
}

/// Reads a JSON state file of at most `max_bytes`; the default if there is none.
pub(crate) fn read_state<T: DeserializeOwned + Default>(path: &Path, max_bytes: u64) -> io::Result<T> {
    match read_if_there(path, max_bytes)? {
        Some(text) => serde_json::from_str(&text).map_err(Into::into),
        None => Ok(T::default()),
    }
}

/// Changes a JSON state file. The lock keeps two processes from undoing each other's change.
pub(crate) fn change_state<T: DeserializeOwned + Serialize + Default, R>(
    path: &Path,
    max_bytes: u64,
    change: impl FnOnce(&mut T) -> R,
) -> io::Result<R> {
    let lock = lock_state(path)?;
    let mut record = read_state(path, max_bytes)?;
    let result = change(&mut record);
    write_state(path, &serde_json::to_string_pretty(&record)?)?;
    drop(lock);
    Ok(result)
}

/// Changes the entries of one project among those of all. They move behind the others.
pub(crate) fn change_own<T, R>(
    all: &mut Vec<T>,
    is_own: impl FnMut(&T) -> bool,
    change: impl FnOnce(&mut Vec<T>) -> R,
) -> R {
    let (mut own, others): (Vec<_>, Vec<_>) = mem::take(all).into_iter().partition(is_own);
    let result = change(&mut own);
    *all = others.into_iter().chain(own).collect();
    result
}
