//! Worktrees that are there, and those that no task has.

use std::fs;
use std::path::{Path, PathBuf};

use taskpawl_manager::{Error, Manager};
use taskpawl_model::task::Status;

use super::Worktrees;
use super::git::GitResult;
use super::tree::{TreeRecord, record_of, remove_tree};
use crate::private_tmp;

/// A worktree on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptWorktree {
    /// Its directory.
    pub path: PathBuf,
    /// Its task.
    pub task: String,
    /// Its branch.
    pub branch: String,
    /// The reason why it is kept.
    pub state: WorktreeState,
}

impl KeptWorktree {
    /// Returns the bytes that its files use on the disk. Reads all of its directories.
    pub fn disk_bytes(&self) -> u64 {
        private_tmp::size_on_disk(&self.path)
    }
}

/// The use of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorktreeState {
    /// Its task is not done: a retry goes on in it.
    Open,
    /// Its task is done, and not merged.
    Done,
    /// No task has it.
    Orphan,
}

impl Worktrees {
    /// Returns the worktrees that are there.
    pub(crate) fn kept(&self, manager: &Manager) -> Result<Vec<KeptWorktree>, Error> {
        let Some(base) = &self.base else { return Ok(Vec::new()) };
        let mut kept = Vec::new();
        for directory in directories(base) {
            for path in directories(&directory) {
                let Some(record) = TreeRecord::read(&record_of(&path)) else { continue };
                let state = manager.read(|view| {
                    let Some(key) = view.key(&record.task)? else { return Ok(WorktreeState::Orphan) };
                    let Some(task) = view.task(key)? else { return Ok(WorktreeState::Orphan) };
                    let is_of_plan = task.plan.as_deref() == record.plan.as_deref();
                    Ok(match task.body.state.status() {
                        _ if !is_of_plan || task.spec.worktree.is_none() => WorktreeState::Orphan,
                        Status::Done => WorktreeState::Done,
                        Status::Todo
                        | Status::InProgress
                        | Status::Blocked
                        | Status::Failed
                        | Status::Cancelled
                        | Status::Skipped => WorktreeState::Open,
                    })
                })?;
                let TreeRecord { task, branch, .. } = record;
                kept.push(KeptWorktree { path, task, branch, state });
            }
        }
        Ok(kept)
    }

    /// Removes the worktree of an orphan, and its record. Its branch stays.
    pub(crate) fn remove(&self, worktree: &KeptWorktree) -> Result<(), String> {
        let removed: GitResult<()> = self.git().and_then(|git| remove_tree(&git, &worktree.path));
        removed.map_err(|error| error.message)?;
        // Without its record the directory is none of ours.
        drop(fs::remove_file(record_of(&worktree.path)));
        Ok(())
    }
}

pub(super) fn directories(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
