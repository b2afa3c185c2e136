//! The worktree of a task, as the tools for it reach it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::context::CallContext;
use crate::error::ToolError;
use crate::sandbox::CallSandbox;

/// Commits and merges the work of tasks in git. The engine implements it. Its methods block.
pub trait TaskWorktrees: fmt::Debug + Send + Sync {
    /// Commits what the task has changed in its worktree, and returns the commit with its files.
    ///
    /// # Errors
    /// The task has no worktree, or git refuses.
    fn commit(&self) -> Result<Value, ToolError>;

    /// Joins the commits of tasks with a branch, one after the other. No branch and no file changes.
    ///
    /// # Errors
    /// A task has no commit, or its work conflicts with that of the others.
    fn join(&self, tasks: &[String], into: Option<&str>) -> Result<JoinedWork, ToolError>;

    /// Makes a worktree with the joined work, for a check of it.
    ///
    /// # Errors
    /// Git refuses, or the sandbox cannot be set up.
    fn check_tree(&self, joined: &JoinedWork, cx: &CallContext) -> Result<CheckTree, ToolError>;

    /// Removes the worktree of a check.
    fn remove_check_tree(&self, tree: &CheckTree);

    /// Moves the branch to the joined work, and removes the worktrees of the tasks.
    ///
    /// # Errors
    /// The branch has moved meanwhile, or its files have changes that would be overwritten.
    fn land(&self, joined: &JoinedWork) -> Result<Value, ToolError>;
}

/// The work of tasks, joined with a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedWork {
    /// The branch.
    pub into: String,
    /// The commit of the branch.
    pub before: String,
    /// The commit with the work of all tasks.
    pub commit: String,
    /// The tasks, with their commits.
    pub tasks: Vec<(String, String)>,
}

/// A worktree in which a check runs.
#[derive(Debug)]
pub struct CheckTree {
    /// Its directory.
    pub path: PathBuf,
    /// The sandbox of programs in it.
    pub sandbox: CallSandbox,
}

/// Worktrees that clones of a context share.
pub type SharedWorktrees = Arc<dyn TaskWorktrees>;
