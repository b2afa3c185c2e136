//! Errors of the configuration, with the file, the line, the key and the expected form.

use std::io;
use std::path::PathBuf;

use super::setting::Origin;

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
                "remove it; the permissions of programs are set in the configuration of the user or by flags, see `taskpawl run --help`"
                    .to_owned()
            }
            Self::ActorOfProject { .. } => {
                "remove it: authors of the project would act in the name of another person; set it in the configuration of the user"
                    .to_owned()
            }
            Self::Read { .. } | Self::Syntax { .. } => "`taskpawl config path` names the files".to_owned(),
        }
    }
}
