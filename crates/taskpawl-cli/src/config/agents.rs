//! `[agents.NAME]`: the programs of coding agents. Only the user's file has it: a project could otherwise name any program as an agent
//! that a person has already granted access.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use super::document::Document;
use super::error::ConfigError;
use super::setting::Settings;

/// Parts of the names of variables that hold keys.
const KEY_NAMES: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD"];

/// An agent of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AgentConfig {
    /// The program with its arguments; absent for an agent that is known by its name.
    pub(crate) command: Option<Vec<String>>,
    /// Hosts that its program has to reach; absent for those of the known agent.
    pub(crate) hosts: Option<Vec<String>>,
    /// Paths that its program has to read.
    pub(crate) read: Vec<PathBuf>,
    /// Paths that its program has to write; absent for those of the known agent.
    pub(crate) write: Option<Vec<PathBuf>>,
    /// Variables of its program.
    pub(crate) env: BTreeMap<String, String>,
    /// The id of the login method that it is told to use.
    pub(crate) auth: Option<String>,
}

/// Checks the agents of a file, and refuses keys that are written out.
pub(super) fn check(
    document: &Document<'_>,
    agents: &BTreeMap<String, AgentConfig>,
    settings: &mut Settings,
) -> Result<(), ConfigError> {
    for (name, agent) in agents {
        let invalid = |key: &str| document.invalid(&["agents", name, key]);
        let is_preset = taskpawl_agent::Preset::named(name).is_some();
        let is_bad_command = match &agent.command {
            Some(command) => command.first().is_none_or(String::is_empty),
            None => !is_preset,
        };
        if is_bad_command || !is_plain(name) {
            return Err(invalid("command"));
        }
        if agent.env.iter().any(|(name, value)| !is_fit(name, value)) {
            return Err(invalid("env"));
        }
        let is_host = |host: &String| host.parse::<taskpawl::tools::HostGrant>().is_ok();
        if !agent.hosts.iter().flatten().all(is_host) {
            return Err(invalid("hosts"));
        }
        let shown = agent.command.as_ref().map_or("known".to_owned(), |command| json!(command).to_string());
        settings.note(format!("agents.{name}"), shown, document.origin());
    }
    Ok(())
}

fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
}

/// Returns whether a variable may be written like this: a key is a reference to a secret, because people copy and share their settings.
fn is_fit(name: &str, value: &str) -> bool {
    let is_reference = value
        .strip_prefix("${secret:")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(taskpawl::model::value::is_secret_name);
    let upper = name.to_uppercase();
    let is_key = KEY_NAMES.iter().any(|part| upper.contains(part));
    let is_name = !name.is_empty() && !name.contains(['=', '\0']);
    is_name && (is_reference || !is_key && !value.contains("${secret:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_references_to_secrets() {
        for (name, value, is_ok) in [
            ("ANTHROPIC_API_KEY", "${secret:claude}", true),
            ("ANTHROPIC_API_KEY", "sk-1", false),
            ("my_token", "x", false),
            ("LEVEL", "debug", true),
            ("LEVEL", "a ${secret:b}", false),
            ("", "x", false),
            ("A=B", "x", false),
        ] {
            assert_eq!(is_fit(name, value), is_ok, "{name} {value}");
        }
    }
}
