//! Searches for tools that a run needs and the registry does not have, while the run continues.

use std::collections::BTreeSet;
use std::sync::Arc;

use taskpawl_tools::{Registry, Tool, ToolError, ToolFinder};
use tokio::task::JoinSet;

use crate::executor::Executor;

/// The searches of a run, running and finished.
#[derive(Debug)]
pub(crate) struct Finding {
    finder: Option<Arc<dyn ToolFinder>>,
    /// Names that were searched for. Each name is searched once per run.
    asked: BTreeSet<String>,
    /// Dropping the set with the run cancels the searches, and with them their programs.
    searches: JoinSet<Result<Vec<Arc<dyn Tool>>, ToolError>>,
}

impl Finding {
    pub(crate) fn new(finder: Option<Arc<dyn ToolFinder>>) -> Self {
        Self { finder, asked: BTreeSet::new(), searches: JoinSet::new() }
    }

    /// Starts a search for each tool that the finder may know.
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

    /// Returns whether a search is running.
    pub(crate) fn is_looking(&self) -> bool {
        !self.searches.is_empty()
    }

    /// Returns the tools of the next search that ends; never, if no search is running.
    ///
    /// # Cancel safety
    /// No result is lost when the future is dropped.
    pub(crate) async fn found(&mut self) -> Result<Vec<Arc<dyn Tool>>, ToolError> {
        match self.searches.join_next().await {
            Some(Ok(found)) => found,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Some(Err(_)) => Ok(Vec::new()),
            None => std::future::pending().await,
        }
    }
}

/// Returns a registry extended by `found`, and the names that are new in it.
pub(crate) fn with_found(known: &Registry, found: Vec<Arc<dyn Tool>>) -> (Registry, Vec<String>) {
    let mut registry = known.clone();
    let mut names = Vec::new();
    for tool in found {
        let name = tool.spec().name.clone();
        // Tools with an invalid name or with a name that is already taken are ignored.
        if registry.register(tool).is_ok() {
            names.push(name);
        }
    }
    (registry, names)
}
