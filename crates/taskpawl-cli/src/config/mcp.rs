//! MCP servers of the configuration, and the list of other programs' files that name servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use taskpawl::tools::Widening;

use super::document::Document;
use super::error::ConfigError;
use super::setting::{Layer, Settings};

/// The settings of MCP servers from all files.
#[derive(Debug, Default)]
pub(crate) struct McpConfig {
    /// Files of other programs, with the path as written.
    files: Vec<(String, Layer)>,
    servers: Vec<NamedServer>,
}

/// A server that a configuration file of taskpawl names.
#[derive(Debug, Clone)]
pub(crate) struct NamedServer {
    pub(crate) name: String,
    /// The server in the form that other programs use; `None` if the entry only sets the sandbox of a server from
    /// another file.
    pub(crate) value: Option<Value>,
    pub(crate) file: PathBuf,
    pub(crate) sandbox: Widening,
    layer: Layer,
}

impl McpConfig {
    /// Reads the MCP servers, and the list of other programs' files that name MCP servers.
    pub(super) fn read(
        &mut self,
        document: &Document<'_>,
        configs: Option<Vec<String>>,
        servers: BTreeMap<String, Value>,
        settings: &mut Settings,
    ) -> Result<(), ConfigError> {
        if let Some(list) = configs {
            let shown = json!(list).to_string();
            settings.note("mcp.configs".to_owned(), shown, document.origin());
            self.files.extend(list.into_iter().map(|file| (file, document.layer)));
        }
        for (name, value) in servers {
            let full = format!("mcpServers.{name}");
            let server = server(&name, value, document.path, document.layer)
                .map_err(|problem| document.problem(&["mcpServers", &name], full.clone(), problem))?;
            settings.note(full, server.shown(), document.origin());
            self.servers.push(server);
        }
        Ok(())
    }

    /// Returns the files of other programs, each with `true` if the project's file lists it.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, bool)> {
        self.files.iter().map(|(file, layer)| (&**file, *layer == Layer::Project))
    }

    /// Returns the servers, the user's first. The first of a name is used, so a project cannot redefine a server of
    /// the user.
    pub(crate) fn servers(&self) -> Vec<&NamedServer> {
        let (project, user): (Vec<_>, Vec<_>) =
            self.servers.iter().partition(|server| server.is_of_project());
        user.into_iter().chain(project).collect()
    }
}

impl NamedServer {
    /// Returns whether the project's file names the server.
    pub(crate) fn is_of_project(&self) -> bool {
        self.layer == Layer::Project
    }

    /// Returns the command or the URL. Arguments and headers are left out, because they may be secret.
    fn shown(&self) -> String {
        let value = self.value.as_ref();
        let of = |name: &str| value.and_then(|value| value.get(name)?.as_str());
        of("command").or_else(|| of("url")).unwrap_or("sandbox").to_owned()
    }
}

/// Reads the entry `[mcpServers.NAME]`. The error completes the sentence "`mcpServers.NAME` …".
fn server(name: &str, mut value: Value, file: &Path, layer: Layer) -> Result<NamedServer, String> {
    let fields =
        value.as_object_mut().ok_or("has to be a table such as { command = \"uvx\", args = [\"x\"] }")?;
    let sandbox = match fields.remove("sandbox") {
        Some(_) if layer == Layer::Project => {
            return Err("widens its sandbox, which only your own file can do".to_owned());
        }
        Some(sandbox) => widening(&sandbox)?,
        None => Widening::default(),
    };
    // An entry of the user with nothing but `sandbox` widens the sandbox of a server that another file defines.
    let is_overlay = fields.is_empty() && layer == Layer::User;
    let value = if is_overlay { None } else { Some(value) };
    if let Some(value) = &value {
        taskpawl_mcp::server_of(name, file, value)
            .map_err(|problem| format!("is wrong: {}", problem.problem))?;
    }
    Ok(NamedServer { name: name.to_owned(), value, file: file.to_owned(), sandbox, layer })
}

/// The table `sandbox` of a server.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wider {
    net: bool,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
}

fn widening(value: &Value) -> Result<Widening, String> {
    // Serde reads a list as the fields of a struct.
    let wider = Wider::deserialize(value).ok().filter(|_| value.is_object());
    let Wider { net, read, write } = wider
        .ok_or("has a `sandbox` that is none: write { net = true, read = [\"~/x\"], write = [\"~/y\"] }")?;
    Ok(Widening { net, write, read, ..Widening::default() })
}
