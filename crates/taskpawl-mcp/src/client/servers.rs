use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use taskpawl::tools::{CallContext, Tool, ToolError, ToolFinder};

use super::config::{ServerConfig, Variables};
use super::pool::Server;
use super::tool::McpTool;

/// The servers of all configuration files.
#[derive(Debug, Default)]
pub struct Servers(Vec<Arc<Server>>);

/// Settings for all servers.
#[non_exhaustive]
pub struct ServersOptions {
    /// The directory of the saved catalogues. Without it each server is asked for its tools in each process.
    pub cache: Option<PathBuf>,
    /// Looks up environment variables: those in configuration files, and those that every server gets.
    pub variables: Arc<Variables>,
}

impl ServersOptions {
    /// Returns options without a cache.
    pub fn new(variables: Arc<Variables>) -> Self {
        Self { cache: None, variables }
    }

    /// Sets the directory of the saved catalogues.
    #[must_use]
    pub fn with_cache(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache = Some(directory.into());
        self
    }
}

impl fmt::Debug for ServersOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServersOptions").field("cache", &self.cache).finish_non_exhaustive()
    }
}

/// The known state of a server.
#[derive(Debug)]
#[non_exhaustive]
pub struct ServerState<'s> {
    /// Its configuration.
    pub config: &'s ServerConfig,
    /// Number of tools that it offers; `None` if it never ran with this configuration.
    pub tools: Option<usize>,
    /// Tools whose names cannot be used in a plan.
    pub unusable: Vec<String>,
    /// The reason why its last start failed; `None` if it succeeded, or was never tried.
    pub problem: Option<String>,
}

impl Servers {
    /// Creates the servers. The first of two with the same name counts. Saved catalogues are read, and no server is
    /// started.
    pub fn new(configs: Vec<ServerConfig>, options: &ServersOptions) -> Self {
        let mut names = BTreeSet::new();
        let first = configs.into_iter().filter(|config| names.insert(config.name.clone()));
        let server =
            |config| Arc::new(Server::new(config, Arc::clone(&options.variables), options.cache.clone()));
        Self(first.map(server).collect())
    }

    /// Returns the tools of all servers that have ever run with their current configuration.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.iter().flat_map(tools_of).collect()
    }

    /// Returns the known state of each server.
    pub fn states(&self) -> Vec<ServerState<'_>> {
        self.0.iter().map(|server| state(server)).collect()
    }

    /// Returns the server of a tool by the tool's name, even if the tool is not known.
    pub fn of_tool(&self, tool: &str) -> Option<ServerState<'_>> {
        self.server(tool).map(state)
    }

    fn server(&self, tool: &str) -> Option<&Arc<Server>> {
        let (name, _) = tool.split_once('/')?;
        self.0.iter().find(|server| server.config.name == name)
    }

    /// Starts the servers with these names in parallel, to learn their tools. Returns those that failed. The servers
    /// end when `cx.programs` are closed.
    pub async fn learn(&self, names: &BTreeSet<String>, cx: &CallContext) -> Vec<(String, ToolError)> {
        let wanted = self.0.iter().filter(|server| names.contains(&server.config.name));
        let learnt = join_all(wanted.map(|server| async {
            // Each server gets its own files for its output.
            let mut cx = cx.clone();
            cx.output.as_mut_os_string().push(format!("-{}", server.config.name));
            let failed = cx.until_interrupted(server.learn(&cx)).await.and_then(|learnt| learnt).err()?;
            Some((server.config.name.clone(), failed))
        }));
        learnt.await.into_iter().flatten().collect()
    }
}

/// Tool lookup starts the server of a missing tool. If it runs, it is asked for its tools again.
#[async_trait]
impl ToolFinder for Servers {
    fn may_find(&self, tool: &str) -> bool {
        let own = tool.split_once('/').map(|(_, own)| own);
        let offers =
            |server: &Arc<Server>| own.is_some_and(|own| server.config.offers(own) && is_usable(own));
        self.server(tool).is_some_and(offers)
    }

    async fn find(&self, tool: &str, cx: CallContext) -> Result<Vec<Arc<dyn Tool>>, ToolError> {
        let Some(server) = self.server(tool) else { return Ok(Vec::new()) };
        server.learn(&cx).await?;
        Ok(tools_of(server))
    }
}

fn tools_of(server: &Arc<Server>) -> Vec<Arc<dyn Tool>> {
    let known = server.known();
    let entries = known.iter().flat_map(|catalogue| &catalogue.tools);
    let mut names = BTreeSet::new();
    let usable = entries.filter(|entry| {
        server.config.offers(&entry.name) && is_usable(&entry.name) && names.insert(&entry.name)
    });
    usable.map(|entry| Arc::new(McpTool::new(server, entry)) as Arc<dyn Tool>).collect()
}

fn state(server: &Arc<Server>) -> ServerState<'_> {
    let known = server.known();
    let names = known.iter().flat_map(|catalogue| &catalogue.tools).map(|entry| &entry.name);
    let unusable = names.filter(|name| !is_usable(name)).cloned().collect();
    let tools = known.is_some().then(|| tools_of(server).len());
    ServerState { config: &server.config, tools, unusable, problem: server.problem() }
}

/// Returns whether a tool's name can follow the name of a server.
fn is_usable(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte))
}
