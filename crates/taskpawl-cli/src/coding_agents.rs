//! The coding agents that calls may name: those of the configuration, and known ones whose program is on the search path.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use taskpawl::tools::{CallOrigin, Decision, NamedGrant, Policy, PolicyCall, Registry, Tool};
use taskpawl_agent::{AgentDefinition, AgentHost, AgentTool, Preset};
use taskpawl_planner::Kit;

use crate::config::AgentConfig;
use crate::context::Context;
use crate::error::CliError;
use crate::text::{clean, nearest};

/// The agents, and the policy for their actions.
#[derive(Debug)]
pub(crate) struct CodingAgents {
    configured: BTreeMap<String, AgentConfig>,
    search: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// For an agent that no sandbox holds.
    policy: Policy,
    /// For an agent in the sandbox, which is then the reason to accept its actions, unless the policy says otherwise.
    sandboxed: Policy,
}

/// The origin of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentSource {
    /// The user's file names it.
    Configured,
    /// Its program is on the search path.
    Found,
}

impl CodingAgents {
    pub(crate) fn of(context: &Context) -> Result<Self, CliError> {
        let environment = context.environment();
        let search = environment.text("PATH").unwrap_or_default();
        let policy = context.policy()?.clone().with_tools(Registry::builtin());
        Ok(Self {
            configured: context.config()?.agents().clone(),
            search: std::env::split_paths(&search).collect(),
            home: environment.path("HOME"),
            sandboxed: policy.clone().sandboxing(CallOrigin::Agent),
            policy,
        })
    }

    /// Returns the tool `agent`.
    pub(crate) fn tool(context: &Context) -> Result<Arc<dyn Tool>, CliError> {
        Ok(Arc::new(AgentTool::new(Arc::new(Self::of(context)?))))
    }

    /// Returns all agents, by name.
    pub(crate) fn all(&self) -> Vec<(AgentDefinition, AgentSource)> {
        let names: BTreeSet<&str> = self
            .configured
            .keys()
            .map(String::as_str)
            .chain(Preset::ALL.iter().map(|preset| preset.name))
            .collect();
        names.into_iter().filter_map(|name| Some((self.named(name)?, self.source(name)))).collect()
    }

    fn source(&self, name: &str) -> AgentSource {
        if self.configured.contains_key(name) { AgentSource::Configured } else { AgentSource::Found }
    }

    /// Returns the agent of this name; `None` if it is not configured, and its program is not there.
    pub(crate) fn named(&self, name: &str) -> Option<AgentDefinition> {
        let own = self.configured.get(name).cloned().unwrap_or_default();
        let is_there = |program: &str| self.search.iter().any(|directory| directory.join(program).is_file());
        let preset = Preset::named(name);
        let argv = own.command.clone().or_else(|| preset?.found(is_there))?;
        // The planner starts the programs of three of them, too, and knows what they need.
        let kit = preset.and_then(|preset| Kit::of(&[preset.name.to_owned()]));
        Some(AgentDefinition {
            name: name.to_owned(),
            argv,
            needs: self.needs(&own, kit),
            env: own.env,
            auth: own.auth,
        })
    }

    fn needs(&self, own: &AgentConfig, kit: Option<Kit>) -> Vec<NamedGrant> {
        let hosts: Vec<String> = match &own.hosts {
            Some(hosts) => hosts.clone(),
            None => kit.map(Kit::hosts).unwrap_or_default().iter().map(|host| (*host).to_owned()).collect(),
        };
        // Checked when the configuration was read.
        let hosts = hosts.iter().filter_map(|host| host.parse().ok()).map(NamedGrant::Host);
        let write: Vec<PathBuf> = if let Some(write) = &own.write {
            write.iter().map(|path| self.at_home(path)).collect()
        } else {
            let places = kit.map(Kit::places).unwrap_or_default().iter();
            let places = places.map(|place| self.at_home(&Path::new("~").join(place)));
            places.filter(|path| path.exists()).collect()
        };
        let read = own.read.iter().map(|path| NamedGrant::Read(self.at_home(path)));
        hosts.chain(read).chain(write.into_iter().map(NamedGrant::Write)).collect()
    }

    /// Returns the path with a leading `~` replaced by the home directory.
    fn at_home(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            (Ok(_) | Err(_), _) => path.to_owned(),
        }
    }

    fn only(&self) -> Result<AgentDefinition, String> {
        let all = self.all();
        let configured: Vec<_> =
            all.iter().filter(|(_, source)| *source == AgentSource::Configured).collect();
        let chosen: Vec<&(AgentDefinition, AgentSource)> =
            if configured.is_empty() { all.iter().collect() } else { configured };
        match chosen[..] {
            [(agent, _)] => Ok(agent.clone()),
            [] => Err("no coding agent is configured or found; `taskpawl agents` says which ones are known"
                .to_owned()),
            _ => {
                let names: Vec<String> =
                    chosen.iter().take(5).map(|(agent, _)| format!("`{}`", agent.name)).collect();
                Err(format!("there are several agents: name one with `using`, such as {}", names.join(", ")))
            }
        }
    }

    fn unknown(&self, name: &str) -> String {
        let name = clean(name);
        if let Some(preset) = Preset::named(&name) {
            let programs: Vec<String> =
                preset.programs.iter().map(|(program, _)| format!("`{program}`")).collect();
            return format!(
                "agent `{name}` is not there: {} is not on the search path; install it, or name its program in `[agents.{name}]` of your configuration",
                programs.join(" or ")
            );
        }
        let all = self.all();
        let near = nearest(&name, all.iter().map(|(agent, _)| agent.name.as_str()));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        format!("no agent `{name}` is configured{near}")
    }
}

impl AgentHost for CodingAgents {
    fn agent(&self, name: Option<&str>) -> Result<AgentDefinition, String> {
        match name {
            Some(name) => self.named(name).ok_or_else(|| self.unknown(name)),
            None => self.only(),
        }
    }

    fn plan_program(&self) -> Option<PathBuf> {
        // The sandbox shows it to programs.
        std::env::current_exe().ok()
    }

    fn decide(&self, tool: &str, args: &Map<String, Value>, is_confined: bool) -> (Decision, Option<String>) {
        let policy = if is_confined { &self.sandboxed } else { &self.policy };
        policy.authorize(&PolicyCall { tool, args, origin: CallOrigin::Agent, sandbox: None })
    }
}
