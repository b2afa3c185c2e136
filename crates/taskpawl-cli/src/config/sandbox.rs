//! `[sandbox]`: permissions of programs. The user's file grants; the project's file and the environment variable can
//! only narrow.

use std::path::{Path, PathBuf};

use serde_json::json;
use taskpawl::{SandboxMode, SandboxSettings};
use toml::Spanned;
use toml::de::DeValue;

use super::values::{line, wrong};
use super::{Config, ConfigError, Layer, Origin};
use crate::commands::parse;

/// The meaning of the section.
pub(crate) const MEANING: &str =
    "what programs may do; the file of a project only narrows what that of the user says";

/// The environment variable that narrows the mode.
pub(crate) const VARIABLE: &str = "TASKPAWL_SANDBOX";

const MODES: &str = "on, strict or off";
const PATHS: &str = "a list of paths such as [\"~/.cache\", \"/srv/data\"]";
const NAMES: &str = "a list of names such as [\"DEPLOY_STAGE\", \"APP_*\"]";

/// The settings of both files and of the variable.
#[derive(Debug, Default)]
pub(super) struct Sandbox {
    user: SandboxSettings,
    user_mode: Option<SandboxMode>,
    /// Settings of the project; it holds restrictions only.
    project: SandboxSettings,
    least_mode: Option<SandboxMode>,
    no_net: bool,
}

impl Sandbox {
    /// Returns the merged permissions of programs.
    pub(super) fn settings(&self) -> SandboxSettings {
        let (user, project) = (&self.user, &self.project);
        let both = |own: &[PathBuf], other: &[PathBuf]| own.iter().chain(other).cloned().collect();
        SandboxSettings {
            mode: self.mode(),
            net: user.net && !self.no_net,
            hide: both(&user.hide, &project.hide),
            protect: both(&user.protect, &project.protect),
            memory: least(user.memory, project.memory),
            processes: least(user.processes, project.processes),
            ..user.clone()
        }
    }

    fn mode(&self) -> SandboxMode {
        let own = self.user_mode.unwrap_or_default();
        // Modes are ordered by strictness.
        self.least_mode.map_or(own, |least| own.max(least))
    }

    fn narrow_mode(&mut self, mode: SandboxMode) {
        self.least_mode = Some(self.least_mode.map_or(mode, |least| least.max(mode)));
    }
}

/// One entry of the section.
struct Entry<'a> {
    path: &'a Path,
    text: &'a str,
    name: String,
    at: usize,
    value: &'a Spanned<DeValue<'a>>,
}

impl Entry<'_> {
    fn wrong(&self, expected: &'static str) -> ConfigError {
        wrong(self.path, self.text, &self.name, MEANING, self.at, self.value, expected)
    }

    fn texts(&self, expected: &'static str) -> Result<Vec<String>, ConfigError> {
        let DeValue::Array(items) = self.value.get_ref() else { return Err(self.wrong(expected)) };
        let texts = items.iter().map(|item| item.get_ref().as_str().filter(|text| !text.is_empty()));
        let texts = texts.map(|text| text.map(str::to_owned)).collect::<Option<Vec<_>>>();
        texts.ok_or_else(|| self.wrong(expected))
    }

    fn paths(&self) -> Result<Vec<PathBuf>, ConfigError> {
        Ok(self.texts(PATHS)?.into_iter().map(PathBuf::from).collect())
    }

    fn flag(&self) -> Result<bool, ConfigError> {
        self.value.get_ref().as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    fn mode(&self) -> Result<SandboxMode, ConfigError> {
        let mode = self.value.get_ref().as_str().and_then(|text| text.parse().ok());
        mode.ok_or_else(|| self.wrong(MODES))
    }

    fn size(&self) -> Result<u64, ConfigError> {
        let size = self.value.get_ref().as_str().and_then(|text| parse::size(text).ok());
        size.filter(|size| *size > 0).ok_or_else(|| self.wrong("a size such as \"4GiB\""))
    }

    fn number(&self) -> Result<u64, ConfigError> {
        let number = self.value.get_ref().as_integer().and_then(|number| number.to_string().parse().ok());
        number.filter(|number| *number > 0).ok_or_else(|| self.wrong("a number of at least 1"))
    }

    /// Returns the error for an entry of a project that would widen the user's permissions.
    fn widens(&self) -> ConfigError {
        ConfigError::Widens {
            path: self.path.to_owned(),
            line: line(self.text, self.at),
            key: self.name.clone(),
        }
    }
}

impl Config {
    /// Returns the permissions of programs, before flags of the command line.
    pub(crate) fn sandbox(&self) -> SandboxSettings {
        self.sandbox.settings()
    }

    /// Reads one entry of the section.
    pub(super) fn read_sandbox(
        &mut self,
        path: &Path,
        text: &str,
        layer: Layer,
        key: &str,
        at: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let entry = Entry { path, text, name: format!("sandbox.{key}"), at, value };
        let sandbox = &mut self.sandbox;
        match layer {
            Layer::User => take_of_user(sandbox, key, &entry)?,
            Layer::Project => take_of_project(sandbox, key, &entry)?,
        }
        let origin = Origin::File(path.to_owned());
        self.note_sandbox(key, &entry.name, origin);
        Ok(())
    }

    /// Applies the variable. It may only narrow, because any parent process may have set it.
    pub(super) fn narrow_sandbox(&mut self, value: &str) -> Result<(), ConfigError> {
        let origin = Origin::Variable(VARIABLE);
        let refused = |expected| ConfigError::Value {
            origin: origin.clone(),
            line: None,
            name: "sandbox.mode".to_owned(),
            meaning: MEANING,
            value: value.to_owned(),
            expected,
        };
        let mode: SandboxMode = value.parse().map_err(|_| refused("on or strict"))?;
        if mode == SandboxMode::Off {
            return Err(refused("on or strict; `--sandbox off` and the file of the user turn it off"));
        }
        // `config list` names the variable as the source only if it changed the mode.
        let was = self.sandbox.mode();
        self.sandbox.narrow_mode(mode);
        if self.sandbox.mode() != was {
            self.note_sandbox("mode", "sandbox.mode", origin);
        }
        Ok(())
    }

    fn note_sandbox(&mut self, key: &str, name: &str, origin: Origin) {
        let settings = self.sandbox.settings();
        let value = match key {
            "mode" => settings.mode.to_string(),
            "net" => settings.net.to_string(),
            "write" => json!(settings.write).to_string(),
            "read" => json!(settings.read).to_string(),
            "env" => json!(settings.env).to_string(),
            "hide" => json!(settings.hide).to_string(),
            "protect" => json!(settings.protect).to_string(),
            "memory" => settings.memory.unwrap_or_default().to_string(),
            _ => settings.processes.unwrap_or_default().to_string(),
        };
        self.note(name.to_owned(), value, origin);
    }
}

fn take_of_user(sandbox: &mut Sandbox, key: &str, entry: &Entry<'_>) -> Result<(), ConfigError> {
    let user = &mut sandbox.user;
    match key {
        "mode" => sandbox.user_mode = Some(entry.mode()?),
        "net" => user.net = entry.flag()?,
        "write" => user.write = entry.paths()?,
        "read" => user.read = entry.paths()?,
        "env" => user.env = entry.texts(NAMES)?,
        "hide" => user.hide = entry.paths()?,
        "protect" => user.protect = entry.paths()?,
        "memory" => user.memory = Some(entry.size()?),
        "processes" => user.processes = Some(entry.number()?),
        _ => return Err(unknown(entry)),
    }
    Ok(())
}

fn take_of_project(sandbox: &mut Sandbox, key: &str, entry: &Entry<'_>) -> Result<(), ConfigError> {
    let project = &mut sandbox.project;
    match key {
        "mode" => match entry.mode()? {
            SandboxMode::Off => return Err(entry.widens()),
            mode @ (SandboxMode::On | SandboxMode::Strict) => sandbox.narrow_mode(mode),
        },
        "net" if entry.flag()? => return Err(entry.widens()),
        "net" => sandbox.no_net = true,
        "hide" => project.hide = entry.paths()?,
        "protect" => project.protect = entry.paths()?,
        "memory" => project.memory = Some(entry.size()?),
        "processes" => project.processes = Some(entry.number()?),
        "write" | "read" | "env" => return Err(entry.widens()),
        _ => return Err(unknown(entry)),
    }
    Ok(())
}

fn unknown(entry: &Entry<'_>) -> ConfigError {
    let hint = "of the sandbox `mode`, `net`, `write`, `read`, `env`, `hide`, `protect`, `memory` and `processes` can be said";
    ConfigError::UnknownKey {
        path: entry.path.to_owned(),
        line: line(entry.text, entry.at),
        key: entry.name.clone(),
        hint: hint.to_owned(),
    }
}

fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}
