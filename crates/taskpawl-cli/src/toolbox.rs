//! The tools that calls may name here, each with its origin.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use taskpawl::model::advice::{Advice, Hint};
use taskpawl::model::rules::AbsentTools;
use taskpawl::tools::{CommandTool, Registry, Tool};

use crate::coding_agents::CodingAgents;
use crate::config::OwnTool;
use crate::context::Context;
use crate::error::CliError;
use crate::servers::{Lack, McpServers};
use crate::text::nearest;
use crate::{todo_lists, trust};

/// The tools of this command.
#[derive(Debug)]
pub(crate) struct Toolbox {
    registry: Registry,
    described: BTreeMap<String, OwnTool>,
    of_servers: BTreeMap<String, ToolSource>,
    /// Tools of the project's file that are not trusted.
    held: BTreeMap<String, OwnTool>,
}

/// The origin of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ToolSource {
    /// The tool is built in.
    Builtin,
    /// A configuration file describes the tool.
    File { path: PathBuf },
    /// An MCP server offers the tool; the file names the server.
    Server { server: String, path: PathBuf },
}

impl Toolbox {
    pub(crate) fn of(context: &Context, servers: &McpServers) -> Result<Self, CliError> {
        let mut registry = Registry::builtin();
        let (usable, held) = split(context)?;
        for own in &usable {
            registry.register(own.tool.clone()).map_err(taskpawl::OpenError::from)?;
        }
        for tool in todo_lists::tools(context)? {
            // Checking their schemas here would cost every command time; a test has already done it.
            registry.register_tested(tool).map_err(taskpawl::OpenError::from)?;
        }
        if let Some(tool) = agent_tool(context)? {
            registry.register(tool).map_err(taskpawl::OpenError::from)?;
        }
        let mut of_servers = BTreeMap::new();
        for tool in servers.tools() {
            let name = tool.spec().name.clone();
            registry.register(tool).map_err(taskpawl::OpenError::from)?;
            let path = servers.file(&name).unwrap_or_default();
            let server = name.split_once('/').map(|(server, _)| server.to_owned()).unwrap_or_default();
            of_servers.insert(name, ToolSource::Server { server, path });
        }
        let by_name = |tools: Vec<OwnTool>| tools.into_iter().map(|own| (own.name.clone(), own)).collect();
        Ok(Self { registry, of_servers, described: by_name(usable), held: by_name(held) })
    }

    /// Returns the tools that can be called.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the tools that cannot be called, because the project's file that describes them is not trusted.
    pub(crate) fn held(&self) -> impl Iterator<Item = &OwnTool> {
        self.held.values()
    }

    /// Explains why no run here has a tool that an untrusted project file describes.
    pub(crate) fn lack(&self, tool: &str) -> Option<Lack> {
        let file = self.held.get(tool)?.file.display();
        let why = format!("`{file}` of the project describes it, and is not trusted as it is now");
        Some(Lack::new(tool, &why, Advice::Trust {}))
    }

    /// Returns the description of a tool from a configuration file.
    pub(crate) fn described(&self, name: &str) -> Option<&CommandTool> {
        self.described.get(name).map(|own| &*own.tool)
    }

    /// Returns the origin of a tool that can be called.
    pub(crate) fn source(&self, name: &str) -> ToolSource {
        match self.described.get(name) {
            Some(own) => ToolSource::File { path: own.file.clone() },
            None => self.of_servers.get(name).cloned().unwrap_or(ToolSource::Builtin),
        }
    }

    /// Returns the tool that an unknown name probably means.
    pub(crate) fn meant(&self, name: &str) -> Option<&str> {
        let elsewhere = known_elsewhere(name).filter(|tool| self.registry.get(tool).is_some());
        elsewhere.or_else(|| nearest(name, self.registry.names()))
    }

    /// Returns a hint for an unknown name, with the probable meaning.
    pub(crate) fn unknown(&self, servers: &McpServers, name: &str) -> Hint {
        let unknown = Hint::new("no tool ").data(name).text(" is known here");
        if let Some(missing) = servers.missing(name) {
            return unknown.text("; ").hint(missing);
        }
        match (self.held.get(name), self.meant(name)) {
            (Some(own), _) => unknown.text("; ").hint(trust::missing(&own.file)),
            (None, Some(near)) => unknown.text("; did you mean ").data(near).text("?"),
            (None, None) => unknown,
        }
    }
}

/// Names of tools in other programs, each with the tool that does the same here.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["bash", "sh", "run", "run_command", "execute", "terminal"], "shell"),
    (&["http", "https", "fetch", "curl", "web_fetch", "webfetch", "request"], "http_request"),
    (&["read", "cat", "open"], "read_file"),
    (&["write", "create_file", "save"], "write_file"),
    (&["edit", "str_replace", "patch", "replace"], "edit_file"),
    (&["ls", "dir", "list"], "list_dir"),
    (&["find"], "glob"),
    (&["search", "rg"], "grep"),
    (&["echo", "print"], "log"),
    (&["delay"], "sleep"),
];

fn known_elsewhere(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    ELSEWHERE.iter().find(|(names, _)| names.contains(&name.as_str())).map(|(_, tool)| *tool)
}

/// Explains tools that no run here has, for the model.
#[derive(Debug)]
pub(crate) struct Absent {
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) servers: Arc<McpServers>,
}

impl AbsentTools for Absent {
    fn unknown(&self, name: &str) -> Hint {
        self.toolbox.unknown(&self.servers, name)
    }

    fn lack(&self, name: &str) -> Option<String> {
        let lack = self.toolbox.lack(name).or_else(|| self.servers.lack(name));
        lack.map(|lack| lack.text)
    }

    fn may_come(&self, name: &str) -> bool {
        self.servers.finder().may_find(name) || self.toolbox.lack(name).is_some()
    }
}

/// Returns the callable tools beyond the built-in ones: of the configuration, of to-do lists and of MCP servers.
pub(crate) fn usable(context: &Context, servers: &McpServers) -> Result<Vec<Arc<dyn Tool>>, CliError> {
    let own = split(context)?.0.into_iter().map(|own| own.tool as Arc<dyn Tool>);
    Ok(own.chain(agent_tool(context)?).chain(todo_lists::tools(context)?).chain(servers.tools()).collect())
}

/// Returns the tool for coding agents, unless the configuration describes a tool of this name: it may be older.
fn agent_tool(context: &Context) -> Result<Option<Arc<dyn Tool>>, CliError> {
    let tool = CodingAgents::tool(context)?;
    let is_described = context.config()?.own_tools().iter().any(|own| own.name == tool.spec().name);
    Ok((!is_described).then_some(tool))
}

/// Returns the tools of the configuration, divided into trusted and untrusted ones.
fn split(context: &Context) -> Result<(Vec<OwnTool>, Vec<OwnTool>), CliError> {
    let all = context.config()?.own_tools();
    // All tools of a project come from its one configuration file, so trust in that decides for all of them.
    let is_trusted = match (all.iter().find(|own| own.is_of_project()), context.config()?.project_hash()) {
        (Some(own), Some(hash)) => trust::is_given(context, &own.file, hash)?,
        _ => false,
    };
    Ok(all.iter().cloned().partition(|own| is_trusted || !own.is_of_project()))
}
