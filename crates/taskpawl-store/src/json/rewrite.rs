//! Rewrites the texts of a JSON store.

use std::path::Path;
use std::sync::Mutex;

use super::{JsonFile, UPGRADES, load, timestamp};
use crate::StoreError;
use crate::files::{self, LockFile};
use crate::text_change::{Check, TextChange, spoilt};

/// Rewrites the file at `path`, and returns 1 if it has changed.
pub(crate) fn rewrite(path: &Path, check: Check<'_>, change: TextChange<'_>) -> Result<u64, StoreError> {
    if files::length(path)? == 0 {
        return Ok(0);
    }
    let lock = LockFile::open(path)?;
    lock.lock()?;
    let done = rewrite_locked(path, check, change);
    lock.unlock();
    done
}

fn rewrite_locked(path: &Path, check: Check<'_>, change: TextChange<'_>) -> Result<u64, StoreError> {
    let file = JsonFile { path: path.to_owned(), upgrades: UPGRADES, cache: Mutex::default() };
    check(&*file.load()?.state)?;
    let Some(text) = changed(path, change)? else { return Ok(0) };
    // A value that is a word of the format, such as a name of a field, cannot be replaced.
    let (mut document, _) = file.parse(text.as_bytes()).map_err(|error| spoilt(path, &error.to_string()))?;
    load::state_of(&mut document, timestamp(None)).map_err(|detail| spoilt(path, &detail))?;
    files::replace(path, text.as_bytes())?;
    Ok(1)
}

/// Rewrites a copy of a store, of any version.
pub(crate) fn rewrite_copy(path: &Path, change: TextChange<'_>) -> Result<u64, StoreError> {
    let Some(text) = changed(path, change)? else { return Ok(0) };
    files::replace(path, text.as_bytes())?;
    Ok(1)
}

fn changed(path: &Path, change: TextChange<'_>) -> Result<Option<String>, StoreError> {
    let text = files::read_text(path).map_err(|error| StoreError::io("read", path, error))?;
    Ok(change(&text))
}
