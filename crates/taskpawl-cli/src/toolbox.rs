//! The tools that calls may name here, and where each comes from.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use taskpawl::model::{AbsentTools, Advice, Hint};
use taskpawl::tools::{CommandTool, Registry, Tool};

use crate::app::App;
use crate::config::OwnTool;
use crate::error::CliError;
use crate::servers::{Lack, McpServers};
use crate::text::nearest;
use crate::{todo_lists, trust};

/// The tools of this program.
#[derive(Debug)]
pub(crate) struct Toolbox {
    registry: Registry,
    described: BTreeMap<String, OwnTool>,
    of_servers: BTreeMap<String, ToolSource>,
    /// Tools that the project describes, which nobody trusts.
    held: BTreeMap<String, OwnTool>,
}

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ToolSource {
    /// This program.
    Builtin,
    /// A file of the configuration.
    File { path: PathBuf },
    /// An MCP server, which a file names.
    Server { server: String, path: PathBuf },
}

impl Toolbox {
    pub(crate) fn of(app: &App) -> Result<Self, CliError> {
        let mut registry = Registry::builtin();
        let (usable, held) = split(app)?;
        for own in &usable {
            registry.register(own.tool.clone()).map_err(taskpawl::OpenError::from)?;
        }
        for tool in todo_lists::tools(app)? {
            registry.register_tested(tool).map_err(taskpawl::OpenError::from)?;
        }
        let mut of_servers = BTreeMap::new();
        for tool in app.servers()?.tools() {
            let name = tool.spec().name.clone();
            registry.register(tool).map_err(taskpawl::OpenError::from)?;
            let path = app.servers()?.file(&name).unwrap_or_default();
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

    /// Returns the tools that cannot be called because nobody trusts the project that describes them.
    pub(crate) fn held(&self) -> impl Iterator<Item = &OwnTool> {
        self.held.values()
    }

    /// Says why no run here has a tool that the project describes.
    pub(crate) fn lack(&self, tool: &str) -> Option<Lack> {
        let file = self.held.get(tool)?.file.display();
        let why = format!("`{file}` of the project describes it, and is not trusted as it is now");
        Some(Lack::new(tool, &why, Advice::Trust {}))
    }

    /// Returns the description of a tool, if it is one that a file describes.
    pub(crate) fn described(&self, name: &str) -> Option<&CommandTool> {
        self.described.get(name).map(|own| &*own.tool)
    }

    /// Returns where a tool comes from that can be called.
    pub(crate) fn source(&self, name: &str) -> ToolSource {
        match self.described.get(name) {
            Some(own) => ToolSource::File { path: own.file.clone() },
            None => self.of_servers.get(name).cloned().unwrap_or(ToolSource::Builtin),
        }
    }

    /// Says that there is no tool of this name, and what may have been meant.
    pub(crate) fn unknown(&self, servers: &McpServers, name: &str) -> Hint {
        let unknown = Hint::new("no tool ").data(name).text(" is known here");
        if let Some(missing) = servers.missing(name) {
            return unknown.text("; ").hint(missing);
        }
        match (self.held.get(name), nearest(name, self.registry.names())) {
            (Some(own), _) => unknown.text("; ").hint(trust::missing(&own.file)),
            (None, Some(near)) => unknown.text("; did you mean ").data(near).text("?"),
            (None, None) => unknown,
        }
    }
}

/// What the command line knows of tools that are not there.
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
}

/// Returns the tools that can be called beside those that the library brings: of to-do lists and of the configuration.
pub(crate) fn usable(app: &App) -> Result<Vec<Arc<dyn Tool>>, CliError> {
    let own = split(app)?.0.into_iter().map(|own| own.tool as Arc<dyn Tool>);
    Ok(own.chain(todo_lists::tools(app)?).chain(app.servers()?.tools()).collect())
}

/// Returns the tools of the configuration: those that can be called, and those that need trust first.
fn split(app: &App) -> Result<(Vec<OwnTool>, Vec<OwnTool>), CliError> {
    let all = app.config()?.own_tools();
    let is_trusted = match (all.iter().find(|own| own.is_of_project()), app.config()?.project_hash()) {
        (Some(own), Some(hash)) => trust::is_given(app, &own.file, hash)?,
        _ => false,
    };
    Ok(all.iter().cloned().partition(|own| is_trusted || !own.is_of_project()))
}
