//! A tool of a server as one of ours.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use taskpawl::tools::{CallContext, Tool, ToolError, ToolSpec};

use super::catalogue::Entry;
use super::pool::Server;
use super::result::result_of;

#[derive(Debug)]
pub(super) struct McpTool {
    spec: ToolSpec,
    /// What the server calls it.
    name: String,
    server: Arc<Server>,
}

impl McpTool {
    pub(super) fn new(server: &Arc<Server>, entry: &Entry) -> Self {
        let mut spec = entry.spec(format!("{}/{}", server.config.name, entry.name));
        spec.timeout = server.config.timeout;
        Self { spec, name: entry.name.clone(), server: Arc::clone(server) }
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let Value::Object(args) = args else {
            return Err(ToolError::InvalidArgs {
                tool: self.spec.name.clone(),
                field: "args".to_owned(),
                problem: "has to be an object".to_owned(),
            });
        };
        let answer = self.server.call(&cx, &self.spec.name, &self.name, args).await?;
        result_of(&self.spec.name, answer.result, answer.hint.as_deref())
    }

    fn is_foreign(&self) -> bool {
        true
    }
}
