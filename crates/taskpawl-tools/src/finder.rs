//! Tools that are discovered on first use.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::context::CallContext;
use crate::error::ToolError;
use crate::tool::Tool;

/// Discovers tools that a run needs and its registry lacks: those of servers, which must be started before their tools
/// are known.
#[async_trait]
pub trait ToolFinder: fmt::Debug + Send + Sync {
    /// Returns whether a search for a tool of this name can succeed. It is called often and does no I/O.
    fn may_find(&self, tool: &str) -> bool;

    /// Searches for a tool, and returns all tools that were discovered on the way, possibly without the wanted one.
    ///
    /// A run calls this once for each name and continues with other tasks in the meantime. Programs started by it end
    /// with the run at the latest.
    ///
    /// # Errors
    /// The existence of the tool cannot be determined. The tasks that need it then stay unchanged.
    async fn find(&self, tool: &str, cx: CallContext) -> Result<Vec<Arc<dyn Tool>>, ToolError>;
}
