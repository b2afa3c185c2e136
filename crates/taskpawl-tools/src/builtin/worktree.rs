//! The tools for the work of tasks in git: `worktree_commit` and `merge`.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::context::CallContext;
use crate::error::ToolError;
use crate::tool::{Hints, Tool, ToolSpec};
use crate::worktrees::{JoinedWork, SharedWorktrees};

/// A second start finds the work of the first one, and adds nothing.
const REPEATABLE: Hints = Hints { read_only: false, idempotent: true, destructive: false, open_world: false };

/// The tool that ends the work in a worktree. Plans with `worktree` have a call of it.
#[derive(Debug)]
pub(super) struct WorktreeCommit(ToolSpec);

impl WorktreeCommit {
    pub(super) fn new() -> Self {
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let result = json!({
            "type": "object",
            "properties": {
                "commit": {"type": "string"},
                "branch": {"type": "string"},
                "base": {"type": "string", "description": "The commit that the worktree began with."},
                "changed": {"type": "integer", "description": "Number of files that differ from `base`."},
                "files": {"type": "array", "items": {"type": "string"}, "description": "The first 100 of them."},
                "leftOut": {"type": "array", "items": {"type": "string"}, "description": "Files that are not committed: `.env*` and files above 10 MiB."},
            },
            "required": ["commit", "branch", "base", "changed", "files", "leftOut"],
        });
        let description =
            "Commits what a task has changed in its worktree. `worktree` adds the call to a task.";
        Self(ToolSpec::new("worktree_commit", description, schema).with_result(result).with_hints(REPEATABLE))
    }
}

#[async_trait]
impl Tool for WorktreeCommit {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    async fn call(&self, cx: CallContext, _args: Value) -> Result<Value, ToolError> {
        let worktrees = worktrees(&cx)?;
        blocking(move || worktrees.commit()).await
    }
}

/// The tool that merges the work of tasks into a branch.
#[derive(Debug)]
pub(super) struct Merge(ToolSpec);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MergeArgs {
    of: Vec<String>,
    into: Option<String>,
    check: Option<String>,
}

impl Merge {
    pub(super) fn new() -> Self {
        let schema = json!({
            "type": "object",
            "properties": {
                "of": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "description": "Tasks with a worktree that are done, in the order in which they are merged."},
                "into": {"type": "string", "minLength": 1, "description": "The branch; by default the one that the project is on."},
                "check": {"type": "string", "minLength": 1, "description": "A command that runs in the merged files. The branch moves only if it succeeds."},
                "onConflict": {"enum": ["fail"], "description": "The call fails with the files in conflict; the branch stays as it was."},
            },
            "required": ["of"],
            "additionalProperties": false,
        });
        let result = json!({
            "type": "object",
            "properties": {
                "into": {"type": "string"},
                "before": {"type": "string", "description": "The commit of the branch before."},
                "commit": {"type": "string"},
                "tasks": {"type": "object", "description": "The commit of each task."},
                "kept": {"type": "array", "items": {"type": "string"}, "description": "Tasks whose worktrees stay, because of `keep` or of files that are not committed."},
            },
            "required": ["into", "before", "commit", "tasks", "kept"],
        });
        let description = "Merges the work of tasks with a worktree into a branch, all of it or nothing.";
        Self(ToolSpec::new("merge", description, schema).with_result(result).with_hints(REPEATABLE))
    }

    /// Runs the check in a worktree of its own.
    async fn check(
        cx: &CallContext,
        worktrees: &SharedWorktrees,
        joined: &JoinedWork,
        command: &str,
    ) -> Result<(), ToolError> {
        let (own, all, work) = (cx.clone(), Arc::clone(worktrees), joined.clone());
        let tree = blocking(move || all.check_tree(&work, &own)).await?;
        let mut inside = cx.clone();
        (inside.root, inside.dir) = (tree.path.clone(), tree.path.clone());
        inside.sandbox = tree.sandbox.sandbox.clone();
        inside.environment = Arc::clone(&tree.sandbox.environment);
        inside.closed = tree.sandbox.closed.clone();
        let checked = super::shell::Shell::new().call(inside, json!({"command": command})).await;
        let all = Arc::clone(worktrees);
        blocking(move || {
            all.remove_check_tree(&tree);
            Ok(())
        })
        .await?;
        checked.map(drop)
    }
}

#[async_trait]
impl Tool for Merge {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let args: MergeArgs = serde_json::from_value(args)?;
        let worktrees = worktrees(&cx)?;
        let all = Arc::clone(&worktrees);
        let joined = blocking(move || all.join(&args.of, args.into.as_deref())).await?;
        if let Some(command) = &args.check {
            Self::check(&cx, &worktrees, &joined, command).await?;
        }
        blocking(move || worktrees.land(&joined)).await
    }
}

fn worktrees(cx: &CallContext) -> Result<SharedWorktrees, ToolError> {
    let known = cx.worktrees.clone();
    known.ok_or_else(|| ToolError::failed("only a task of a run on this machine has worktrees").terminal())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.map_err(std::io::Error::from)?
}
