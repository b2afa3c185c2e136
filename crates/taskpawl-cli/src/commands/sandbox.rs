//! Command-line options for the restrictions on programs.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use taskpawl::tools::{HostGrant, InvalidHostGrant, NamedGrant, OwnListener, Power, powerful_server};
use taskpawl::{SandboxMode, SandboxSettings};

use crate::caller::{AgentSign, Caller};
use crate::context::Context;
use crate::environment::Environment;
use crate::error::CliError;
use crate::person;
use crate::text::{path_word, quoted};

/// Flags of the commands that start programs.
#[derive(Debug, Clone, Default, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
#[command(
    next_help_heading = "Permissions of programs (given by people; agents need `agents_may` of the policy)"
)]
pub(crate) struct SandboxArgs {
    /// Run programs in the sandbox (on), in one that shows them nothing else (strict, needs bwrap), or in none (off)
    /// [env: TASKPAWL_SANDBOX, which cannot say off] [default: on]
    #[arg(long, value_name = "MODE", value_enum, hide_possible_values = true)]
    sandbox: Option<Mode>,
    /// Let programs use the network
    #[arg(long)]
    allow_net: bool,
    /// Let programs reach this host on ports 443 and 80, or on the port given; *.example.org stands for all names beneath
    /// it
    #[arg(long, value_name = "NAME[:PORT]", value_parser = granted_host)]
    allow_host: Vec<HostGrant>,
    /// Let programs connect to this port of localhost
    #[arg(long, value_name = "PORT", value_parser = granted_port)]
    allow_port: Vec<u16>,
    /// Let programs write to this file or directory too; also to one that is protected, if it is named itself; then file
    /// tools write to it as well
    #[arg(long, value_name = "PATH")]
    allow_write: Vec<PathBuf>,
    /// Let programs read this file or directory too; also one that is hidden, as .env is, if it is named itself; then
    /// file tools read it as well
    #[arg(long, value_name = "PATH")]
    allow_read: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    On,
    Strict,
    Off,
}

impl SandboxArgs {
    /// Returns the sandbox settings. Flags override the configuration or add to it.
    pub(crate) fn settings(&self, context: &Context) -> Result<SandboxSettings, CliError> {
        let mut settings = context.config()?.sandbox();
        match self.sandbox {
            Some(Mode::On) => settings.mode = SandboxMode::On,
            Some(Mode::Strict) => settings.mode = SandboxMode::Strict,
            Some(Mode::Off) => settings.mode = SandboxMode::Off,
            None => {}
        }
        // Allowed paths are accepted with `--sandbox off`, because they also open paths to the built-in file
        // tools.
        if self.sandbox == Some(Mode::Off) && self.allow_net {
            let hint =
                "leave `--sandbox off` out: `--allow-net` widens the sandbox, and may be all that is needed";
            return Err(CliError::usage_with("without a sandbox programs have the network anyway", hint));
        }
        let (write, read) = (
            places("--allow-write", context.environment(), &self.allow_write)?,
            places("--allow-read", context.environment(), &self.allow_read)?,
        );
        self.refuse_agents(context, &write, &read)?;
        self.check_effect(&settings)?;
        settings.net |= self.allow_net;
        settings.hosts.extend(self.allow_host.iter().cloned());
        settings.ports.extend(&self.allow_port);
        settings.write.extend(write);
        settings.read.extend(read);
        Ok(settings)
    }

    /// Refuses flags of coding agents, except those that a policy lets them give.
    ///
    /// A program of a call is no such agent: the sandbox around it bounds all that it starts.
    fn refuse_agents(&self, context: &Context, write: &[PathBuf], read: &[PathBuf]) -> Result<(), CliError> {
        let grants = self.grants(write, read);
        let Some(first) = grants.first() else { return Ok(()) };
        let sign = match context.caller() {
            Caller::Agent(AgentSign::Call) | Caller::Person | Caller::Program => return Ok(()),
            Caller::Agent(sign) => sign.clone(),
        };
        let policy = context.policy()?;
        let refused = grants.iter().find(|(_, grant)| !policy.agents_may(grant));
        match refused {
            Some((flag, grant)) => Err(CliError::GrantByAgent { flag, grant: grant.clone(), sign }),
            None => person::check_power(context, Power::Agents, first.0),
        }
    }

    /// Returns the flags that widen the sandbox, each with its grant.
    fn grants(&self, write: &[PathBuf], read: &[PathBuf]) -> Vec<(&'static str, NamedGrant)> {
        let off = (self.sandbox == Some(Mode::Off)).then_some(("--sandbox off", NamedGrant::Off));
        let net = self.allow_net.then_some(("--allow-net", NamedGrant::Net));
        let hosts = self.allow_host.iter().map(|host| ("--allow-host", NamedGrant::Host(host.clone())));
        let ports = self.allow_port.iter().map(|port| ("--allow-port", NamedGrant::Port(*port)));
        let write = write.iter().map(|path| ("--allow-write", NamedGrant::Write(path.clone())));
        let read = read.iter().map(|path| ("--allow-read", NamedGrant::Read(path.clone())));
        off.into_iter().chain(net).chain(hosts).chain(ports).chain(write).chain(read).collect()
    }

    /// Refuses grants of hosts and ports that would have no effect.
    fn check_effect(&self, settings: &SandboxSettings) -> Result<(), CliError> {
        let flag = match (self.allow_host.is_empty(), self.allow_port.is_empty()) {
            (false, _) => "--allow-host",
            (true, false) => "--allow-port",
            (true, true) => return Ok(()),
        };
        if settings.mode == SandboxMode::Off || settings.net || self.allow_net {
            let message = format!("`{flag}` has no effect: programs have the whole network");
            let hint = format!("leave `{flag}` out, or `--allow-net` and `--sandbox off`");
            return Err(CliError::usage_with(message, hint));
        }
        Ok(())
    }

    /// Returns these options as words of a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let mode = self.sandbox.and_then(|mode| Some(mode.to_possible_value()?.get_name().to_owned()));
        let mode = mode.into_iter().flat_map(|mode| ["--sandbox".to_owned(), mode]);
        let net = self.allow_net.then(|| "--allow-net".to_owned());
        let paths = |flag: &'static str, paths: &[PathBuf]| {
            let words = paths.iter().flat_map(|path| [flag.to_owned(), path_word(path)]);
            words.collect::<Vec<_>>()
        };
        let (write, read) =
            (paths("--allow-write", &self.allow_write), paths("--allow-read", &self.allow_read));
        let hosts = self.allow_host.iter().flat_map(|host| ["--allow-host".to_owned(), host.to_string()]);
        let ports = self.allow_port.iter().flat_map(|port| ["--allow-port".to_owned(), port.to_string()]);
        mode.chain(net).chain(hosts).chain(ports).chain(write).chain(read).collect()
    }
}

/// Parses a host. A wildcard must not cover a public suffix such as `github.io`, beneath which anybody can register names; the crate
/// `psl` brings the list of them, which no rule on the number of labels replaces.
pub(super) fn granted_host(text: &str) -> Result<HostGrant, String> {
    let host: HostGrant = text.parse().map_err(|error: InvalidHostGrant| error.to_string())?;
    let name = host.name();
    if host.is_wildcard() && psl::suffix_str(name) == Some(name) {
        return Err(format!(
            "names beneath `{name}` are open to registration, so a wildcard would let programs reach any server; name the host itself"
        ));
    }
    Ok(host)
}

/// Parses a port of this machine.
pub(super) fn granted_port(text: &str) -> Result<u16, String> {
    let port =
        text.parse().ok().filter(|port: &u16| *port > 0).ok_or("a port is a number from 1 to 65535")?;
    if OwnListener::is_announced(port) {
        return Err(format!("a server of taskpawl listens at port {port}, and programs never reach one"));
    }
    match powerful_server(port) {
        Some(server) => Err(format!(
            "port {port} is that of {server}, whose clients can do everything, which is as good as no sandbox; if that is meant, use `--sandbox off` for this run"
        )),
        None => Ok(port),
    }
}

/// Returns the paths of a flag. A missing path is refused: it is most likely mistyped, and no rule can be
/// made for it.
pub(super) fn places(
    flag: &str,
    environment: &Environment,
    paths: &[PathBuf],
) -> Result<Vec<PathBuf>, CliError> {
    let there = |path: &PathBuf| {
        let path = at_home(environment, path)?;
        if path.exists() {
            return Ok(path);
        }
        let message = format!("`{flag}` names {}, which does not exist", quoted(&path.display().to_string()));
        Err(CliError::usage_with(message, "make it first, or name the directory that it shall be in"))
    };
    paths.iter().map(there).collect()
}

/// Returns the absolute path. Shells do not expand `~` in `--allow-read=~/x` or in quotes, so this does.
fn at_home(environment: &Environment, path: &Path) -> Result<PathBuf, CliError> {
    match (path.strip_prefix("~"), environment.path("HOME")) {
        (Ok(rest), Some(home)) => Ok(home.join(rest)),
        (Ok(_), None) => {
            let message =
                format!("{} begins with `~`, and HOME is not set", quoted(&path.display().to_string()));
            Err(CliError::usage_with(message, "write the path in full"))
        }
        (Err(_), _) => Ok(environment.directory.join(path)),
    }
}
