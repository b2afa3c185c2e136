//! Everything that the calls of a run share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use taskpawl_manager::{Manager, Source};
use taskpawl_model::task::{ActorKind, KeySpace, Origin};
use taskpawl_tools::{ArtifactDirs, CallContext, Confinement, Programs, Vault};
use tokio_util::sync::CancellationToken;

use crate::changes::Writers;
use crate::engine::Engine;
use crate::files_by_git::WorkerTrees;
use crate::output::{KEPT_BYTES, Output};
use crate::spans::RunSpan;
use crate::variables::{RunVariables, VariableValues};
use crate::worktrees::RunWorktrees;

/// Resources that a run holds for its calls.
#[derive(Debug)]
pub(crate) struct RunResources {
    pub(crate) programs: Programs,
    pub(crate) confinement: Arc<Confinement>,
    pub(crate) vault: Vault,
    /// Prefix of the idempotency keys of the calls.
    pub(crate) keys: KeySpace,
    /// Environment variables for the programs of the calls.
    pub(crate) variables: RunVariables,
    /// Values of the variables that arguments name.
    pub(crate) values: VariableValues,
    /// Digests of these values, for approvals and cached results.
    pub(crate) digests: Arc<BTreeMap<String, String>>,
    pub(crate) span: RunSpan,
    /// Directories for artifacts; `None` if the host keeps none.
    pub(crate) artifacts: Option<Arc<ArtifactDirs>>,
    /// The work trees of calls of other processes that bring their files.
    pub(crate) trees: Option<Arc<WorkerTrees>>,
}

/// State that all calls of a run share.
#[derive(Debug)]
pub(super) struct RunContext {
    /// Acts as the run with the kind "agent", for everything that calls add to their plans.
    pub(super) call_manager: Manager,
    pub(super) source: Arc<dyn Source>,
    /// The engine at the start of the run, without tools that are found later.
    pub(super) engine: Engine,
    pub(super) output: Output,
    pub(super) root: PathBuf,
    pub(super) resources: RunResources,
    pub(super) writers: Writers,
    pub(super) worktrees: Arc<RunWorktrees>,
}

impl RunContext {
    pub(super) fn new(engine: &Engine, manager: &Manager, resources: RunResources) -> Self {
        let worktrees = RunWorktrees::new(
            engine.worktrees.clone(),
            Arc::clone(&resources.confinement),
            engine.manager.clone(),
            &engine.tools,
        );
        Self {
            worktrees: Arc::new(worktrees),
            call_manager: manager.clone().with_origin(Origin::Agent).with_kind(ActorKind::Agent),
            source: Arc::clone(engine.manager.source()),
            engine: engine.clone(),
            output: engine.output(),
            root: engine.project.root.clone(),
            resources,
            writers: Writers::default(),
        }
    }

    /// Returns the template for the contexts of calls.
    pub(super) fn context(
        &self,
        actor: &str,
        scope: Option<String>,
        cancel: &CancellationToken,
    ) -> CallContext {
        let mut context = CallContext::new(&self.root, PathBuf::new());
        actor.clone_into(&mut context.actor);
        context.scope = scope;
        context.cancel = cancel.clone();
        // The limit is a bit below that of a result: a tool that cuts its output to this size has room for the other
        // fields, and the result is not cut a second time.
        context.limits.keep_bytes = KEPT_BYTES / 8 * 7;
        context.programs = self.resources.programs.clone();
        context.secrets = Some(self.resources.vault.clone());
        context.data = self.engine.data.clone();
        context
    }
}
