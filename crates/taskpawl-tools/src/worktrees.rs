//! The worktree of a task, as the tools for it reach it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::context::CallContext;
use crate::error::ToolError;
use crate::sandbox::CallSandbox;

/// Commits and merges the work of tasks in git. The engine implements it. Its methods block, except those that are async.
#[async_trait]
pub trait TaskWorktrees: fmt::Debug + Send + Sync {
    /// Takes what the task has changed in its worktree into the index.
    ///
    /// # Errors
    /// The task has no worktree, or git refuses.
    fn stage(&self) -> Result<StagedWork, ToolError>;

    /// Commits the index, unless a program did that already, and returns the commit with its files. Hooks do not run.
    ///
    /// # Errors
    /// Git refuses, or the program with the hooks has left the work without a commit.
    fn commit(&self, staged: &StagedWork) -> Result<Value, ToolError>;

    /// Joins the commits of tasks with a branch, one after the other. No branch and no file changes. `resolved` has a merge for each
    /// conflict so far, as the name of a branch or a commit.
    ///
    /// # Errors
    /// A task has no commit, or git refuses.
    fn join(&self, tasks: &[String], into: Option<&str>, resolved: &[String]) -> Result<Joining, ToolError>;

    /// Makes a worktree in the middle of a merge, with the files in conflict, or returns the one that is there from an earlier start.
    /// Its sandbox has what a call of the tool `agent` with the arguments `agent` needs.
    ///
    /// # Errors
    /// The host has no agents, git refuses, or the sandbox cannot be set up.
    fn open_conflict(
        &self,
        conflict: &MergeConflict,
        agent: &Value,
        cx: &CallContext,
    ) -> Result<OpenConflict, ToolError>;

    /// Calls the tool `agent`.
    ///
    /// # Errors
    /// The host has no agents, or the call fails.
    async fn call_agent(&self, cx: CallContext, args: Value) -> Result<Value, ToolError>;

    /// Returns a merge commit with the files of such a worktree, and removes it.
    ///
    /// # Errors
    /// A file still has conflict markers, or git refuses.
    fn resolve_conflict(&self, conflict: &MergeConflict) -> Result<String, ToolError>;

    /// Forgets how conflicts of the call were resolved.
    ///
    /// # Errors
    /// A file cannot be removed.
    fn forget_conflicts(&self) -> Result<(), ToolError>;

    /// Makes a worktree with the joined work, for a check of it.
    ///
    /// # Errors
    /// Git refuses, or the sandbox cannot be set up.
    fn check_tree(&self, joined: &JoinedWork, cx: &CallContext) -> Result<CheckTree, ToolError>;

    /// Removes the worktree of a check or a conflict.
    fn remove_check_tree(&self, tree: &CheckTree);

    /// Moves the branch to the joined work, and removes the worktrees of the tasks.
    ///
    /// # Errors
    /// The branch has moved meanwhile, or its files have changes that would be overwritten.
    fn land(&self, joined: &JoinedWork) -> Result<Value, ToolError>;
}

/// The work of a task in the index of its worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StagedWork {
    /// Files that are not committed.
    pub left_out: Vec<String>,
    /// The program that commits the work, where the repository has hooks for commits.
    pub hooked: Option<HookedCommit>,
}

/// A commit with the hooks of the repository. Its program runs in the sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookedCommit {
    /// The program with its arguments.
    pub argv: Vec<String>,
    /// Its environment variables: the author.
    pub env: BTreeMap<String, String>,
    /// The directory with the hooks.
    pub directory: PathBuf,
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

/// The result of joining the work of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joining {
    /// All of it is joined.
    Whole(JoinedWork),
    /// The work of one task is in conflict with what was joined before it.
    Conflict(MergeConflict),
}

/// Work that git cannot merge by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflict {
    /// Number of conflicts that are resolved before it.
    pub number: usize,
    /// The branch.
    pub into: String,
    /// The task.
    pub task: String,
    /// The commit with the work so far.
    pub ours: String,
    /// The commit of the task.
    pub theirs: String,
    /// The files.
    pub files: Vec<String>,
    /// Lower-case fragment that names the task and its files.
    pub message: String,
    /// Reason why the given merge is not one, as a lower-case fragment.
    pub problem: Option<String>,
}

/// The place of a conflict.
#[derive(Debug)]
pub enum OpenConflict {
    /// It is resolved in this commit.
    Resolved(String),
    /// Its files are in this worktree.
    Tree(CheckTree),
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
