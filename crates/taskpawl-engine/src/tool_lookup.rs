//! Searches for tools that a run needs and its registry lacks.

use std::sync::Arc;

use taskpawl_tools::{Registry, Tool, ToolError, ToolFinder};
use tokio::task::JoinSet;

use crate::executor::Executor;

/// The searches of a run for tools that its registry lacks.
#[derive(Debug)]
pub(crate) struct ToolLookup {
    finder: Option<Arc<dyn ToolFinder>>,
    /// Number of searches that were started.
    count: usize,
    /// Dropped with the run, whose programs end then.
    searches: JoinSet<Result<Vec<Arc<dyn Tool>>, ToolError>>,
}

impl ToolLookup {
    pub(crate) fn new(finder: Option<Arc<dyn ToolFinder>>) -> Self {
        Self { finder, count: 0, searches: JoinSet::new() }
    }

    /// Starts to search for a tool.
    pub(crate) fn look_for(&mut self, name: String, executor: &Executor) {
        let Some(finder) = self.finder.clone() else { return };
        self.count += 1;
        let context = executor.context_of_search(self.count);
        self.searches.spawn(async move {
            let context = context.await.map_err(|error| ToolError::Failed { message: error.to_string() })?;
            context.until_interrupted(finder.find(&name, context.clone())).await?
        });
    }

    /// Returns the result of a search; never, while none runs.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn found(&mut self) -> Result<Vec<Arc<dyn Tool>>, ToolError> {
        match self.searches.join_next().await {
            Some(Ok(found)) => found,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Some(Err(_)) => Ok(Vec::new()),
            None => std::future::pending().await,
        }
    }
}

/// Returns the registry with the tools that were found, and the names that are new.
pub(crate) fn with_found(known: &Registry, found: Vec<Arc<dyn Tool>>) -> (Registry, Vec<String>) {
    let mut registry = known.clone();
    let mut names = Vec::new();
    for tool in found {
        let name = tool.spec().name.clone();
        // A tool is left out whose name is taken or cannot be called.
        if registry.register(tool).is_ok() {
            names.push(name);
        }
    }
    (registry, names)
}
