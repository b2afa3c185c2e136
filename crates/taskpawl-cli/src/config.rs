//! Layers of configuration: `taskpawl.toml` of the project, then that of the user, then the environment, then flags.
//! Later layers override earlier ones.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;
use taskpawl::model::task::Retry;
use taskpawl::model::value::Period;
use taskpawl::tools::{ConfiguredSecrets, HttpAccess, content_hash, read_if_there};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::commands::parse;
use crate::environment::Environment;
use crate::text::nearest;

#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod hosts;
mod mcp;
mod own_tools;
mod sandbox;
mod secrets;
mod values;

pub(crate) use sandbox::{MEANING as SANDBOX, VARIABLE as SANDBOX_VARIABLE};

use hosts::Hosts;
pub(crate) use mcp::{CONFIGS as MCP_CONFIGS, McpConfig};
pub(crate) use own_tools::OwnTool;
use secrets::Secrets;
use values::{RETRY, length, line, number_of, retry, text_of, wrong};

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWord {
    // No help text for each value: it would add lines to the help of every command. The help of `--color` describes
    // them.
    Auto,
    Always,
    Never,
}

/// The maximum size of a configuration file.
const MAX_BYTES: u64 = 1 << 20;

/// The default duration of a claim's lease.
const LEASE: Duration = Duration::from_mins(30);

/// The expected form of a program with its arguments.
const ARGV: &str = "a list such as [\"notify-send\", \"taskpawl\"]";

/// A key of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Actor,
    Color,
    Jobs,
    Lease,
    Limit,
    OutputQuota,
    RunNotify,
    RunTimeout,
    RunTaskTimeout,
    RunMaxFailures,
    RunRetry,
}

/// Sections whose keys are names chosen by the user, each with its meaning.
pub(crate) const NAMED: [(&str, &str); 4] = [
    ("resources", "how much there is of a named resource, before what plans say"),
    ("tools", "how many calls of a tool run at once: `concurrency`; and tools of one's own"),
    ("secrets", secrets::MEANING),
    ("mcpServers", "MCP servers, whose tools calls name as `SERVER/TOOL`"),
];

/// The meaning of `hosts` of `http_request`.
pub(crate) const HOSTS: &str =
    "which hosts `http_request` may reach; those of a project only narrow those of the user";

impl Key {
    /// All keys, in the order of `config list`.
    pub(crate) const ALL: [Self; 11] = [
        Self::Actor,
        Self::Color,
        Self::Jobs,
        Self::Lease,
        Self::Limit,
        Self::OutputQuota,
        Self::RunNotify,
        Self::RunTimeout,
        Self::RunTaskTimeout,
        Self::RunMaxFailures,
        Self::RunRetry,
    ];

    /// Returns the key as written in files.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Actor => "actor",
            Self::Color => "color",
            Self::Jobs => "jobs",
            Self::Lease => "lease",
            Self::Limit => "limit",
            Self::OutputQuota => "output.quota",
            Self::RunNotify => "run.notify",
            Self::RunTimeout => "run.timeout",
            Self::RunTaskTimeout => "run.taskTimeout",
            Self::RunMaxFailures => "run.maxFailures",
            Self::RunRetry => "run.retry",
        }
    }

    /// Returns the environment variable that sets the key.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::Actor => "TASKPAWL_ACTOR",
            Self::Color => "TASKPAWL_COLOR",
            Self::Jobs => "TASKPAWL_JOBS",
            Self::Lease => "TASKPAWL_LEASE",
            Self::Limit => "TASKPAWL_LIMIT",
            Self::OutputQuota => "TASKPAWL_OUTPUT_QUOTA",
            Self::RunNotify => "TASKPAWL_RUN_NOTIFY",
            Self::RunTimeout => "TASKPAWL_RUN_TIMEOUT",
            Self::RunTaskTimeout => "TASKPAWL_RUN_TASK_TIMEOUT",
            Self::RunMaxFailures => "TASKPAWL_RUN_MAX_FAILURES",
            Self::RunRetry => "TASKPAWL_RUN_RETRY",
        }
    }

    /// Returns the description of the key, for `config list` and hints.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Actor => "in whose name commands are given",
            Self::Color => "when to use colours: auto, always or never",
            Self::Jobs => "how many tool calls run at once",
            Self::Lease => "how long a claim lasts, such as 30m",
            Self::Limit => "how many tasks lists show; 0 for all",
            Self::OutputQuota => {
                "how much output of runs is kept, such as 2GiB; the oldest goes when a run ends"
            }
            Self::RunNotify => {
                "a program, as a list, that is told when tasks wait for a decision, when some failed, and the end"
            }
            Self::RunTimeout => "how long a run may take, such as 2h",
            Self::RunTaskTimeout => "how long an attempt of a task may take that says nothing, such as 30m",
            Self::RunMaxFailures => "how many tasks may fail before a run starts nothing more",
            Self::RunRetry => {
                "how calls are tried again that say nothing: all starts, or a table as `retry` of a task"
            }
        }
    }

    /// Returns whether the value is a number.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Jobs | Self::Limit | Self::RunMaxFailures)
    }

    /// Returns whether the value is a list of texts.
    fn is_list(self) -> bool {
        self == Self::RunNotify
    }

    /// Returns the key of this name. The error is a hint that names the nearest key, or all keys.
    pub(crate) fn from_name(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|key| key.as_str() == name);
        found.ok_or_else(|| {
            let all: Vec<_> = Self::ALL.iter().map(|key| format!("`{}`", key.as_str())).collect();
            let named = NAMED.iter().map(|(section, _)| *section).chain(["sandbox"]);
            let named = named.map(|section| format!("`[{section}]`"));
            let all: Vec<_> = all.into_iter().chain(named).collect();
            match nearest(name, Self::ALL.iter().map(|key| key.as_str())) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are {}", all.join(", ")),
            }
        })
    }
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File(PathBuf),
    Variable(&'static str),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => path.display().fmt(f),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The key as written in files.
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) origin: Origin,
}

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
    /// The hash of the project's file as it was read. Trust is checked against it.
    project_hash: Option<String>,
    settings: Vec<Setting>,
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

/// The paths of the configuration files. The project's file exists; the user's may not.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Files {
    pub(crate) project: Option<PathBuf>,
    pub(crate) user: Option<PathBuf>,
}

/// The owner of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    Project,
    User,
}

/// The configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("failed to read `{}`", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("`{}` is no TOML", .path.display())]
    Syntax { path: PathBuf, source: Box<toml::de::Error> },
    #[error("`{}` line {line} has the unknown key `{key}`", .path.display())]
    UnknownKey { path: PathBuf, line: usize, key: String, hint: String },
    #[error("{} line {line}: `{name}` {problem}", .path.display())]
    Tool { path: PathBuf, line: usize, name: String, problem: String },
    #[error("`{}` line {line}: the file of a project cannot give programs more by `{key}`", .path.display())]
    Widens { path: PathBuf, line: usize, key: String },
    #[error("`{}` line {line}: the file of a project cannot set `actor`", .path.display())]
    ActorOfProject { path: PathBuf, line: usize },
    #[error("{origin}{}: `{name}` cannot be `{value}`, expected {expected}", .line.map_or_else(String::new, |line| format!(" line {line}")))]
    Value {
        origin: Origin,
        line: Option<usize>,
        name: String,
        meaning: &'static str,
        value: String,
        expected: &'static str,
    },
}

impl ConfigError {
    /// Returns the next step.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::UnknownKey { hint, .. } => hint.clone(),
            Self::Value { name, meaning, .. } => format!("`{name}` says {meaning}"),
            Self::Tool { .. } => "`taskpawl tools --help` shows how a tool is described".to_owned(),
            Self::Widens { .. } => {
                "take it out; what programs may do is said in the configuration of the user or by flags, see `taskpawl run --help`"
                    .to_owned()
            }
            Self::ActorOfProject { .. } => {
                "take it out: whoever writes the project would act in the name of another; set it in the configuration of the user"
                    .to_owned()
            }
            Self::Read { .. } | Self::Syntax { .. } => "`taskpawl config path` names the files".to_owned(),
        }
    }
}

/// Returns the paths of the configuration files: the nearest `taskpawl.toml` upwards, and that of the user.
pub(crate) fn files(environment: &Environment) -> Files {
    let project = environment.directory.ancestors().map(|above| above.join("taskpawl.toml"));
    let home = || environment.path("HOME").map(|home| home.join(".config"));
    // The XDG specification says that a relative path has to be ignored.
    let base = environment.path("XDG_CONFIG_HOME").filter(|path| path.is_absolute()).or_else(home);
    Files {
        // A broken link counts as well: its error is reported, instead of silently using a file further up.
        project: project.into_iter().find(|path| path.symlink_metadata().is_ok()),
        user: base.map(|base| base.join("taskpawl").join("config.toml")),
    }
}

/// Returns the configuration paths that govern programs. The sandbox keeps programs from changing them.
pub(crate) fn places(environment: &Environment) -> Vec<PathBuf> {
    let Files { project, user } = files(environment);
    let of_user = user.and_then(|path| path.parent().map(Path::to_owned));
    project.into_iter().chain(of_user).chain([PathBuf::from("/etc/taskpawl")]).collect()
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
                config.set(key, value, Origin::Variable(key.variable()), None)?;
            }
        }
        if let Some(mode) = environment.text(SANDBOX_VARIABLE) {
            config.narrow_sandbox(&mode)?;
        }
        for (key, value) in flags {
            let flag = if *key == Key::Actor { "--actor" } else { "--color" };
            config.set(*key, value.clone(), Origin::Flag(flag), None)?;
        }
        Ok(config)
    }

    fn defaults(environment: &Environment) -> Self {
        let actor = environment.user_at_host();
        let values = [
            actor.clone(),
            "auto".to_owned(),
            "cores + 2".to_owned(),
            "30m".to_owned(),
            "50".to_owned(),
            "none".to_owned(),
            "[]".to_owned(),
        ];
        // All further keys are unset by default.
        let values = values.into_iter().chain(std::iter::repeat_with(|| "none".to_owned()));
        let settings = Key::ALL.into_iter().zip(values);
        let setting = |(key, value): (Key, String)| Setting {
            name: key.as_str().to_owned(),
            value,
            origin: Origin::Default,
        };
        let settings = settings.map(setting).collect();
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
            project_hash: None,
            settings,
        }
    }

    /// Returns the value of every key with its source.
    pub(crate) fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Returns whether `run.notify` comes from the project's file.
    pub(crate) fn is_notify_of_project(&self, environment: &Environment) -> bool {
        let project = files(environment).project.map(Origin::File);
        let setting = self.settings.iter().find(|setting| setting.name == Key::RunNotify.as_str());
        project.is_some() && setting.map(|setting| &setting.origin) == project.as_ref()
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
        let table = DeTable::parse(text)
            .map_err(|error| ConfigError::Syntax { path: path.to_owned(), source: Box::new(error) })?;
        for (name, value) in table.get_ref() {
            let DeValue::Table(section) = value.get_ref() else {
                self.read_entry(path, text, layer, name.get_ref(), name.span().start, value)?;
                continue;
            };
            for (inner, value) in section {
                let full = format!("{}.{}", name.get_ref(), inner.get_ref());
                let at = inner.span().start;
                match name.get_ref().as_ref() {
                    "resources" => self.read_resource(path, text, inner.get_ref(), at, value)?,
                    "sandbox" => self.read_sandbox(path, text, layer, inner.get_ref(), at, value)?,
                    "secrets" => self.read_secret(path, text, layer, inner.get_ref(), at, value)?,
                    "tools" => self.read_tool(path, text, layer, inner.get_ref(), at, value)?,
                    "mcpServers" => self.read_server(path, text, layer, inner.get_ref(), at, value)?,
                    "mcp" if inner.get_ref() == "configs" => {
                        self.read_mcp_configs(path, text, layer, at, value)?;
                    }
                    _ => self.read_entry(path, text, layer, &full, at, value)?,
                }
            }
        }
        Ok(())
    }

    /// Reads the amount of a resource.
    fn read_resource(
        &mut self,
        path: &Path,
        text: &str,
        name: &str,
        at: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let full = format!("resources.{name}");
        let expected = "a number from 0 to 4294967295";
        let number = number_of(path, text, &full, NAMED[0].1, at, value, expected)?;
        self.run.resources.insert(name.to_owned(), number);
        self.note(full, number.to_string(), Origin::File(path.to_owned()));
        Ok(())
    }

    /// Reads the source of a secret. Only the user's file may name one.
    fn read_secret(
        &mut self,
        path: &Path,
        text: &str,
        layer: Layer,
        name: &str,
        at: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let full = format!("secrets.{name}");
        if layer == Layer::Project {
            let (path, line, hint) = (path.to_owned(), line(text, at), secrets::ONLY_USER.to_owned());
            return Err(ConfigError::UnknownKey { path, line, key: full, hint });
        }
        let definition = secrets::definition(name, value.get_ref());
        let definition = definition
            .ok_or_else(|| wrong(path, text, &full, secrets::MEANING, at, value, secrets::EXPECTED))?;
        self.note(full, definition.to_string(), Origin::File(path.to_owned()));
        self.secrets.set(name, definition);
        Ok(())
    }

    /// Reads the settings of a tool: its limits, its hosts, or a whole description.
    fn read_tool(
        &mut self,
        path: &Path,
        text: &str,
        layer: Layer,
        name: &str,
        at: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let entries = if let DeValue::Table(entries) = value.get_ref() { Some(entries) } else { None };
        let mut is_described = false;
        for (key, value) in entries.into_iter().flatten() {
            let full = format!("tools.{name}.{}", key.get_ref());
            let at = key.span().start;
            if name == "http_request" && key.get_ref() == "hosts" {
                self.read_hosts(path, text, layer, full, at, value)?;
                continue;
            }
            if key.get_ref() != "concurrency" {
                is_described = true;
                continue;
            }
            let number = number_of(path, text, &full, NAMED[1].1, at, value, "a number of at least 1")?;
            if number == 0 {
                return Err(wrong(path, text, &full, NAMED[1].1, at, value, "a number of at least 1"));
            }
            self.run.tool_limits.insert(name.to_owned(), number as usize);
            self.note(full, number.to_string(), Origin::File(path.to_owned()));
        }
        if entries.is_none() {
            let expected = "a table such as { concurrency = 2 }";
            return Err(wrong(path, text, &format!("tools.{name}"), NAMED[1].1, at, value, expected));
        }
        match entries.filter(|_| is_described) {
            Some(entries) => self.read_own_tool(path, text, layer, name, at, value, entries),
            None => Ok(()),
        }
    }

    /// Reads the description of a tool.
    #[expect(clippy::too_many_arguments, reason = "where the description is, and what it is")]
    fn read_own_tool(
        &mut self,
        path: &Path,
        text: &str,
        layer: Layer,
        name: &str,
        at: usize,
        value: &Spanned<DeValue<'_>>,
        entries: &DeTable<'_>,
    ) -> Result<(), ConfigError> {
        if let Some(key) = own_tools::unknown_of_builtin(name, entries) {
            return Err(ConfigError::UnknownKey {
                path: path.to_owned(),
                line: line(text, key.span().start),
                key: format!("tools.{name}.{}", key.get_ref()),
                hint: "of a tool `concurrency` can be said, of `http_request` also `hosts`".to_owned(),
            });
        }
        let tool = own_tools::read(path, text, layer, name, at, value, entries)?;
        let argv = serde_json::json!(tool.tool.template()).to_string();
        self.note(format!("tools.{name}.argv"), argv, Origin::File(path.to_owned()));
        self.own_tools.push(tool);
        Ok(())
    }

    /// Reads the hosts that may be reached. The project's list narrows the user's, independent of the reading order.
    fn read_hosts(
        &mut self,
        path: &Path,
        text: &str,
        layer: Layer,
        name: String,
        at: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let list = hosts::list(value.get_ref());
        let list = list.ok_or_else(|| wrong(path, text, &name, HOSTS, at, value, hosts::EXPECTED))?;
        let origin = match layer {
            // The project's file is read first and narrows the list, so it stays the shown source.
            Layer::User if self.hosts.of(Layer::Project).is_some() => self
                .settings
                .iter()
                .find(|setting| setting.name == name)
                .map(|setting| setting.origin.clone()),
            Layer::User | Layer::Project => None,
        };
        self.hosts.set(layer, list);
        self.note(name, self.hosts.to_string(), origin.unwrap_or_else(|| Origin::File(path.to_owned())));
        Ok(())
    }

    /// Reads an MCP server.
    fn read_server(
        &mut self,
        path: &Path,
        text: &str,
        layer: Layer,
        name: &str,
        at: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let server =
            mcp::server(name, value.get_ref(), path, layer).map_err(|problem| ConfigError::Tool {
                path: path.to_owned(),
                line: line(text, at),
                name: format!("mcpServers.{name}"),
                problem,
            })?;
        self.note(format!("mcpServers.{name}"), server.shown(), Origin::File(path.to_owned()));
        self.mcp.servers.push(server);
        Ok(())
    }

    /// Reads the list of other programs' files that name MCP servers.
    fn read_mcp_configs(
        &mut self,
        path: &Path,
        text: &str,
        layer: Layer,
        at: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let list = mcp::list(value.get_ref());
        let list =
            list.ok_or_else(|| wrong(path, text, "mcp.configs", mcp::CONFIGS, at, value, mcp::EXPECTED))?;
        let shown = serde_json::json!(list).to_string();
        self.note("mcp.configs".to_owned(), shown, Origin::File(path.to_owned()));
        self.mcp.files.extend(list.into_iter().map(|file| (file, layer)));
        Ok(())
    }

    /// Records the source of a value.
    fn note(&mut self, name: String, value: String, origin: Origin) {
        match self.settings.iter_mut().find(|setting| setting.name == name) {
            Some(setting) => *setting = Setting { name, value, origin },
            None => self.settings.push(Setting { name, value, origin }),
        }
    }

    /// Reads one entry of a file. `name` includes the section, as in `run.retry`.
    fn read_entry(
        &mut self,
        path: &Path,
        text: &str,
        layer: Layer,
        name: &str,
        at: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let line = line(text, at);
        let key = Key::from_name(name).map_err(|hint| ConfigError::UnknownKey {
            path: path.to_owned(),
            line,
            key: name.to_owned(),
            hint,
        })?;
        if key == Key::Actor && layer == Layer::Project {
            return Err(ConfigError::ActorOfProject { path: path.to_owned(), line });
        }
        let origin = Origin::File(path.to_owned());
        let Some(value) = text_of(value.get_ref(), key) else {
            let value = text[value.span()].to_owned();
            let expected = match (key.is_number(), key.is_list()) {
                (true, _) => "a number",
                (false, true) => ARGV,
                (false, false) => "text in quotes",
            };
            let (name, meaning) = (key.as_str().to_owned(), key.meaning());
            return Err(ConfigError::Value { origin, line: Some(line), name, meaning, value, expected });
        };
        self.set(key, value, origin, Some(line))
    }

    fn set(
        &mut self,
        key: Key,
        value: String,
        origin: Origin,
        line: Option<usize>,
    ) -> Result<(), ConfigError> {
        if let Err(expected) = self.take(key, &value) {
            let (name, meaning) = (key.as_str().to_owned(), key.meaning());
            return Err(ConfigError::Value { origin, line, name, meaning, value, expected });
        }
        self.note(key.as_str().to_owned(), value, origin);
        Ok(())
    }

    /// Parses a value and stores it. The error is the expected form.
    fn take(&mut self, key: Key, value: &str) -> Result<(), &'static str> {
        match key {
            Key::Actor => value.clone_into(&mut self.actor),
            Key::Color => {
                self.color = ColorWord::from_str(value, false).map_err(|_| "auto, always or never")?;
            }
            Key::Jobs => {
                let jobs = value.parse().ok().filter(|jobs| *jobs > 0);
                self.jobs = Some(jobs.ok_or("a number of at least 1")?);
            }
            Key::Lease => {
                let lease = value.parse::<Period>().ok().filter(|lease| !lease.0.is_zero());
                self.lease = lease.ok_or("a duration such as 30m")?.0;
            }
            Key::Limit => self.limit = value.parse().map_err(|_| "a number, 0 for all")?,
            Key::OutputQuota => {
                self.output_quota = Some(parse::size(value).map_err(|_| "a size such as 2GiB")?);
            }
            Key::RunNotify => self.notify = serde_json::from_str(value).map_err(|_| ARGV)?,
            Key::RunTimeout => self.run.timeout = Some(length(value, "a duration such as 2h")?),
            Key::RunTaskTimeout => self.run.task_timeout = Some(length(value, "a duration such as 30m")?),
            Key::RunMaxFailures => {
                let failures = value.parse().ok().filter(|failures| *failures > 0);
                self.run.max_failures = Some(failures.ok_or("a number of at least 1")?);
            }
            Key::RunRetry => self.run.retry = Some(retry(value).ok_or(RETRY)?),
        }
        Ok(())
    }
}
