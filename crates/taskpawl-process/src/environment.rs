use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The environment variables of a program. A supervised program also gets `TASKPAWL_PROCESS`, which
/// identifies its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Environment {
    /// The variables of the process that starts the program, with changes: a value sets a variable, `None`
    /// removes it. A supervisor has the variables that its engine had when the supervisor was started.
    Inherit(BTreeMap<OsString, Option<OsString>>),
    /// Only these variables.
    Exactly(BTreeMap<OsString, OsString>),
}

impl Default for Environment {
    fn default() -> Self {
        Self::Inherit(BTreeMap::new())
    }
}

impl Environment {
    /// Returns the environment with additional variables, which replace variables of the same names.
    #[must_use]
    pub fn with(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        match &mut self {
            Self::Inherit(all) => all.extend(variables.into_iter().map(|(name, value)| (name, Some(value)))),
            Self::Exactly(all) => all.extend(variables),
        }
        self
    }

    /// Returns whether a program has this variable.
    pub fn contains(&self, name: &OsStr) -> bool {
        self.get(name).is_some()
    }

    /// Returns all variables of a program.
    pub fn variables(&self) -> BTreeMap<OsString, OsString> {
        match self {
            Self::Inherit(changes) => {
                let mut all: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
                for (name, value) in changes {
                    match value {
                        Some(value) => _ = all.insert(name.clone(), value.clone()),
                        None => _ = all.remove(name),
                    }
                }
                all
            }
            Self::Exactly(variables) => variables.clone(),
        }
    }

    #[cfg(feature = "programs")]
    /// Returns the `PATH` of the program, in which the program itself is also looked up.
    pub(crate) fn path(&self) -> Option<OsString> {
        self.get(OsStr::new("PATH"))
    }

    fn get(&self, name: &OsStr) -> Option<OsString> {
        match self {
            Self::Inherit(changes) => match changes.get(name) {
                Some(value) => value.clone(),
                None => std::env::var_os(name),
            },
            Self::Exactly(variables) => variables.get(name).cloned(),
        }
    }
}
