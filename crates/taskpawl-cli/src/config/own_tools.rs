//! Tools that configuration files describe.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use taskpawl::tools::{CommandTool, Registry};

use super::document::Document;
use super::error::ConfigError;
use super::setting::Layer;
use crate::text::nearest;

/// The key of `[tools.NAME]` that is valid for every tool and no part of a description.
pub(super) const OF_ANY: &str = "concurrency";

/// A tool that a configuration file describes.
#[derive(Debug, Clone)]
pub(crate) struct OwnTool {
    pub(crate) name: String,
    pub(crate) tool: Arc<CommandTool>,
    /// The file with the description.
    pub(crate) file: PathBuf,
    line: usize,
    layer: Layer,
}

impl OwnTool {
    /// Returns whether the project's file describes the tool. Such a tool needs trust, because its author may be
    /// another person.
    pub(crate) fn is_of_project(&self) -> bool {
        self.layer == Layer::Project
    }
}

/// Returns the first key that is invalid for a built-in tool. Returns `None` if the entry looks like a description,
/// which gets a clearer error.
fn unknown_of_builtin<'a>(name: &str, fields: &'a Map<String, Value>) -> Option<&'a str> {
    let said = || fields.keys().filter(|key| *key != "hosts");
    let is_description = said().any(|key| CommandTool::FIELDS.contains(&key.as_str()));
    if is_description || Registry::builtin().get(name).is_none() {
        return None;
    }
    said().next().map(String::as_str)
}

/// Reads the entry `[tools.NAME]` as the description of a tool. `fields` has no key that every tool may have.
pub(super) fn read(
    document: &Document<'_>,
    name: &str,
    fields: Map<String, Value>,
) -> Result<OwnTool, ConfigError> {
    let entry = ["tools", name];
    if let Some(key) = unknown_of_builtin(name, &fields) {
        let hint = "of a tool `concurrency` can be said, of `http_request` also `hosts`";
        return Err(document.unknown_key(&["tools", name, key], hint.to_owned()));
    }
    let full = |field: &str| format!("tools.{name}.{field}");
    check_name(name)
        .map_err(|problem| document.problem(&entry, format!("tools.{name}"), problem.to_owned()))?;
    let known = || CommandTool::FIELDS.iter().copied().chain([OF_ANY]);
    if let Some(key) = fields.keys().find(|key| !known().any(|field| field == *key)) {
        let problem = match nearest(key, known()) {
            Some(near) => format!("is not a known field of a tool; did you mean `{near}`?"),
            None => {
                format!("is not a known field of a tool; they are {}", known().collect::<Vec<_>>().join(", "))
            }
        };
        return Err(document.problem(&["tools", name, key], full(key), problem));
    }
    let tool = CommandTool::new(name, &Value::Object(fields)).map_err(|error| {
        let at: Vec<&str> = entry.into_iter().chain(error.at.iter().map(String::as_str)).collect();
        let field = error.field();
        let name = if field.is_empty() { format!("tools.{name}") } else { full(&field) };
        document.problem(&at, name, error.problem)
    })?;
    Ok(OwnTool {
        name: name.to_owned(),
        tool: Arc::new(tool),
        file: document.path.to_owned(),
        line: document.line(&entry),
        layer: document.layer,
    })
}

fn check_name(name: &str) -> Result<(), &'static str> {
    if Registry::builtin().get(name).is_some() {
        return Err("is a built-in tool, which nothing redefines; describe your own under another name");
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=64).contains(&name.len()) && name.bytes().all(is_plain) {
        Ok(())
    } else {
        Err("is no name for a tool: use 1 to 64 letters, digits, `.`, `_` and `-`")
    }
}

/// Refuses a project's tool with the name of a user's tool: a call must run the tool that the user knows under this
/// name.
pub(super) fn check(tools: &[OwnTool]) -> Result<(), ConfigError> {
    let of_user = |name: &str| tools.iter().find(|tool| tool.layer == Layer::User && tool.name == name);
    let mut of_project = tools.iter().filter(|tool| tool.layer == Layer::Project);
    match of_project.find_map(|tool| Some((tool, of_user(&tool.name)?))) {
        Some((tool, other)) => Err(ConfigError::Tool {
            path: tool.file.clone(),
            line: tool.line,
            name: format!("tools.{}", tool.name),
            problem: format!(
                "is a tool of your own as well, in `{}`, which no project redefines; rename one of them",
                other.file.display()
            ),
        }),
        None => Ok(()),
    }
}
