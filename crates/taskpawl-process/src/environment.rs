use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The environment variables that a program sees. A supervised one also sees `TASKPAWL_PROCESS`, by which it is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Environment {
    /// Those of the process that starts it, with changes: a value sets a variable, `None` removes it. A supervisor has those that
    /// its engine had when it started.
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
    /// Returns the environment with more variables, which replace those of the same names.
    #[must_use]
    pub fn with(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        match &mut self {
            Self::Inherit(all) => all.extend(variables.into_iter().map(|(name, value)| (name, Some(value)))),
            Self::Exactly(all) => all.extend(variables),
        }
        self
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
