//! The sources of the secrets that plans name. Only the user's file may define them: a project could otherwise read
//! any file or variable of the user.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;
use taskpawl::model::value::is_secret_name;
use taskpawl::tools::{ConfiguredSecrets, SecretFrom};

use super::places::files;
use crate::environment::Environment;

/// The source of one secret.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) enum Definition {
    #[serde(rename = "env")]
    Variable(String),
    #[serde(rename = "file")]
    File(String),
    #[serde(rename = "command")]
    Command(Vec<String>),
}

impl Definition {
    /// Returns whether this can be the source of the secret `name`.
    pub(super) fn is_valid(&self, name: &str) -> bool {
        let is_whole = match self {
            Self::Variable(name) => !name.is_empty(),
            // Relative paths are refused: they would name a different file in each project.
            Self::File(path) => path.starts_with('/') || path.starts_with("~/"),
            Self::Command(argv) => !argv.is_empty(),
        };
        is_whole && is_secret_name(name)
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "env = {}", json!(name)),
            Self::File(path) => write!(f, "file = {}", json!(path)),
            Self::Command(argv) => write!(f, "command = {}", json!(argv)),
        }
    }
}

/// The sources by the name of the secret.
#[derive(Debug, Default)]
pub(super) struct Secrets(BTreeMap<String, Definition>);

impl Secrets {
    pub(super) fn set(&mut self, name: String, definition: Definition) {
        self.0.insert(name, definition);
    }

    /// Returns the reader of the secrets' values, in this environment.
    pub(super) fn source(&self, environment: &Environment) -> ConfiguredSecrets {
        let user = files(environment).user;
        let directory =
            user.as_deref().and_then(Path::parent).map_or_else(|| PathBuf::from("/"), Path::to_owned);
        let from = |definition: &Definition| match definition {
            Definition::Variable(name) => {
                SecretFrom::Variable { name: name.clone(), value: environment.text(name) }
            }
            Definition::File(path) => SecretFrom::File(expanded(path, environment)),
            Definition::Command(argv) => {
                SecretFrom::Command { argv: argv.clone(), directory: directory.clone() }
            }
        };
        let secrets = self.0.iter().map(|(name, definition)| (name.clone(), from(definition)));
        let file = user
            .map_or_else(|| "the user's configuration".to_owned(), |path| format!("`{}`", path.display()));
        ConfiguredSecrets::new(
            secrets.collect(),
            format!("a section `[secrets.NAME]` of {file} says where it is"),
        )
    }
}

/// Returns the path with a leading `~/` replaced by the home directory.
fn expanded(path: &str, environment: &Environment) -> PathBuf {
    let home = || environment.path("HOME");
    match path.strip_prefix("~/").zip(home()) {
        Some((below, home)) => home.join(below),
        None => PathBuf::from(path),
    }
}
