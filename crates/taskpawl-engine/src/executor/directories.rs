//! Directories that a call works in: its work tree, and those for artifacts.

use std::sync::Arc;

use taskpawl_model::command::{CallEnd, StartedCall};
use taskpawl_tools::{ArtifactDirs, CallContext, Confinement, Widening};

use super::outcome::failed;
use super::run_context::RunContext;
use crate::call_executor::Ticket;
use crate::changes::Changed;
use crate::files_by_git::{CallTree, ReturnedFiles, SentFiles};
use crate::worktrees::git::{GitError, GitResult};

/// The work tree of a call that brought its files.
pub(super) struct SentTree {
    tree: CallTree,
    ticket: Ticket,
    writes: Vec<String>,
}

impl RunContext {
    /// Enters the directory of a call: a work tree for files that came with it, else the worktree of its task, else none of its own.
    pub(super) async fn enter(
        &self,
        started: &StartedCall,
        sent: Option<(SentFiles, Ticket)>,
        context: &mut CallContext,
    ) -> (GitResult<Option<Arc<Confinement>>>, Option<SentTree>) {
        let Some((files, ticket)) = sent else {
            return (self.worktrees.enter(started, context).await, None);
        };
        let Some(trees) = &self.resources.trees else {
            return (Err(GitError::new("there is no remote for files")), None);
        };
        match trees.enter(files, context, &self.resources.confinement).await {
            Ok((tree, confinement)) => {
                let writes = started.spec.writes.clone();
                (Ok(Some(confinement)), Some(SentTree { tree, ticket, writes }))
            }
            Err(error) => (Err(error), None),
        }
    }

    /// Takes the files that a call changed in a work tree of its own. A call whose work is lost has not succeeded.
    pub(super) async fn leave(
        &self,
        tree: Option<SentTree>,
        end: CallEnd,
        changed: &mut Changed,
    ) -> (CallEnd, Option<ReturnedFiles>) {
        let Some(SentTree { tree, ticket, writes }) = tree else { return (end, None) };
        let trees = self.resources.trees.as_ref().expect("BUG: a work tree comes from a repository");
        match trees.leave(tree, ticket, writes).await {
            Ok((files, others)) => {
                changed.files = others;
                (end, files)
            }
            Err(error) if matches!(end, CallEnd::Succeeded(_)) => {
                (failed(error.class, error.message, None), None)
            }
            Err(_) => (end, None),
        }
    }

    /// Returns the directories for the artifacts of a call. A task that goes on after another run stays with the directory in which it
    /// began: its earlier calls left their files there.
    pub(super) async fn artifact_dirs(&self, started: &StartedCall) -> Option<Arc<ArtifactDirs>> {
        let own = self.resources.artifacts.clone()?;
        let store = self.engine.artifacts.clone().filter(|_| started.attempt > 1);
        let Some(store) = store else { return Some(own) };
        let (manager, key) = (self.engine.manager.clone(), started.key);
        let earlier = tokio::task::spawn_blocking(move || store.of_task(&manager, key)).await;
        earlier.ok().flatten().map(Arc::new).or(Some(own))
    }

    /// Returns the access to the directory of another run.
    pub(super) fn widening_for_artifacts(&self, dirs: Option<&ArtifactDirs>) -> Widening {
        let own = self.resources.artifacts.as_deref();
        let other = dirs.filter(|dirs| Some(*dirs) != own);
        Widening { write: other.map(|dirs| dirs.of_run.clone()).into_iter().collect(), ..Widening::default() }
    }
}
