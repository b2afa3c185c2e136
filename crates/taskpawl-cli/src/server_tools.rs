//! Starts MCP servers to learn the tools that they offer.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use taskpawl::RunOptions;
use taskpawl::model::command::NewTask;
use taskpawl::model::task::{CallSpec, NewCall, TaskSpec};
use taskpawl::store::Location;
use taskpawl::tools::{CallContext, Tool, ToolError, ToolSpec};
use taskpawl_mcp::Servers;

use crate::app::App;
use crate::commands::sandbox::SandboxArgs;
use crate::error::CliError;
use crate::servers::{private_directory, root};

/// Starts all servers to learn their tools.
pub(crate) fn connect(app: &App) -> Result<(), CliError> {
    learn(app, app.servers()?.all())
}

/// Starts servers as a run does, inside a run of one task, so that the same sandbox applies.
fn learn(app: &App, names: BTreeSet<String>) -> Result<(), CliError> {
    if names.is_empty() {
        return Ok(());
    }
    let learner = Arc::new(Learner::new(app.servers()?.shared(), names));
    let files = private_directory("taskpawl-mcp-").map_err(CliError::Runtime)?;
    // A store in memory, so that learning the tools leaves no trace in the plan.
    let plans = app.builder_at(Location::Memory, &root(app)?)?;
    let plans = plans.files(files.path()).tool(Arc::clone(&learner) as Arc<dyn Tool>);
    let plans = app.held(plans, &SandboxArgs::default())?.open()?;
    let call =
        NewCall { id: None, spec: CallSpec { tool_name: LEARN.to_owned(), ..CallSpec::default() }.into() };
    let spec = TaskSpec { name: LEARN.to_owned(), ..TaskSpec::default() };
    let task = plans.blocking().create_task(NewTask { spec, calls: vec![call], ..NewTask::default() })?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    runtime.block_on(async {
        let mut learning = std::pin::pin!(plans.execute_task(task.id.as_str(), RunOptions::default()));
        if let Ok(learned) = tokio::time::timeout(PATIENCE, &mut learning).await {
            return learned;
        }
        let all = learner.names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        app.out().remark(&format!("waiting for MCP servers ({all}): each has 2 minutes until it is ready"));
        learning.await
    })?;
    runtime.shutdown_background();
    for error in learner.failed.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        app.out().warn(&error);
    }
    Ok(())
}

const LEARN: &str = "learn-mcp-servers";

/// The time before a message says that servers are still starting.
const PATIENCE: Duration = Duration::from_secs(5);

/// A tool that starts servers to learn their tools.
#[derive(Debug)]
struct Learner {
    spec: ToolSpec,
    servers: Arc<Servers>,
    names: BTreeSet<String>,
    failed: Mutex<Vec<String>>,
}

impl Learner {
    fn new(servers: Arc<Servers>, names: BTreeSet<String>) -> Self {
        let spec =
            ToolSpec::new(LEARN, "Starts MCP servers to learn their tools.", json!({"type": "object"}));
        Self { spec, servers, names, failed: Mutex::default() }
    }
}

#[async_trait]
impl Tool for Learner {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: CallContext, _: Value) -> Result<Value, ToolError> {
        let failed = self.servers.learn(&self.names, &cx).await;
        let failed = failed.into_iter().map(|(_, error)| error.to_string());
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).extend(failed);
        Ok(Value::Null)
    }
}
