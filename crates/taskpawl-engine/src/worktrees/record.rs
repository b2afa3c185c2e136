//! The record of a worktree: a file beside it, which other processes read.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use taskpawl_tools::make_private_directories;

use super::git::{GitError, GitResult};

/// The file beside a worktree. It is written before the worktree is made: a run that was killed meanwhile is followed by one that makes
/// the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TreeRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<String>,
    pub(crate) task: String,
    pub(crate) generation: u32,
    pub(crate) branch: String,
    pub(crate) start: String,
    /// Known once the worktree is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) git_dir: Option<PathBuf>,
    /// Files that it got from the project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) given: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ports: Vec<u16>,
}

impl TreeRecord {
    pub(crate) fn read(file: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(file).ok()?).ok()
    }

    pub(super) fn write(&self, file: &Path) -> GitResult<()> {
        write_record(file, self)
    }
}

/// Writes a record in one step, so that a reader never sees half of it.
pub(super) fn write_record(file: &Path, record: &impl Serialize) -> GitResult<()> {
    let failed =
        |error: std::io::Error| GitError::new(format!("failed to write `{}`: {error}", file.display()));
    if let Some(directory) = file.parent() {
        make_private_directories(directory).map_err(failed)?;
    }
    let text = serde_json::to_vec(record).expect("BUG: a record is always valid JSON");
    let part = file.with_extension("part");
    fs::write(&part, text).and_then(|()| fs::rename(&part, file)).map_err(failed)
}

/// Returns the path of the record beside a worktree.
pub(crate) fn record_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

/// Returns the directories in a directory, sorted; none if it cannot be read.
pub(super) fn directories(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
