//! Tools that become known when they are first needed.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::context::CallContext;
use crate::error::ToolError;
use crate::tool::Tool;

/// Finds tools that a run needs and its registry does not have: those of servers, which have to be started before anybody knows
/// what they offer.
#[async_trait]
pub trait ToolFinder: fmt::Debug + Send + Sync {
    /// Returns whether it is worth looking for a tool of this name. It is asked often, and looks nowhere.
    fn may_find(&self, tool: &str) -> bool;

    /// Looks for a tool, and returns all tools that became known by that, with or without the one that is looked for. A run asks
    /// once for each name, and goes on with its other tasks meanwhile; programs that are started end with the run at the latest.
    ///
    /// # Errors
    /// It cannot be told whether there is such a tool. Then the tasks that need it are left as they are.
    async fn find(&self, tool: &str, cx: CallContext) -> Result<Vec<Arc<dyn Tool>>, ToolError>;
}
