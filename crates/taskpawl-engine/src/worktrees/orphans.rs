//! Worktrees that are there, and those that no task has.

use std::fs;
use std::path::{Path, PathBuf};

use taskpawl_manager::{Error, Manager};
use taskpawl_model::task::Status;

use super::git::{Git, GitResult};
use super::record::{TreeRecord, directories, record_of};
use super::tree::remove_tree;
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

/// Returns the worktrees of a project, which lie below `base`.
pub(super) fn kept(base: &Path, manager: &Manager) -> Result<Vec<KeptWorktree>, Error> {
    let mut kept = Vec::new();
    let plans = directories(base).into_iter();
    for path in plans.flat_map(|plan| directories(&plan)) {
        let Some(record) = TreeRecord::read(&record_of(&path)) else { continue };
        let state = state_of(&record, manager)?;
        let TreeRecord { task, branch, .. } = record;
        kept.push(KeptWorktree { path, task, branch, state });
    }
    Ok(kept)
}

fn state_of(record: &TreeRecord, manager: &Manager) -> Result<WorktreeState, Error> {
    manager.read(|view| {
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
    })
}

/// Removes the worktree of an orphan, and its record. Its branch stays.
pub(super) fn remove(git: &Git, worktree: &KeptWorktree) -> GitResult<()> {
    remove_tree(git, &worktree.path)?;
    // Without its record the directory is none of ours.
    drop(fs::remove_file(record_of(&worktree.path)));
    Ok(())
}
