//! `[planner]`: the model or the program that proposes plans. Only the user's file has it: a project could otherwise send names of files
//! and goals anywhere.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;
use taskpawl::model::value::{SecretPiece, secret_pieces};
use taskpawl_planner::WireFormat;

use super::document::Document;
use super::{Config, ConfigError};

/// The meaning of the section.
pub(super) const MEANING: &str = "the model or the program that proposes plans";

/// The hint for an unknown key.
pub(super) const KEYS: &str = "of a planner `command`, `hosts`, `read`, `write` and `env` can be said, or `url`, `model`, `format`, `key` and `ca`; and `send_output`";

/// The hint for a project that has such a section.
pub(super) const ONLY_USER: &str =
    "the user's own file alone names the planner; `taskpawl config path` names that file";

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

/// Returns the expected form of a value; `None` for an unknown key.
pub(super) fn expected(key: &str) -> Option<&'static str> {
    Some(match key {
        "command" => "a list such as [\"claude\"], without `url` beside it",
        "url" => {
            "an address such as \"http://127.0.0.1:8080/v1\", with `model` and without `command` beside it"
        }
        "model" => "the name of the model, beside `url`",
        "format" => "\"openai\" or \"anthropic\", beside `url`",
        "key" => {
            "a reference such as \"${secret:models}\", beside `url`; the section [secrets.models] says where it is"
        }
        "ca" => "the path of a file with certificates in PEM, beside `url`",
        "hosts" => "a list of hosts such as [\"models.example.org\"], beside `command`",
        "read" | "write" => "a list of paths such as [\"~/.agent\"], beside `command`",
        "send_output" => "true or false",
        "env" => "a list of variables such as [\"AGENT_KEY\"], beside `command`",
        _ => return None,
    })
}

impl Config {
    /// Reads the planner, and refuses keys that have no effect together.
    pub(super) fn read_planner(
        &mut self,
        document: &Document<'_>,
        section: Section,
    ) -> Result<(), ConfigError> {
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
                self.note("planner.command".to_owned(), json!(command).to_string(), document.origin());
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
                self.note("planner.url".to_owned(), url.clone(), document.origin());
                self.note("planner.model".to_owned(), model.clone(), document.origin());
                Asked::Model { url, model, format, key, ca }
            }
            (None, None) => {
                return match document.values.get("planner") {
                    Some(_) => Err(invalid("command")),
                    None => Ok(()),
                };
            }
        };
        self.planner = Some(PlannerConfig { asked, hosts, read, write, env, send_output });
        Ok(())
    }
}

/// Returns the name in a text that is one reference to a secret. Keys do not belong in a file of settings, which people copy and share.
fn secret_name(text: &str) -> Option<String> {
    match secret_pieces(text).ok()?[..] {
        [SecretPiece::Secret(name)] => Some(name.to_owned()),
        _ => None,
    }
}
