//! `[planner]`: the model or the program that proposes plans. Only the user's file has it: a project could otherwise send names of files
//! and goals anywhere.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;
use taskpawl::model::value::{SecretPiece, secret_pieces};
use taskpawl_planner::WireFormat;

use super::document::Document;
use super::error::ConfigError;
use super::setting::Settings;

/// The planner of the user.
#[derive(Debug, Clone)]
pub(crate) struct PlannerConfig {
    /// The way to ask it.
    pub(crate) asked: Asked,
    /// Hosts that its program may reach.
    pub(crate) hosts: Vec<String>,
    /// Paths that its program may read.
    pub(crate) read: Vec<PathBuf>,
    /// Paths that its program may write.
    pub(crate) write: Vec<PathBuf>,
    /// Variables that its program sees.
    pub(crate) env: Vec<String>,
    /// True if it may get output and results of calls.
    pub(crate) send_output: bool,
}

/// The way to ask a planner.
#[derive(Debug, Clone)]
pub(crate) enum Asked {
    /// A program that reads the prompt from standard input.
    Command(Vec<String>),
    /// An agent of the tool `agent`, by its name.
    Agent(String),
    /// A model behind HTTP.
    Model {
        url: String,
        model: String,
        format: WireFormat,
        /// The name of the secret that is its key.
        key: Option<String>,
        /// A file with certificates that are trusted instead of the public ones.
        ca: Option<PathBuf>,
    },
}

/// The section of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Section {
    agent: Option<String>,
    command: Option<Vec<String>>,
    url: Option<String>,
    model: Option<String>,
    format: Option<Format>,
    key: Option<String>,
    ca: Option<PathBuf>,
    hosts: Vec<String>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    env: Vec<String>,
    send_output: bool,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    OpenAi,
    Anthropic,
}

impl Section {
    /// Returns the first key that has no effect beside the way to ask the planner, which is one of three.
    fn without_effect(&self) -> Option<&'static str> {
        let of_model = [
            ("url", self.url.is_some()),
            ("model", self.model.is_some()),
            ("format", self.format.is_some()),
            ("key", self.key.is_some()),
            ("ca", self.ca.is_some()),
        ];
        let of_command = [
            ("command", self.command.is_some()),
            ("hosts", !self.hosts.is_empty()),
            ("read", !self.read.is_empty()),
            ("write", !self.write.is_empty()),
            ("env", !self.env.is_empty()),
        ];
        let others: Vec<(&str, bool)> = if self.agent.is_some() {
            [of_command, of_model].concat()
        } else if self.command.is_some() {
            of_model.to_vec()
        } else if self.url.is_some() {
            of_command.to_vec()
        } else {
            Vec::new()
        };
        others.into_iter().find_map(|(key, is_given)| is_given.then_some(key))
    }
}

/// Returns the planner of a file, and refuses keys that have no effect together.
pub(super) fn read(
    document: &Document<'_>,
    section: Section,
    settings: &mut Settings,
) -> Result<Option<PlannerConfig>, ConfigError> {
    let invalid = |key: &str| document.invalid(&["planner", key]);
    if let Some(key) = section.without_effect() {
        return Err(invalid(key));
    }
    let Section { agent, command, url, model, format, key, ca, hosts, read, write, env, send_output } =
        section;
    let asked = match (agent, command, url) {
        (Some(agent), ..) => {
            settings.note("planner.agent".to_owned(), agent.clone(), document.origin());
            Asked::Agent(agent)
        }
        (None, Some(command), _) => {
            if command.first().is_none_or(String::is_empty) {
                return Err(invalid("command"));
            }
            settings.note("planner.command".to_owned(), json!(command).to_string(), document.origin());
            Asked::Command(command)
        }
        (None, None, Some(url)) => {
            let model = model.filter(|model| !model.is_empty()).ok_or_else(|| invalid("url"))?;
            let format = match format {
                Some(Format::Anthropic) => WireFormat::Anthropic,
                Some(Format::OpenAi) | None => WireFormat::OpenAi,
            };
            let key = key.map(|key| secret_name(&key).ok_or_else(|| invalid("key"))).transpose()?;
            settings.note("planner.url".to_owned(), url.clone(), document.origin());
            settings.note("planner.model".to_owned(), model.clone(), document.origin());
            Asked::Model { url, model, format, key, ca }
        }
        (None, None, None) => {
            return match document.values.get("planner") {
                Some(_) => Err(invalid("command")),
                None => Ok(None),
            };
        }
    };
    Ok(Some(PlannerConfig { asked, hosts, read, write, env, send_output }))
}

/// Returns the name in a text that is one reference to a secret. Keys do not belong in a file of settings, which people copy and share.
fn secret_name(text: &str) -> Option<String> {
    match secret_pieces(text).ok()?[..] {
        [SecretPiece::Secret(name)] => Some(name.to_owned()),
        _ => None,
    }
}
