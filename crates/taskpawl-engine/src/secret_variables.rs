//! Secret variables of a run, redacted like the secrets of the engine.

use std::sync::Arc;

use taskpawl_manager::Manager;
use taskpawl_tools::{SecretError, SecretSource};

use crate::engine::Engine;
use crate::variables::RunVariables;

impl Engine {
    /// Returns the manager for the commands that lead to a run with these variables, such as applying its plan. Texts that it
    /// stores have no secret variables either.
    pub fn manager_for(&self, variables: &RunVariables) -> Manager {
        self.with_variables(variables).manager
    }

    /// Returns an engine that redacts the secret variables of a run in addition to its own secrets.
    pub(crate) fn with_variables(&self, variables: &RunVariables) -> Self {
        if variables.redacted_names().next().is_none() {
            return self.clone();
        }
        let (outer, variables) = (Arc::clone(&self.secrets), variables.clone());
        self.clone().with_secrets(Arc::new(VariableSecrets { outer, variables }))
    }
}

/// Secrets of the engine, and the secret variables of a run. Arguments cannot name the latter.
#[derive(Debug)]
struct VariableSecrets {
    outer: Arc<dyn SecretSource>,
    variables: RunVariables,
}

impl SecretSource for VariableSecrets {
    fn secret(&self, name: &str) -> Result<String, SecretError> {
        self.outer.secret(name)
    }

    fn at_hand(&self) -> Vec<(String, String)> {
        // A dot cannot stand in the name of a secret, so that a secret of the same name stays apart.
        let variables =
            self.variables.secrets().map(|(name, value)| (format!("env.{name}"), value.to_owned()));
        self.outer.at_hand().into_iter().chain(variables).collect()
    }
}
