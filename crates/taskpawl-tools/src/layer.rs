//! Layers around calls.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::context::CallContext;
use crate::error::ToolError;
use crate::tool::{Tool, ToolSpec};

/// Work around every call, those of built-in tools too: limits, caches, traces, redaction.
///
/// A layer sees arguments that fit the tool, with secrets and expressions filled in, and runs within the deadline of the call. It may change
/// arguments and results, answer itself, or run the call again, which is then one call of the plan.
///
/// ```
/// use taskpawl_tools::{CallContext, CallLayer, Next, ToolError};
///
/// /// Replaces the results of all tools that only read.
/// #[derive(Debug)]
/// struct Canned(serde_json::Value);
///
/// #[async_trait::async_trait]
/// impl CallLayer for Canned {
///     async fn call(&self, cx: CallContext, args: serde_json::Value, next: Next<'_>) -> Result<serde_json::Value, ToolError> {
///         if next.spec().hints.read_only { Ok(self.0.clone()) } else { next.run(cx, args).await }
///     }
/// }
/// ```
#[async_trait]
pub trait CallLayer: Send + Sync + Debug {
    /// Makes one call through this layer.
    async fn call(&self, cx: CallContext, args: Value, next: Next<'_>) -> Result<Value, ToolError>;
}

/// The layers below, and the tool itself. It can run more than once.
#[derive(Clone, Copy, Debug)]
pub struct Next<'a> {
    tool: &'a dyn Tool,
    layers: &'a [Arc<dyn CallLayer>],
}

impl<'a> Next<'a> {
    pub(crate) fn new(tool: &'a dyn Tool, layers: &'a [Arc<dyn CallLayer>]) -> Self {
        Self { tool, layers }
    }

    /// Returns the description of the tool.
    pub fn spec(self) -> &'a ToolSpec {
        self.tool.spec()
    }

    /// Runs the call.
    pub async fn run(self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        match self.layers.split_first() {
            Some((first, layers)) => first.call(cx, args, Self { layers, ..self }).await,
            None => self.tool.call(cx, args).await,
        }
    }
}
