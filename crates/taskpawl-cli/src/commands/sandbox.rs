//! Command-line options for the restrictions on programs.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use taskpawl::{SandboxMode, SandboxSettings};

use crate::app::App;
use crate::environment::Environment;
use crate::error::CliError;
use crate::text::quoted;

/// Flags of the commands that start programs.
#[derive(Debug, Clone, Default, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
#[command(next_help_heading = "What programs may do")]
pub(crate) struct SandboxArgs {
    /// Run programs in the sandbox (on), in one that shows them nothing else (strict, needs bwrap), or in none (off)
    /// [env: TASKPAWL_SANDBOX, which cannot say off] [default: on]
    #[arg(long, value_name = "MODE", value_enum, hide_possible_values = true)]
    sandbox: Option<Mode>,
    /// Let programs use the network
    #[arg(long)]
    allow_net: bool,
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
    pub(crate) fn settings(&self, app: &App) -> Result<SandboxSettings, CliError> {
        let mut settings = app.config()?.sandbox();
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
        settings.net |= self.allow_net;
        settings.write.extend(places("--allow-write", app.environment(), &self.allow_write)?);
        settings.read.extend(places("--allow-read", app.environment(), &self.allow_read)?);
        Ok(settings)
    }

    /// Returns these options as words of a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let mode = self.sandbox.and_then(|mode| Some(mode.to_possible_value()?.get_name().to_owned()));
        let mode = mode.into_iter().flat_map(|mode| ["--sandbox".to_owned(), mode]);
        let net = self.allow_net.then(|| "--allow-net".to_owned());
        let paths = |flag: &'static str, paths: &[PathBuf]| {
            let words = paths.iter().flat_map(|path| [flag.to_owned(), path.display().to_string()]);
            words.collect::<Vec<_>>()
        };
        let (write, read) =
            (paths("--allow-write", &self.allow_write), paths("--allow-read", &self.allow_read));
        mode.chain(net).chain(write).chain(read).collect()
    }
}

/// Returns the paths of a flag. A missing path is refused: it is most likely mistyped, and no rule can be
/// made for it.
fn places(flag: &str, environment: &Environment, paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
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
