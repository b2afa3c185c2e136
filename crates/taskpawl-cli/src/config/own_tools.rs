//! Tools that configuration files describe.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskpawl::tools::{CommandTool, Registry};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::values::{json_of, line};
use super::{ConfigError, Layer};
use crate::text::nearest;

/// The key of `[tools.NAME]` that is valid for every tool and no part of a description.
const OF_ANY: &str = "concurrency";

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
pub(super) fn unknown_of_builtin<'a, 'd>(
    name: &str,
    entries: &'a DeTable<'d>,
) -> Option<&'a Spanned<toml::de::DeString<'d>>> {
    let said = || entries.keys().filter(|key| key.get_ref() != OF_ANY && key.get_ref() != "hosts");
    let is_description = said().any(|key| CommandTool::FIELDS.contains(&key.get_ref().as_ref()));
    if is_description || Registry::builtin().get(name).is_none() {
        return None;
    }
    said().next()
}

/// Reads the entry `[tools.NAME]` as the description of a tool.
pub(super) fn read(
    path: &Path,
    text: &str,
    layer: Layer,
    name: &str,
    at: usize,
    value: &Spanned<DeValue<'_>>,
    entries: &DeTable<'_>,
) -> Result<OwnTool, ConfigError> {
    let wrong = |at: usize, field: &str, problem: String| ConfigError::Tool {
        path: path.to_owned(),
        line: line(text, at),
        name: if field.is_empty() { format!("tools.{name}") } else { format!("tools.{name}.{field}") },
        problem,
    };
    check_name(name).map_err(|problem| wrong(at, "", problem.to_owned()))?;
    let known = || CommandTool::FIELDS.iter().copied().chain([OF_ANY]);
    if let Some(key) = entries.keys().find(|key| !known().any(|field| field == key.get_ref())) {
        let problem = match nearest(key.get_ref(), known()) {
            Some(near) => format!("is no field of a tool; did you mean `{near}`?"),
            None => format!("is no field of a tool; they are {}", known().collect::<Vec<_>>().join(", ")),
        };
        return Err(wrong(key.span().start, key.get_ref(), problem));
    }
    let mut description = json_of(value.get_ref())
        .ok_or_else(|| wrong(at, "", "contains a date, which no field is".to_owned()))?;
    if let Some(fields) = description.as_object_mut() {
        fields.remove(OF_ANY);
    }
    let tool = CommandTool::new(name, &description).map_err(|error| {
        let at = place(value, &error.at).unwrap_or(at);
        wrong(at, &error.field(), error.problem)
    })?;
    Ok(OwnTool {
        name: name.to_owned(),
        tool: Arc::new(tool),
        file: path.to_owned(),
        line: line(text, at),
        layer,
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

/// Returns the offset of a field, or of the table that lacks it.
fn place(value: &Spanned<DeValue<'_>>, way: &[String]) -> Option<usize> {
    let (step, rest) = way.split_first()?;
    match value.get_ref() {
        DeValue::Table(table) => {
            let (key, inner) = table.iter().find(|(key, _)| key.get_ref() == step)?;
            Some(place(inner, rest).unwrap_or(key.span().start))
        }
        DeValue::Array(items) => {
            let item = items.get(step.parse::<usize>().ok()?)?;
            Some(place(item, rest).unwrap_or(item.span().start))
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => None,
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
