//! The worktrees as the tools `worktree_commit` and `merge` see them in one call.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use taskpawl_model::command::StartedCall;
use taskpawl_model::task::Hooks;
use taskpawl_model::value::TaskId;
use taskpawl_tools::{
    CallContext, CheckTree, GrantedCall, JoinedWork, Joining, MergeConflict, OpenConflict, RegisteredTool,
    ScanBounds, StagedWork, TaskWorktrees, ToolError, Widening, call_guarded,
};

use super::conflict::{self, Opened};
use super::git::{Git, GitError, GitResult};
use super::tree::{Tip, path_of, remove_tree};
use super::{Placed, RunWorktrees, commit, commit_of, fit, merge};
use crate::remembered::{is_model, widening};

/// The worktrees as one call of a task sees them.
#[derive(Debug)]
pub(super) struct OfTask {
    pub(super) run: Arc<RunWorktrees>,
    pub(super) placed: Option<Arc<Placed>>,
    /// Message of the task's commit.
    pub(super) message: String,
    /// The call.
    pub(super) started: StartedCall,
}

#[async_trait]
impl TaskWorktrees for OfTask {
    fn stage(&self) -> Result<StagedWork, ToolError> {
        let git = self.run.worktrees.git()?;
        let worktree = self.started.spec.worktree.as_ref();
        let has_hooks = worktree.is_some_and(|worktree| worktree.hooks == Hooks::On);
        Ok(commit::stage(&git, &self.placed()?.tree, &self.message, has_hooks)?)
    }

    fn commit(&self, staged: &StagedWork) -> Result<Value, ToolError> {
        let git = self.run.worktrees.git()?;
        Ok(commit::commit(&git, &self.placed()?.tree, &self.message, staged)?)
    }

    fn join(&self, tasks: &[String], into: Option<&str>, resolved: &[String]) -> Result<Joining, ToolError> {
        let git = self.run.worktrees.git()?;
        fit::check(&git, &self.run.worktrees.root)?;
        let tips = self.tips_of(tasks)?;
        Ok(merge::join(&git, &tips, into, resolved)?)
    }

    fn open_conflict(
        &self,
        conflict: &MergeConflict,
        agent: &Value,
        cx: &CallContext,
    ) -> Result<OpenConflict, ToolError> {
        let git = self.run.worktrees.git()?;
        let kit = self.agent()?.tool().kit(agent);
        let fresh = self.beside(&format!("conflict-{}-{}", self.starts(), conflict.number))?;
        let (path, git_dir) = match conflict::open(&git, (&self.beside("conflict")?, fresh), conflict)? {
            Opened::Resolved(commit) => return Ok(OpenConflict::Resolved(commit)),
            Opened::In { tree, git_dir } => (tree, git_dir),
        };
        let repository = vec![git_dir, git.common_dir()?.join("objects")];
        let StartedCall { call, plan, task, sandbox, .. } = &self.started;
        let remembered = self.run.confinement.remembered(GrantedCall {
            plan: plan.as_deref().unwrap_or_default(),
            task: task.as_str(),
            definition: &|| call.spec.definition_hash(),
            kit: kit.as_deref(),
            is_model: is_model(call),
        });
        let widening = widening(sandbox.clone()).and(remembered);
        let tree = self.tree_with_sandbox((path, repository), &widening, cx)?;
        Ok(OpenConflict::Tree(tree))
    }

    async fn call_agent(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        call_guarded(self.agent()?.clone(), cx, args).await
    }

    fn resolve_conflict(&self, conflict: &MergeConflict) -> Result<String, ToolError> {
        Ok(conflict::resolve(&self.run.worktrees.git()?, &self.beside("conflict")?, conflict)?)
    }

    fn forget_conflicts(&self) -> Result<(), ToolError> {
        conflict::forget(&self.beside("check")?)?;
        Ok(conflict::forget(&self.beside("conflict")?)?)
    }

    fn check_tree(&self, joined: &JoinedWork, cx: &CallContext) -> Result<CheckTree, ToolError> {
        let git = self.run.worktrees.git()?;
        let path = self.beside(&format!("check-{}", self.starts()))?;
        merge::make_check_tree(&git, (&self.beside("check")?, &path), &joined.commit)?;
        self.tree_with_sandbox((path, Vec::new()), &Widening::default(), cx)
    }

    fn remove_check_tree(&self, tree: &CheckTree) {
        // A worktree that stays is removed by the next check of the task.
        if let Ok(git) = self.run.worktrees.git() {
            drop(remove_tree(&git, &tree.path));
        }
    }

    fn land(&self, joined: &JoinedWork) -> Result<Value, ToolError> {
        let git = self.run.worktrees.git()?;
        merge::land(&git, joined)?;
        let kept = self.remove_merged(&git, joined)?;
        Ok(merge::result(joined, &kept))
    }
}

impl OfTask {
    fn agent(&self) -> Result<&RegisteredTool, ToolError> {
        self.run.agent.as_ref().ok_or_else(|| {
            ToolError::failed("`onConflict: agent` needs the tool `agent`, which this program does not have")
                .terminal()
        })
    }

    fn plan(&self) -> Option<&str> {
        self.started.plan.as_deref()
    }

    /// Returns the number of starts of the call, by which worktrees of its starts have different places.
    fn starts(&self) -> u32 {
        self.started.call.body.attempts
    }

    /// Returns the path of a worktree for a step of the task's own.
    fn beside(&self, step: &str) -> GitResult<PathBuf> {
        let name = format!("{}~{step}", self.started.task);
        Ok(path_of(self.run.worktrees.base()?, self.plan(), &name))
    }

    fn tree_with_sandbox(
        &self,
        (path, repository): (PathBuf, Vec<PathBuf>),
        widening: &Widening,
        cx: &CallContext,
    ) -> Result<CheckTree, ToolError> {
        let confinement = self.run.confinement.in_worktree(&path, repository);
        let sandbox = confinement.of_call(widening, &ScanBounds::of_call(cx));
        Ok(CheckTree { path, sandbox: sandbox.map_err(ToolError::other)? })
    }

    fn placed(&self) -> Result<&Placed, ToolError> {
        let without = || ToolError::failed("the task has no worktree: give it `worktree: true`").terminal();
        self.placed.as_deref().ok_or_else(without)
    }

    /// Returns the commits of the tasks that a merge names. They are those of its own plan.
    fn tips_of(&self, tasks: &[String]) -> Result<Vec<Tip>, ToolError> {
        let found = self.run.manager.read(|view| {
            let record = view.task(self.started.key)?;
            let names = record.map(|record| record.body.names.clone()).unwrap_or_default();
            tasks
                .iter()
                .map(|id| {
                    let local = id.as_str();
                    let key = match self.plan().and_then(|plan| view.plan(plan).ok().flatten()) {
                        Some(plan) => view.key(plan.stored_id(&local.into()).as_str())?,
                        None => None,
                    };
                    let key = match key {
                        Some(key) => Some(key),
                        None => view.key(names.get(local).map_or(local, TaskId::as_str))?,
                    };
                    Ok((id.clone(), key.map(|key| commit_of(view, key)).transpose()?))
                })
                .collect::<Result<Vec<_>, taskpawl_model::rules::DecideError>>()
        });
        let found = found.map_err(ToolError::other)?;
        found
            .into_iter()
            .map(|(task, tip)| match tip {
                Some(Some(tip)) => Ok(tip),
                Some(None) => Err(ToolError::failed(format!(
                    "task `{task}` has no commit: it needs `worktree: true`, and has to be done before the merge"
                ))),
                None => Err(ToolError::failed(format!("there is no task `{task}`"))),
            })
            .collect()
    }

    /// Removes the worktrees and branches of merged tasks; returns the tasks whose worktrees stay.
    fn remove_merged(&self, git: &Git, joined: &JoinedWork) -> GitResult<Vec<String>> {
        let base = self.run.worktrees.base()?;
        let mut kept = Vec::new();
        for (task, commit) in &joined.tasks {
            let spec = self.run.manager.read(|view| {
                let key = view.key(task)?;
                Ok(key.map(|key| view.task(key)).transpose()?.flatten())
            });
            let record = spec.map_err(|error| GitError::new(error.to_string()))?;
            let Some(record) = record else { continue };
            let path = path_of(base, record.plan.as_deref(), task);
            let keeps = record.spec.worktree.as_ref().is_some_and(|worktree| worktree.keep);
            if keeps || !merge::remove_merged(git, &path, commit)? {
                kept.push(task.clone());
            }
        }
        Ok(kept)
    }
}
