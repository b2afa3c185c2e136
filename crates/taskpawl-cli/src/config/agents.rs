//! `[agents.NAME]`: the programs of coding agents. Only the user's file has it: a project could otherwise name any program as an agent
//! that a person has already granted access.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use super::document::Document;
use super::{Config, ConfigError};

/// The meaning of the section.
pub(super) const MEANING: &str = "coding agents, which calls of `agent` name by `using`";

/// The hint for an unknown key.
pub(super) const KEYS: &str = "of an agent `command`, `hosts`, `read`, `write`, `env` and `auth` can be said";

/// The hint for a project that has such a section.
pub(super) const ONLY_USER: &str =
    "the user's own file alone names agents; `taskpawl config path` names that file";

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

/// Returns the expected form of a value; `None` for an unknown key.
pub(super) fn expected(key: &str) -> Option<&'static str> {
    Some(match key {
        "command" => "a list such as [\"claude-code-acp\"], which can be left out for a known agent",
        "hosts" => "a list of hosts such as [\"models.example.org\"]",
        "read" | "write" => "a list of paths such as [\"~/.agent\"]",
        "env" => "a table such as { AGENT_KEY = \"${secret:agent}\" }; a key, token or password is a secret",
        "auth" => "the id of a login method, which `taskpawl agents --check` shows",
        _ => return None,
    })
}

impl Config {
    /// Reads the agents, and refuses keys that are written out.
    pub(super) fn read_agents(
        &mut self,
        document: &Document<'_>,
        agents: BTreeMap<String, AgentConfig>,
    ) -> Result<(), ConfigError> {
        for (name, agent) in agents {
            let invalid = |key: &str| document.invalid(&["agents", &name, key]);
            let is_preset = taskpawl_agent::Preset::named(&name).is_some();
            let is_bad_command = match &agent.command {
                Some(command) => command.first().is_none_or(String::is_empty),
                None => !is_preset,
            };
            if is_bad_command || !is_plain(&name) {
                return Err(invalid("command"));
            }
            if agent.env.iter().any(|(name, value)| !is_fit(name, value)) {
                return Err(invalid("env"));
            }
            let is_host = |host: &String| host.parse::<taskpawl::tools::HostGrant>().is_ok();
            if !agent.hosts.iter().flatten().all(is_host) {
                return Err(invalid("hosts"));
            }
            let shown =
                agent.command.as_ref().map_or("known".to_owned(), |command| json!(command).to_string());
            self.note(format!("agents.{name}"), shown, document.origin());
            self.agents.insert(name, agent);
        }
        Ok(())
    }
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
