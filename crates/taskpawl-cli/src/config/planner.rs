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

/// Returns the planner of a file, and refuses keys that have no effect together.
pub(super) fn read(
    document: &Document<'_>,
    section: Section,
    settings: &mut Settings,
) -> Result<Option<PlannerConfig>, ConfigError> {
    let Section { command, url, model, format, key, ca, hosts, read, write, env, send_output } = section;
    let invalid = |key: &str| document.invalid(&["planner", key]);
    let asked = match (command, url) {
        (Some(_), Some(_)) => return Err(invalid("url")),
        (Some(command), None) => {
            let of_model = [
                ("model", model.is_some()),
                ("format", format.is_some()),
                ("key", key.is_some()),
                ("ca", ca.is_some()),
            ];
            if let Some((key, _)) = of_model.into_iter().find(|(_, is_given)| *is_given) {
                return Err(invalid(key));
            }
            if command.first().is_none_or(String::is_empty) {
                return Err(invalid("command"));
            }
            settings.note("planner.command".to_owned(), json!(command).to_string(), document.origin());
            Asked::Command(command)
        }
        (None, Some(url)) => {
            let of_command = [
                ("hosts", !hosts.is_empty()),
                ("read", !read.is_empty()),
                ("write", !write.is_empty()),
                ("env", !env.is_empty()),
            ];
            if let Some((key, _)) = of_command.into_iter().find(|(_, is_given)| *is_given) {
                return Err(invalid(key));
            }
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
        (None, None) => {
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
