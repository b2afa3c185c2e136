//! `[sandbox]`: permissions of programs. The user's file grants; the project's file and the environment variable can
//! only narrow.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use taskpawl::tools::{NamedGrant, powerful_server};
use taskpawl::{SandboxMode, SandboxSettings};

use super::document::Document;
use super::error::ConfigError;
use super::sections::SANDBOX;
use super::setting::{Layer, Origin, Settings, replace};
use super::value::Parsed;
use crate::byte_size;

/// The environment variable that narrows the mode.
pub(crate) const VARIABLE: &str = "TASKPAWL_SANDBOX";

/// The settings of both files and of the variable.
#[derive(Debug, Default)]
pub(super) struct Sandbox {
    user: SandboxSettings,
    user_mode: Option<SandboxMode>,
    /// Settings of the project; it holds restrictions only.
    project: SandboxSettings,
    least_mode: Option<SandboxMode>,
    no_net: bool,
    /// Proposed grants, of the project's file if it has some. They open nothing.
    wants: Vec<NamedGrant>,
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

    /// Returns the grants that the project proposes.
    pub(super) fn wants(&self) -> &[NamedGrant] {
        &self.wants
    }

    /// Applies the section of a file.
    pub(super) fn read(
        &mut self,
        document: &Document<'_>,
        mut section: Section,
        notes: &mut Settings,
    ) -> Result<(), ConfigError> {
        if let Some(wants) = section.wants.take() {
            self.wants = wants.into_iter().map(|want| want.0.0).collect();
        }
        match document.layer {
            Layer::User => self.take_of_user(section),
            Layer::Project => {
                if let Some(key) = section.widening() {
                    let (path, line) = (document.path.to_owned(), document.line(&["sandbox", key]));
                    return Err(ConfigError::Widens { path, line, key: format!("sandbox.{key}") });
                }
                self.take_of_project(section);
            }
        }
        for key in document.values.get("sandbox").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            self.note(key, notes, document.origin());
        }
        Ok(())
    }

    /// Applies the variable. It may only narrow, because any parent process may have set it.
    pub(super) fn narrow(&mut self, value: &str, notes: &mut Settings) -> Result<(), ConfigError> {
        let origin = Origin::Variable(VARIABLE);
        let refused = |expected| ConfigError::Value {
            origin: origin.clone(),
            line: None,
            name: "sandbox.mode".to_owned(),
            meaning: SANDBOX.meaning,
            value: value.to_owned(),
            expected,
        };
        let mode: SandboxMode = value.parse().map_err(|_| refused("on or strict"))?;
        if mode == SandboxMode::Off {
            return Err(refused("on or strict; `--sandbox off` and the file of the user turn it off"));
        }
        // `config list` names the variable as the source only if it changed the mode.
        let was = self.mode();
        self.narrow_mode(mode);
        if self.mode() != was {
            self.note("mode", notes, origin);
        }
        Ok(())
    }

    fn note(&self, key: &str, notes: &mut Settings, origin: Origin) {
        let settings = self.settings();
        let value = match key {
            "mode" => settings.mode.to_string(),
            "net" => settings.net.to_string(),
            "write" => json!(settings.write).to_string(),
            "read" => json!(settings.read).to_string(),
            "env" => json!(settings.env).to_string(),
            "hide" => json!(settings.hide).to_string(),
            "protect" => json!(settings.protect).to_string(),
            "wants" => json!(self.wants).to_string(),
            "memory" => settings.memory.unwrap_or_default().to_string(),
            _ => settings.processes.unwrap_or_default().to_string(),
        };
        notes.note(format!("sandbox.{key}"), value, origin);
    }

    fn mode(&self) -> SandboxMode {
        let own = self.user_mode.unwrap_or_default();
        // Modes are ordered by strictness.
        self.least_mode.map_or(own, |least| own.max(least))
    }

    fn take_of_user(&mut self, section: Section) {
        let user = &mut self.user;
        self.user_mode = section.mode.map(|mode| mode.0).or(self.user_mode);
        replace(&mut user.net, section.net);
        replace(&mut user.write, section.write);
        replace(&mut user.read, section.read);
        replace(&mut user.env, section.env);
        replace(&mut user.hide, section.hide);
        replace(&mut user.protect, section.protect);
        user.memory = section.memory.map(|memory| memory.0.0).or(user.memory);
        user.processes = section.processes.map(NonZeroU64::get).or(user.processes);
    }

    /// Takes the restrictions; [`Section::widening`] has refused the rest.
    fn take_of_project(&mut self, section: Section) {
        if let Some(Parsed(mode)) = section.mode {
            self.narrow_mode(mode);
        }
        self.no_net |= section.net == Some(false);
        let project = &mut self.project;
        replace(&mut project.hide, section.hide);
        replace(&mut project.protect, section.protect);
        project.memory = section.memory.map(|memory| memory.0.0).or(project.memory);
        project.processes = section.processes.map(NonZeroU64::get).or(project.processes);
    }

    fn narrow_mode(&mut self, mode: SandboxMode) {
        self.least_mode = Some(self.least_mode.map_or(mode, |least| least.max(mode)));
    }
}

/// The section of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Section {
    mode: Option<Parsed<SandboxMode>>,
    net: Option<bool>,
    #[serde(deserialize_with = "texts")]
    write: Option<Vec<PathBuf>>,
    #[serde(deserialize_with = "texts")]
    read: Option<Vec<PathBuf>>,
    #[serde(deserialize_with = "texts")]
    env: Option<Vec<String>>,
    #[serde(deserialize_with = "texts")]
    hide: Option<Vec<PathBuf>>,
    #[serde(deserialize_with = "texts")]
    protect: Option<Vec<PathBuf>>,
    memory: Option<Parsed<Memory>>,
    processes: Option<NonZeroU64>,
    wants: Option<Vec<Parsed<Want>>>,
}

/// A grant that a project can propose: a host without wildcard, or a port.
#[derive(Debug)]
struct Want(NamedGrant);

impl FromStr for Want {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let can_be_proposed = |grant: &NamedGrant| match grant {
            NamedGrant::Host(host) => !host.is_wildcard(),
            NamedGrant::Port(port) => powerful_server(*port).is_none(),
            NamedGrant::Off
            | NamedGrant::Net
            | NamedGrant::Read(_)
            | NamedGrant::Write(_)
            | NamedGrant::Socket(_)
            | NamedGrant::Env(_)
            | _ => false,
        };
        text.parse().ok().filter(can_be_proposed).map(Self).ok_or(())
    }
}

/// A number of bytes above zero.
#[derive(Debug)]
struct Memory(u64);

impl FromStr for Memory {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        byte_size::parse(text).ok().filter(|size| *size > 0).map(Self).ok_or(())
    }
}

/// Deserializes a list without empty texts.
fn texts<'de, D: Deserializer<'de>, T: From<String>>(deserializer: D) -> Result<Option<Vec<T>>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    if texts.iter().any(String::is_empty) {
        return Err(D::Error::custom("an empty text"));
    }
    Ok(Some(texts.into_iter().map(T::from).collect()))
}

impl Section {
    /// Returns the first entry that widens permissions, which the file of a project cannot.
    fn widening(&self) -> Option<&'static str> {
        let is_off = matches!(self.mode, Some(Parsed(SandboxMode::Off)));
        let entries = [
            ("env", self.env.is_some()),
            ("mode", is_off),
            ("net", self.net == Some(true)),
            ("read", self.read.is_some()),
            ("write", self.write.is_some()),
        ];
        entries.into_iter().find_map(|(key, is_wider)| is_wider.then_some(key))
    }
}

fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}
