//! The planner of the user's configuration: a model behind HTTP, or a program or an agent in the sandbox.

mod consent;
mod program;

use std::path::{Path, PathBuf};

use taskpawl::tools::{HostGrant, NamedGrant, SecretSource as _};
use taskpawl::{SandboxMode, SandboxSettings};
use taskpawl_agent::{AgentDefinition, AgentHost as _};
use taskpawl_planner::{HttpModel, HttpSettings, Kit, Planner};
use taskpawl_text::error_chain;

use self::program::{Program, Work};
use crate::app::App;
use crate::coding_agents::CodingAgents;
use crate::config::{Asked, PlannerConfig};
use crate::error::CliError;

pub(crate) use consent::ask as ask_for_consent;

/// The ways to get a planner, for a user who has none.
const WAYS: &str = "name one in your own file, which `taskpawl config path` names, or let an agent plan:
  [planner] command = [\"claude\"]      a program: claude, codex, gemini, or your own that reads the prompt
  [planner] agent = \"claude\"          an agent that `taskpawl agents` lists
  [planner] url = \"…\", model = \"…\"    a model behind HTTP: docs/planner.md
  taskpawl mcp                        the prompt `plan_goal`, for the model of an MCP client";

/// The planner, with what a person should know about it.
pub(crate) struct Configured {
    pub(crate) planner: Box<dyn Planner>,
    /// The address of another machine that gets the prompt.
    pub(crate) remote: Option<String>,
    /// True if nothing keeps its program from reading the files of the user.
    pub(crate) reads_files: bool,
}

impl Configured {
    /// Makes the planner of the configuration.
    ///
    /// # Errors
    /// There is none, or its settings are wrong.
    pub(crate) fn of(app: &App) -> Result<Self, CliError> {
        Self::made(app, true)
    }

    /// Makes the planner without reading its key, to show what it would get.
    ///
    /// # Errors
    /// There is none, or its settings are wrong.
    pub(crate) fn without_key(app: &App) -> Result<Self, CliError> {
        Self::made(app, false)
    }

    fn made(app: &App, has_key: bool) -> Result<Self, CliError> {
        let Some(config) = app.config()?.planner() else {
            return Err(CliError::usage_with("no planner is configured", WAYS));
        };
        match &config.asked {
            Asked::Model { .. } => Self::of_model(app, &config.asked, has_key),
            Asked::Command(argv) => Self::of_program(app, config, argv),
            Asked::Agent(name) => Self::of_agent(app, name),
        }
    }

    fn of_model(app: &App, asked: &Asked, has_key: bool) -> Result<Self, CliError> {
        let Asked::Model { url, model, format, key, ca } = asked else {
            unreachable!("BUG: only models are asked for here")
        };
        let wrong =
            |problem: String| CliError::usage(format!("`[planner]` of your configuration: {problem}"));
        let key = key.as_deref().filter(|_| has_key).map(|name| {
            let secrets = app.secrets(app.root(), app.config()?.sandbox())?;
            secrets.secret(name).map_err(|error| wrong(error_chain(&error)))
        });
        let own_certificates = ca.as_deref().map(|path| {
            let path = at_home(app, path);
            std::fs::read(&path).map_err(|source| CliError::File { action: "read", path, source })
        });
        let settings = HttpSettings {
            url: url.clone(),
            model: model.clone(),
            format: *format,
            key: key.transpose()?,
            own_certificates: own_certificates.transpose()?,
            // The address is the user's own, so that a proxy hides nothing that is checked.
            proxy: ureq::Proxy::try_from_env(),
        };
        let model = HttpModel::new(settings).map_err(|error| wrong(error_chain(&error)))?;
        let remote = model.is_remote().then(|| model.address());
        Ok(Self { planner: Box::new(model), remote, reads_files: false })
    }

    fn of_program(app: &App, config: &PlannerConfig, argv: &[String]) -> Result<Self, CliError> {
        let kit = Kit::of(argv);
        let settings = settings(app, config, kit)?;
        let reads_files = settings.mode == SandboxMode::Off;
        let work = Work::Command { argv: argv.to_vec(), kit };
        let program = Program::new(app, work, settings)?;
        let remote = kit.map(|_| format!("the service of `{}`", argv[0]));
        Ok(Self { planner: Box::new(program), remote, reads_files })
    }

    fn of_agent(app: &App, name: &str) -> Result<Self, CliError> {
        let agent = CodingAgents::of(app)?
            .agent(Some(name))
            .map_err(|problem| CliError::usage(format!("`[planner]` of your configuration: {problem}")))?;
        let settings = settings_of_agent(app, &agent)?;
        let reads_files = settings.mode == SandboxMode::Off;
        let remote = (!settings.hosts.is_empty()).then(|| format!("the service of agent `{name}`"));
        let program = Program::new(app, Work::Agent(name.to_owned()), settings)?;
        Ok(Self { planner: Box::new(program), remote, reads_files })
    }
}

/// Returns the sandbox of a planner that is an agent: its needs, which a person has named in the user's file or which are known.
fn settings_of_agent(app: &App, agent: &AgentDefinition) -> Result<SandboxSettings, CliError> {
    let mut settings = SandboxSettings { mode: app.config()?.sandbox().mode, ..SandboxSettings::default() };
    for grant in &agent.needs {
        match grant.clone() {
            NamedGrant::Host(host) => settings.hosts.push(host),
            NamedGrant::Read(path) => settings.read.push(path),
            NamedGrant::Write(path) => settings.write.push(path),
            NamedGrant::Env(name) => settings.env.push(name),
            NamedGrant::Off | NamedGrant::Net | NamedGrant::Port(_) | NamedGrant::Socket(_) | _ => {}
        }
    }
    Ok(settings)
}

/// Returns the sandbox of a planner's program: that of the user's file without its project, and with what the program needs itself.
fn settings(app: &App, config: &PlannerConfig, kit: Option<Kit>) -> Result<SandboxSettings, CliError> {
    let mut settings = SandboxSettings {
        mode: app.config()?.sandbox().mode,
        env: config.env.clone(),
        read: config.read.iter().map(|path| at_home(app, path)).collect(),
        write: config.write.iter().map(|path| at_home(app, path)).collect(),
        ..SandboxSettings::default()
    };
    let of_kit = kit.map(Kit::hosts).unwrap_or_default().iter().copied();
    for host in config.hosts.iter().map(String::as_str).chain(of_kit) {
        let host: HostGrant = host.parse().map_err(|error| {
            CliError::usage(format!("`[planner]` of your configuration: {}", error_chain(&error)))
        })?;
        settings.hosts.push(host);
    }
    if let Some(kit) = kit {
        let places = kit.places().iter().map(|place| at_home(app, &Path::new("~").join(place)));
        settings.write.extend(places.filter(|place| place.exists()));
        settings.env.extend(kit.variables().iter().map(|name| (*name).to_owned()));
    }
    Ok(settings)
}

/// Returns the path with a leading `~` replaced by the home directory.
fn at_home(app: &App, path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), app.environment().path("HOME")) {
        (Ok(rest), Some(home)) => home.join(rest),
        (Ok(_) | Err(_), _) => path.to_owned(),
    }
}
