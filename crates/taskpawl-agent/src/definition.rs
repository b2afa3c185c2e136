//! The agents that calls may name.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

use serde_json::{Map, Value};
use taskpawl_tools::{Decision, NamedGrant};

/// An agent: its program, and the access that it needs beyond the sandbox of every call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentDefinition {
    /// The name by which calls use it.
    pub name: String,
    /// Its program with arguments. The program speaks the protocol on its standard streams.
    pub argv: Vec<String>,
    /// Variables of its program. A value may contain `${secret:NAME}`.
    pub env: BTreeMap<String, String>,
    /// The login method that it is told to use, by the id that it lists.
    pub auth: Option<String>,
    /// Access that a person has to grant before the agent can work.
    pub needs: Vec<NamedGrant>,
}

/// The program that embeds [`AgentTool`](crate::AgentTool): knows the agents, and decides on their actions.
pub trait AgentHost: Send + Sync + Debug {
    /// Returns the agent of this name; without a name the only one.
    ///
    /// # Errors
    /// There is none, or more than one without a name. The text says so, with a hint.
    fn agent(&self, name: Option<&str>) -> Result<AgentDefinition, String>;

    /// Returns the program `taskpawl`, which serves the plan of a call to its agent; without it, calls of `agent` have no `planAccess`.
    fn plan_program(&self) -> Option<PathBuf> {
        None
    }

    /// Decides on an action of an agent, described as a call of a built-in tool. `is_confined` is true if the sandbox holds the
    /// agent. The text is the reason, unless the action simply runs.
    fn decide(&self, tool: &str, args: &Map<String, Value>, is_confined: bool) -> (Decision, Option<String>);
}

/// An agent that is known by the name of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name by which calls use it.
    pub name: &'static str,
    /// Its programs with their arguments, the preferred one first.
    pub programs: &'static [(&'static str, &'static [&'static str])],
}

impl Preset {
    /// The known agents.
    pub const ALL: &[Self] = &[
        Self { name: "claude", programs: &[("claude-agent-acp", &[]), ("claude-code-acp", &[])] },
        Self { name: "codex", programs: &[("codex-acp", &[])] },
        Self { name: "gemini", programs: &[("gemini", &["--experimental-acp"])] },
        Self { name: "auggie", programs: &[("auggie", &["--acp"])] },
        Self { name: "copilot", programs: &[("copilot", &["--acp"])] },
        Self { name: "goose", programs: &[("goose", &["acp"])] },
        Self { name: "kimi", programs: &[("kimi", &["acp"])] },
        Self { name: "opencode", programs: &[("opencode", &["acp"])] },
        Self { name: "openhands", programs: &[("openhands", &["acp"])] },
        Self { name: "qwen", programs: &[("qwen", &["--experimental-acp"])] },
        Self { name: "vibe", programs: &[("vibe-acp", &[])] },
    ];

    /// Returns the known agent of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|preset| preset.name == name)
    }

    /// Returns the first of its programs that `is_there` finds, with arguments.
    pub fn found(&self, is_there: impl Fn(&str) -> bool) -> Option<Vec<String>> {
        let (program, arguments) = self.programs.iter().find(|(program, _)| is_there(program))?;
        Some(std::iter::once(program).chain(*arguments).map(|word| (*word).to_owned()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_found_by_their_programs() {
        let names: Vec<&str> = Preset::ALL.iter().map(|preset| preset.name).collect();
        let unique: std::collections::BTreeSet<&&str> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
        let claude = Preset::named("claude").unwrap();
        assert_eq!(claude.found(|program| program == "claude-code-acp").unwrap(), ["claude-code-acp"]);
        assert_eq!(claude.found(|_| false), None);
        let gemini = Preset::named("gemini").unwrap().found(|_| true).unwrap();
        assert_eq!(gemini, ["gemini", "--experimental-acp"]);
    }
}
