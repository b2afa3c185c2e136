//! Backups of a JSON store with a field for their facts, and restoring them.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value;

use super::document::Document;
use super::{JsonFile, Loaded, UPGRADES, upgrade};
use crate::StoreError;
use crate::backup::{BackupContent, BackupNote, kept_path};
use crate::files::{self, LockFile};
use crate::memory::State;

/// The field with the facts about the backup.
const FIELD: &str = "backup";

/// Writes the store at `path` to `file`, with the facts about the backup.
pub(crate) fn back_up(
    path: &Path,
    file: &Path,
    note: &mut dyn FnMut() -> BackupNote,
) -> Result<BackupContent, StoreError> {
    let Loaded { signature, state, mut extra, .. } = load(path)?;
    if signature.is_none() {
        return Err(StoreError::NotAStore { path: path.to_owned() });
    }
    let note = serde_json::to_value(note()).expect("BUG: a note is plain data");
    extra.insert(FIELD.to_owned(), note);
    write(file, &state, extra)?;
    Ok(content_of(&state))
}

/// Reads the facts of a backup, and checks the whole file.
pub(crate) fn read_backup(path: &Path) -> Result<(BackupNote, BackupContent), StoreError> {
    let loaded = load(path)?;
    let note = loaded.extra.get(FIELD).and_then(|note| serde_json::from_value(note.clone()).ok());
    let note = note.ok_or_else(|| StoreError::NotABackup { path: path.to_owned() })?;
    Ok((note, content_of(&loaded.state)))
}

/// Replaces the store at `path` with a backup.
pub(crate) fn restore(from: &Path, path: &Path, fence: u64) -> Result<Option<PathBuf>, StoreError> {
    let Loaded { state, mut extra, .. } = load(from)?;
    extra.remove(FIELD);
    let mut state = State::clone(&state);
    if let Some(keys) = &mut state.key_space {
        keys.fence = fence;
    }
    files::make_directory(files::directory_of(path))?;
    let lock = LockFile::open(path)?;
    lock.lock()?;
    let restored = replace(path, &state, extra);
    lock.unlock();
    restored
}

fn replace(
    path: &Path,
    state: &State,
    extra: serde_json::Map<String, Value>,
) -> Result<Option<PathBuf>, StoreError> {
    let kept = (files::length(path)? > 0).then(|| kept_path(path));
    if let Some(kept) = &kept {
        let content = std::fs::read(path).map_err(|error| StoreError::io("read", path, error))?;
        files::replace(kept, &content)?;
    }
    write(path, state, extra)?;
    Ok(kept)
}

fn write(path: &Path, state: &State, extra: serde_json::Map<String, Value>) -> Result<(), StoreError> {
    let version = upgrade::version(UPGRADES);
    let document = Document::new(state, version, extra).map_err(StoreError::from_view)?;
    files::replace(path, document.to_text().as_bytes())
}

fn load(path: &Path) -> Result<Loaded, StoreError> {
    JsonFile { path: path.to_owned(), upgrades: UPGRADES, cache: Mutex::default() }.load()
}

fn content_of(state: &State) -> BackupContent {
    let project = state.key_space.as_ref().map(|keys| keys.project.clone());
    BackupContent { revision: state.revision, project }
}
