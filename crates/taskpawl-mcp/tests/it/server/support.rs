use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation,
    ProgressNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RoleClient, RunningService};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};
use taskpawl::model::task::Origin;
use taskpawl::tools::{CallOrigin, Policy};
use taskpawl::{SandboxSettings, Taskpawl};
use taskpawl_mcp::{McpServer, ServerOptions};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// A directory for a project, with a store.
pub(crate) struct Scene {
    pub(crate) dir: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("project")).unwrap();
        Self { dir }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.dir.path().join("tasks.db")
    }

    /// Opens the plan like another process.
    pub(crate) fn plans(&self) -> Taskpawl {
        self.open(Policy::default())
    }

    pub(crate) fn open(&self, policy: Policy) -> Taskpawl {
        Taskpawl::builder(self.store().to_str().unwrap())
            .root(self.dir.path().join("project"))
            .actor("somebody")
            .origin(Origin::Mcp)
            .sandbox(SandboxSettings::off())
            .policy(policy)
            .open()
            .unwrap()
    }

    pub(crate) fn server(&self) -> McpServer {
        McpServer::new(self.plans(), ServerOptions::default()).unwrap()
    }

    /// Returns a server whose user allows calls over MCP to run inside the sandbox.
    pub(crate) fn trusting_server(&self) -> McpServer {
        let policy = Policy::default().sandboxing(CallOrigin::Mcp);
        McpServer::new(self.open(policy), ServerOptions::default()).unwrap()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join("project").join(name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Handshake,
    Stateless,
}

pub(crate) const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

impl Era {
    pub(crate) fn mode(self) -> ClientLifecycleMode {
        match self {
            Self::Handshake => ClientLifecycleMode::Initialize,
            Self::Stateless => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
        }
    }
}

/// Notifications that a client has received.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ears {
    pub(crate) progress: Arc<Mutex<Vec<ProgressNotificationParam>>>,
    pub(crate) updated: Arc<Mutex<Vec<String>>>,
    /// Notifies a test that waits for an update.
    pub(crate) heard: Arc<Notify>,
    pub(crate) capabilities: ClientCapabilities,
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::new(self.capabilities.clone(), Implementation::new("test", "1"));
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(progress);
    }

    async fn on_resource_updated(
        &self,
        updated: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.updated.lock().unwrap().push(updated.uri);
        self.heard.notify_one();
    }
}

/// A client with a server of its own. Dropping it ends both.
pub(crate) struct Client<H: ClientHandler = Ears> {
    pub(crate) running: RunningService<RoleClient, H>,
    _serving: JoinSet<()>,
}

pub(crate) async fn connect(server: &McpServer, era: Era) -> Client {
    connect_as(server, era, Ears::default()).await
}

pub(crate) async fn connect_as<H: ClientHandler>(server: &McpServer, era: Era, handler: H) -> Client<H> {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let server = server.clone();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let (input, output) = tokio::io::split(theirs);
        server.serve_on(input, output).await.unwrap();
    });
    let running = handler.serve_with_lifecycle(ours, era.mode()).await.unwrap();
    Client { running, _serving: serving }
}

impl<H: ClientHandler> Client<H> {
    pub(crate) async fn raw(&self, tool: &str, arguments: Value) -> CallToolResult {
        let arguments = arguments.as_object().unwrap().clone();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.running.call_tool(params).await.unwrap()
    }

    /// Calls a tool and expects success.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let max_bytes = arguments["max_bytes"]
            .as_u64()
            .map_or(2_000, |asked| usize::try_from(asked.clamp(500, 16_000)).unwrap());
        let result = self.raw(tool, arguments).await;
        assert_eq!(result.is_error, Some(false), "{tool}: {result:?}");
        let value = result.structured_content.clone().unwrap();
        assert_eq!(value.to_string(), result.content[0].as_text().unwrap().text);
        assert!(value.to_string().len() <= max_bytes, "{value}");
        value
    }

    /// Calls a tool and expects a refusal.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> Value {
        let result = self.raw(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{tool}: {result:?}");
        result.structured_content.unwrap()
    }

    /// Calls a tool. Returns its answer, refusals included; an error of the protocol has `error` alone.
    pub(crate) async fn any(&self, tool: &str, arguments: Value) -> Value {
        let arguments = arguments.as_object().unwrap().clone();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        match self.running.call_tool(params).await {
            Ok(result) => result.structured_content.unwrap_or_default(),
            Err(error) => json!({"error": error.to_string()}),
        }
    }

    /// Starts a run and waits for its end.
    pub(crate) async fn run(&self, mut arguments: Value) -> Value {
        arguments["wait_s"] = json!(45);
        let mut seen = self.call("run_ready", arguments).await;
        while seen["state"] == "running" {
            seen = self.call("run_ready", json!({"run_id": seen["run_id"], "wait_s": 45})).await;
        }
        seen
    }
}
