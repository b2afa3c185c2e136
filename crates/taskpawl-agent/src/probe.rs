//! A tool that starts an agent to see if it works.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use taskpawl_tools::{CallContext, Tool, ToolError, ToolSpec};

use crate::connection::Connection;
use crate::conversation::{check_version, initialize_params};
use crate::definition::AgentHost;
use crate::refused::Refused;
use crate::tool::kit;
use crate::words::text;

/// Time limit for the first answer of an agent.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Starts an agent, and returns what it says about itself. Sends no prompt.
#[derive(Debug)]
pub struct AgentProbe {
    spec: ToolSpec,
    host: Arc<dyn AgentHost>,
}

impl AgentProbe {
    /// The name of the tool.
    pub const NAME: &str = "probe-agent";

    /// Makes the tool with the agents of `host`.
    pub fn new(host: Arc<dyn AgentHost>) -> Self {
        let args = json!({
            "type": "object",
            "properties": {"using": {"type": "string"}},
            "required": ["using"],
            "additionalProperties": false,
        });
        let spec = ToolSpec::new(Self::NAME, "Starts an agent to see if it works.", args);
        Self { spec: spec.with_timeout(TIMEOUT), host }
    }
}

#[async_trait]
impl Tool for AgentProbe {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn kit(&self, args: &Value) -> Option<String> {
        kit(&*self.host, args)
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let agent = self.host.agent(args["using"].as_str()).map_err(ToolError::failed)?;
        let mut connection = Connection::open(&agent, &cx, None).await?;
        let answered = cx.until_interrupted(initialize(&mut connection)).await.and_then(|answer| answer);
        connection.close().await;
        let initialized = answered?.map_err(|refused| refused.into_error(&agent.name))?;
        check_version(&agent.name, &initialized)?;
        let (info, capabilities) = (&initialized["agentInfo"], &initialized["agentCapabilities"]);
        let methods = initialized["authMethods"].as_array().map(Vec::as_slice).unwrap_or_default();
        let logins: Vec<&str> = methods.iter().map(|method| text(method, "id")).collect();
        Ok(json!({
            "name": info["name"],
            "version": info["version"],
            "loadSession": capabilities["loadSession"] == true,
            "logins": logins,
        }))
    }
}

async fn initialize(connection: &mut Connection) -> Result<Result<Value, Refused>, ToolError> {
    let id = connection.request("initialize", &initialize_params());
    loop {
        let message = connection.next().await?;
        if message.get("method").is_none() && message["id"] == id {
            return Ok(Refused::or_result(&message));
        }
    }
}
