use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::process::Command;

/// The environment variables that a program sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Environment {
    /// Those of this process, with changes: a value sets a variable, `None` removes it.
    Inherit(BTreeMap<OsString, Option<OsString>>),
    /// These and no others.
    Exactly(BTreeMap<OsString, OsString>),
}

impl Default for Environment {
    fn default() -> Self {
        Self::Inherit(BTreeMap::new())
    }
}

impl Environment {
    pub(crate) fn apply(&self, command: &mut Command) {
        match self {
            Self::Inherit(changes) => {
                for (name, value) in changes {
                    match value {
                        Some(value) => command.env(name, value),
                        None => command.env_remove(name),
                    };
                }
            }
            Self::Exactly(variables) => {
                command.env_clear().envs(variables);
            }
        }
    }

    /// Returns the `PATH` that the program will see, which is also the one it is looked up in.
    pub(crate) fn path(&self) -> Option<OsString> {
        let name = OsStr::new("PATH");
        match self {
            Self::Inherit(changes) => match changes.get(name) {
                Some(value) => value.clone(),
                None => std::env::var_os(name),
            },
            Self::Exactly(variables) => variables.get(name).cloned(),
        }
    }
}
