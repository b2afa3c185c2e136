//! Tools that a run needs and nobody has registered: they are looked for while it goes on.

use std::collections::BTreeSet;
use std::sync::Arc;

use taskpawl_tools::{Registry, Tool, ToolError, ToolFinder};
use tokio::task::JoinSet;

use crate::executor::Executor;

/// What is looked for in a run, and what was.
#[derive(Debug)]
pub(crate) struct Finding {
    finder: Option<Arc<dyn ToolFinder>>,
    /// The names that were asked for: each is once.
    asked: BTreeSet<String>,
    /// Dropped with the run, whose programs end then.
    searches: JoinSet<Result<Vec<Arc<dyn Tool>>, ToolError>>,
}

impl Finding {
    pub(crate) fn new(finder: Option<Arc<dyn ToolFinder>>) -> Self {
        Self { finder, asked: BTreeSet::new(), searches: JoinSet::new() }
    }

    /// Begins to look for tools, where there is hope.
    pub(crate) fn look_for(&mut self, names: impl IntoIterator<Item = String>, executor: &Executor) {
        let Some(finder) = &self.finder else { return };
        for name in names {
            if finder.may_find(&name) && self.asked.insert(name.clone()) {
                let (finder, context) = (Arc::clone(finder), executor.context_of_search(self.asked.len()));
                self.searches.spawn(async move {
                    let context =
                        context.await.map_err(|error| ToolError::Failed { message: error.to_string() })?;
                    context.until_interrupted(finder.find(&name, context.clone())).await?
                });
            }
        }
    }

    /// Returns whether something is being looked for.
    pub(crate) fn is_looking(&self) -> bool {
        !self.searches.is_empty()
    }

    /// Returns what a search has found; never, while nothing is looked for.
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

/// Returns the tools with those that were found, and the names that are new.
pub(crate) fn with_found(known: &Registry, found: Vec<Arc<dyn Tool>>) -> (Registry, Vec<String>) {
    let mut registry = known.clone();
    let mut names = Vec::new();
    for tool in found {
        let name = tool.spec().name.clone();
        // What has no name that can be called, or is known, is left out.
        if registry.register(tool).is_ok() {
            names.push(name);
        }
    }
    (registry, names)
}
