//! The tool that ends the work in a worktree: `worktree_commit`.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use taskpawl_process::Sandbox;

use super::exec::{Options, run};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::tool::{Hints, Tool, ToolSpec};
use crate::worktrees::{HookedCommit, SharedWorktrees};

/// A second start finds the work of the first one, and adds nothing.
pub(super) const REPEATABLE: Hints =
    Hints { read_only: false, idempotent: true, destructive: false, open_world: false };

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
            "Commits the changes of a task in its worktree. `worktree` adds the call to a task.";
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
        let all = Arc::clone(&worktrees);
        let staged = blocking(move || all.stage()).await?;
        if let Some(hooked) = &staged.hooked {
            check_readable(&cx.sandbox, &hooked.directory)?;
            let HookedCommit { argv, env, .. } = hooked.clone();
            let options = Options::new(None, env, None, false, vec![0]);
            let committed = run(&cx, "git commit with hooks", argv, options).await;
            committed.map_err(|error| error.with_class("hook"))?;
        }
        blocking(move || worktrees.commit(&staged)).await
    }
}

/// Refuses hooks that programs of the call cannot read: git would skip them without a word.
fn check_readable(sandbox: &Sandbox, hooks: &Path) -> Result<(), ToolError> {
    let Sandbox::On(profile) = sandbox else { return Ok(()) };
    let mut open = profile.read.iter().chain(&profile.write).filter(|path| !profile.emptied.contains(path));
    if open.any(|path| hooks.starts_with(path)) {
        return Ok(());
    }
    let message = format!(
        "the hooks of the repository are in `{}`, which programs may not read: list it in `read` in `[sandbox]` of the configuration, or write `worktree: {{hooks: off}}`",
        hooks.display()
    );
    Err(ToolError::failed(message).with_class("hook").terminal())
}

pub(super) fn worktrees(cx: &CallContext) -> Result<SharedWorktrees, ToolError> {
    let known = cx.worktrees.clone();
    known.ok_or_else(|| ToolError::failed("only a task of a run on this machine has worktrees").terminal())
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.map_err(std::io::Error::from)?
}
