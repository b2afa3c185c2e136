//! MCP servers of the configuration, and the list of other programs' files that name servers.

use std::path::{Path, PathBuf};

use serde_json::Value;
use taskpawl::tools::Widening;
use toml::de::DeValue;

use super::Layer;
use super::values::json_of;

/// The meaning of `mcp.configs`.
pub(crate) const CONFIGS: &str = "which files of other programs name MCP servers";

/// The expected form of `mcp.configs`.
pub(super) const EXPECTED: &str = "a list such as [\"~/.claude.json\", \".gemini/settings.json\"]";

/// The settings of MCP servers from all files.
#[derive(Debug, Default)]
pub(crate) struct McpConfig {
    /// Files of other programs, with the path as written.
    pub(super) files: Vec<(String, Layer)>,
    pub(super) servers: Vec<NamedServer>,
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
    pub(super) fn shown(&self) -> String {
        let value = self.value.as_ref();
        let of = |name: &str| value.and_then(|value| value.get(name)?.as_str());
        of("command").or_else(|| of("url")).unwrap_or("sandbox").to_owned()
    }
}

/// Reads the entry `[mcpServers.NAME]`. The error completes the sentence "`mcpServers.NAME` …".
pub(super) fn server(
    name: &str,
    value: &DeValue<'_>,
    file: &Path,
    layer: Layer,
) -> Result<NamedServer, String> {
    let mut value = json_of(value).ok_or("contains a date, which no field is")?;
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

fn widening(value: &Value) -> Result<Widening, String> {
    let wrong = || {
        "has a `sandbox` that is none: write { net = true, read = [\"~/x\"], write = [\"~/y\"] }".to_owned()
    };
    let mut widening = Widening::default();
    for (name, value) in value.as_object().ok_or_else(wrong)? {
        let paths = || {
            let texts = value.as_array()?.iter().map(|path| Some(PathBuf::from(path.as_str()?)));
            texts.collect::<Option<Vec<_>>>()
        };
        match name.as_str() {
            "net" => widening.net = value.as_bool().ok_or_else(wrong)?,
            "read" => widening.read = paths().ok_or_else(wrong)?,
            "write" => widening.write = paths().ok_or_else(wrong)?,
            _ => return Err(wrong()),
        }
    }
    Ok(widening)
}

/// Returns a list of texts, or `None` for any other value.
pub(super) fn list(value: &DeValue<'_>) -> Option<Vec<String>> {
    let DeValue::Array(items) = value else { return None };
    items.iter().map(|item| Some(item.get_ref().as_str()?.to_owned())).collect()
}
