//! Values with their sources.

use std::fmt;
use std::path::PathBuf;

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

/// The owner of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    Project,
    User,
}

/// The values that `config list` shows, each once.
#[derive(Debug, Default)]
pub(super) struct Settings(Vec<Setting>);

impl Settings {
    /// Returns the values in the order in which they were noted.
    pub(super) fn all(&self) -> &[Setting] {
        &self.0
    }

    /// Returns the value with this name.
    pub(super) fn named(&self, name: &str) -> Option<&Setting> {
        self.0.iter().find(|setting| setting.name == name)
    }

    /// Records a value with its source, in place of an earlier one.
    pub(super) fn note(&mut self, name: String, value: String, origin: Origin) {
        let setting = Setting { name, value, origin };
        match self.0.iter_mut().find(|earlier| earlier.name == setting.name) {
            Some(earlier) => *earlier = setting,
            None => self.0.push(setting),
        }
    }
}

/// Replaces a value if there is another.
pub(super) fn replace<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}
