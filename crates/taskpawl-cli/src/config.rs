//! Layers of configuration: `taskpawl.toml` of the project, then that of the user, then the environment, then flags.
//! Later layers override earlier ones.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use taskpawl::SandboxSettings;
use taskpawl::model::task::Retry;
use taskpawl::model::value::Period;
use taskpawl::tools::{ConfiguredSecrets, HttpAccess, NamedGrant, content_hash, read_if_there};

use crate::environment::Environment;

mod agents;
mod document;
mod edit;
mod engines;
mod error;
mod file;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod hosts;
mod key;
mod mcp;
mod own_tools;
mod places;
mod planner;
mod sandbox;
mod secrets;
mod sections;
mod setting;
mod value;

pub(crate) use agents::AgentConfig;
pub(crate) use edit::{ConfigFile, SetError};
pub(crate) use engines::{FilesWord, RestateConfig};
pub(crate) use error::ConfigError;
pub(crate) use file::ColorWord;
pub(crate) use key::{Key, NAMED};
pub(crate) use mcp::McpConfig;
pub(crate) use own_tools::OwnTool;
pub(crate) use places::{Files, files, places};
pub(crate) use planner::{Asked, PlannerConfig};
pub(crate) use sandbox::VARIABLE as SANDBOX_VARIABLE;
pub(crate) use sections::{COLLECTORS, HOSTS, MCP_CONFIGS, SANDBOX};
pub(crate) use setting::{Origin, Setting};

use document::Document;
use file::File;
use hosts::Hosts;
use places::MAX_BYTES;
use secrets::Secrets;
use setting::{Layer, Settings, replace};

/// The default duration of a claim's lease.
const LEASE: Duration = Duration::from_mins(30);

/// The merged configuration of all layers.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) actor: String,
    pub(crate) color: ColorWord,
    /// The limit of parallel tool calls; `None` means the number of cores plus two.
    pub(crate) jobs: Option<usize>,
    pub(crate) lease: Duration,
    pub(crate) limit: usize,
    /// The maximum bytes of stored output; `None` keeps everything.
    pub(crate) output_quota: Option<u64>,
    /// The program that is told about runs, with its arguments; empty for none.
    pub(crate) notify: Vec<String>,
    pub(crate) run: RunConfig,
    hosts: Hosts,
    own_tools: Vec<OwnTool>,
    sandbox: sandbox::Sandbox,
    secrets: Secrets,
    mcp: McpConfig,
    collectors: Vec<String>,
    planner: Option<PlannerConfig>,
    restate: RestateConfig,
    agents: BTreeMap<String, AgentConfig>,
    /// The hash of the project's file as it was read. Trust is checked against it.
    project_hash: Option<String>,
    settings: Settings,
}

/// The settings of runs.
#[derive(Debug, Default)]
pub(crate) struct RunConfig {
    pub(crate) timeout: Option<Period>,
    pub(crate) task_timeout: Option<Period>,
    pub(crate) max_failures: Option<u64>,
    pub(crate) retry: Option<Retry>,
    pub(crate) resources: BTreeMap<String, u32>,
    /// The maximum of parallel calls, by tool.
    pub(crate) tool_limits: BTreeMap<String, usize>,
}

impl Config {
    /// Reads every layer. `flags` are the values from the command line.
    pub(crate) fn read(environment: &Environment, flags: &[(Key, String)]) -> Result<Self, ConfigError> {
        Self::read_from(files(environment), environment, flags)
    }

    /// Reads every layer but that of the project. Only for commands that run nothing, because the project's file may
    /// contain restrictions.
    pub(crate) fn read_without_project(
        environment: &Environment,
        flags: &[(Key, String)],
    ) -> Result<Self, ConfigError> {
        Self::read_from(Files { project: None, ..files(environment) }, environment, flags)
    }

    fn read_from(
        Files { project, user }: Files,
        environment: &Environment,
        flags: &[(Key, String)],
    ) -> Result<Self, ConfigError> {
        let mut config = Self::defaults(environment);
        if let Some(path) = project {
            config.read_file(&path, Layer::Project)?;
        }
        // Inside a call, the user's files are out of reach.
        if let Some(path) = user.filter(|_| environment.plan_descriptor().is_none()) {
            config.read_file(&path, Layer::User)?;
        }
        // Only now are the tools of both files known, which this compares.
        own_tools::check(&config.own_tools)?;
        for key in Key::ALL {
            if let Some(value) = environment.text(key.variable()) {
                config.set(key, value, Origin::Variable(key.variable()))?;
            }
        }
        if let Some(mode) = environment.text(SANDBOX_VARIABLE) {
            config.sandbox.narrow(&mode, &mut config.settings)?;
        }
        for (key, value) in flags {
            let flag = if *key == Key::Actor { "--actor" } else { "--color" };
            config.set(*key, value.clone(), Origin::Flag(flag))?;
        }
        Ok(config)
    }

    fn defaults(environment: &Environment) -> Self {
        let actor = environment.user_at_host();
        let mut settings = Settings::default();
        for key in Key::ALL {
            let value = if key == Key::Actor { &actor } else { key.default() };
            settings.note(key.as_str().to_owned(), value.to_owned(), Origin::Default);
        }
        Self {
            actor,
            color: ColorWord::Auto,
            jobs: None,
            lease: LEASE,
            limit: 50,
            output_quota: None,
            notify: Vec::new(),
            run: RunConfig::default(),
            hosts: Hosts::default(),
            own_tools: Vec::new(),
            sandbox: sandbox::Sandbox::default(),
            secrets: Secrets::default(),
            mcp: McpConfig::default(),
            collectors: Vec::new(),
            planner: None,
            restate: RestateConfig::default(),
            agents: BTreeMap::new(),
            project_hash: None,
            settings,
        }
    }

    /// Checks the text of one file by itself.
    fn check_text(
        environment: &Environment,
        path: &Path,
        text: &str,
        layer: Layer,
    ) -> Result<(), ConfigError> {
        let mut config = Self::defaults(environment);
        config.read_text(path, text, layer)?;
        own_tools::check(&config.own_tools)
    }

    /// Returns the value of every key with its source.
    pub(crate) fn settings(&self) -> &[Setting] {
        self.settings.all()
    }

    /// Returns whether `run.notify` comes from the project's file.
    pub(crate) fn is_notify_of_project(&self, environment: &Environment) -> bool {
        let project = files(environment).project.map(Origin::File);
        let setting = self.settings.named(Key::RunNotify.as_str());
        project.is_some() && setting.map(|setting| &setting.origin) == project.as_ref()
    }

    /// Returns the addresses that traces may be sent to.
    pub(crate) fn collectors(&self) -> &[String] {
        &self.collectors
    }

    /// Returns the Restate server of the user's file.
    pub(crate) fn restate(&self) -> &RestateConfig {
        &self.restate
    }

    /// Returns the planner of the user's file.
    pub(crate) fn planner(&self) -> Option<&PlannerConfig> {
        self.planner.as_ref()
    }

    /// Returns the agents of the user's file.
    pub(crate) fn agents(&self) -> &BTreeMap<String, AgentConfig> {
        &self.agents
    }

    /// Returns the permissions of programs, before flags of the command line.
    pub(crate) fn sandbox(&self) -> SandboxSettings {
        self.sandbox.settings()
    }

    /// Returns the grants that the project proposes.
    pub(crate) fn wants(&self) -> &[NamedGrant] {
        self.sandbox.wants()
    }

    /// Returns the hosts that `http_request` may reach.
    pub(crate) fn http_access(&self) -> HttpAccess {
        self.hosts.access()
    }

    /// Returns the settings of MCP servers.
    pub(crate) fn mcp(&self) -> &McpConfig {
        &self.mcp
    }

    /// Returns the hash of the project's file, if there is one. It covers the text that was read, even if the file
    /// has changed since.
    pub(crate) fn project_hash(&self) -> Option<&str> {
        self.project_hash.as_deref()
    }

    /// Returns the tools that the files describe, trusted or not.
    pub(crate) fn own_tools(&self) -> &[OwnTool] {
        &self.own_tools
    }

    /// Returns the sources of secrets, in this environment.
    pub(crate) fn secrets(&self, environment: &Environment) -> ConfiguredSecrets {
        self.secrets.source(environment)
    }

    fn read_file(&mut self, path: &Path, layer: Layer) -> Result<(), ConfigError> {
        let failed = |source| ConfigError::Read { path: path.to_owned(), source };
        let Some(text) = read_if_there(path, MAX_BYTES).map_err(failed)? else { return Ok(()) };
        if layer == Layer::Project {
            self.project_hash = Some(content_hash(text.as_bytes()));
        }
        self.read_text(path, &text, layer)
    }

    fn read_text(&mut self, path: &Path, text: &str, layer: Layer) -> Result<(), ConfigError> {
        let document = Document::parse(path, text, layer)?;
        document.check_sections()?;
        let mut file: File = document.read()?;
        self.take(&mut file);
        for key in Key::ALL {
            if let Some(value) = document.value(key) {
                self.settings.note(key.as_str().to_owned(), shown(value), document.origin());
            }
        }
        self.mcp.read(&document, file.mcp.configs, file.mcp_servers, &mut self.settings)?;
        if let Some(collectors) = file.trace.collectors {
            self.settings.note(
                "trace.collectors".to_owned(),
                serde_json::json!(collectors).to_string(),
                document.origin(),
            );
            self.collectors = collectors;
        }
        for (name, number) in file.resources {
            self.settings.note(format!("resources.{name}"), number.to_string(), document.origin());
            self.run.resources.insert(name, number);
        }
        self.sandbox.read(&document, file.sandbox, &mut self.settings)?;
        self.planner = planner::read(&document, file.planner, &mut self.settings)?.or(self.planner.take());
        replace(&mut self.restate, engines::read(&document, file.engines, &mut self.settings)?);
        agents::check(&document, &file.agents, &mut self.settings)?;
        self.agents.extend(file.agents);
        for (name, definition) in file.secrets {
            if !definition.is_valid(&name) {
                return Err(document.invalid(&["secrets", &name]));
            }
            self.settings.note(format!("secrets.{name}"), definition.to_string(), document.origin());
            self.secrets.set(name, definition);
        }
        file.tools.into_iter().try_for_each(|(name, fields)| self.read_tool(&document, &name, fields))
    }

    /// Takes the settings that have a [`Key`].
    fn take(&mut self, file: &mut File) {
        replace(&mut self.actor, file.actor.take());
        replace(&mut self.color, file.color);
        self.jobs = file.jobs.map(NonZeroUsize::get).or(self.jobs);
        replace(&mut self.lease, file.lease.take().map(|length| length.0.0.0));
        replace(&mut self.limit, file.limit);
        self.output_quota = file.output.quota.take().map(|size| size.0.0).or(self.output_quota);
        let from = std::mem::take(&mut file.run);
        replace(&mut self.notify, from.notify);
        let run = &mut self.run;
        run.timeout = from.timeout.map(|length| length.0.0).or(run.timeout);
        run.task_timeout = from.task_timeout.map(|length| length.0.0).or(run.task_timeout);
        run.max_failures = from.max_failures.map(NonZeroU64::get).or(run.max_failures);
        run.retry = from.retry.map(|retries| retries.0).or(run.retry.take());
    }

    /// Reads the settings of a tool: its limits, its hosts, or a whole description.
    fn read_tool(
        &mut self,
        document: &Document<'_>,
        name: &str,
        mut fields: Map<String, Value>,
    ) -> Result<(), ConfigError> {
        if let Some(number) = fields.remove(own_tools::OF_ANY) {
            let number = NonZeroU32::deserialize(&number)
                .map_err(|_| document.invalid(&["tools", name, own_tools::OF_ANY]))?;
            self.run.tool_limits.insert(name.to_owned(), number.get() as usize);
            self.settings.note(format!("tools.{name}.concurrency"), number.to_string(), document.origin());
        }
        if name == "http_request"
            && let Some(list) = fields.remove("hosts")
        {
            self.hosts.read(document, &list, &mut self.settings)?;
        }
        if fields.is_empty() {
            return Ok(());
        }
        let tool = own_tools::read(document, name, fields)?;
        let argv = serde_json::json!(tool.tool.template()).to_string();
        self.settings.note(format!("tools.{name}.argv"), argv, document.origin());
        self.own_tools.push(tool);
        Ok(())
    }

    /// Applies a variable of the environment or a flag, as a file with one entry.
    fn set(&mut self, key: Key, text: String, origin: Origin) -> Result<(), ConfigError> {
        let steps = key.as_str().rsplit('.');
        let entry = steps.fold(key.value_of(&text), |value, step| serde_json::json!({ step: value }));
        let Ok(mut file) = File::deserialize(&entry) else {
            let (name, meaning, expected) = (key.as_str().to_owned(), key.meaning(), key.expected());
            return Err(ConfigError::Value { origin, line: None, name, meaning, value: text, expected });
        };
        self.take(&mut file);
        self.settings.note(key.as_str().to_owned(), text, origin);
        Ok(())
    }
}

/// Returns a value as `config list` shows it: lists and tables as JSON.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
