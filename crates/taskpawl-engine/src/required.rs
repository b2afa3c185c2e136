//! Environment variables that plans require, checked before anything of a run starts.

use std::ffi::OsStr;

use taskpawl_model::rules::{DecideError, resolve_among};
use taskpawl_model::task::{PlanRecord, Status};
use taskpawl_model::value::Selector;
use taskpawl_model::view::{Query, View};
use taskpawl_tools::{Confinement, SandboxMode};

use crate::engine::Engine;
use crate::error::RunError;
use crate::variables::RunVariables;

impl Engine {
    /// Returns whether a variable is set outside, so that a run can pass it on.
    pub fn has_outer_variable(&self, name: &str) -> bool {
        let (settings, places) = &*self.sandbox;
        let is_inherited = settings.mode == SandboxMode::Off && std::env::var_os(name).is_some();
        is_inherited || places.variables.contains_key(OsStr::new(name))
    }

    /// Returns those of `names` that programs would lack in a run with these variables.
    pub fn missing_variables<'n>(
        &self,
        variables: &RunVariables,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Vec<String> {
        let mut names = names.into_iter().filter(|name| !variables.contains(name)).peekable();
        // The environment is only read if something depends on it.
        if names.peek().is_none() {
            return Vec::new();
        }
        // A run has a temporary directory of its own, and `TMPDIR` with it.
        lacking(&self.confinement(self.temporary_base().as_deref(), None, None, None), names)
    }

    /// Refuses a run whose programs would lack a variable that a plan of its scope requires. Every run does this before
    /// it starts anything.
    ///
    /// # Errors
    /// A variable is missing, or the store cannot be read.
    pub fn check_variables(&self, only: &[Selector], variables: &RunVariables) -> Result<(), RunError> {
        for plan in self.manager.read(|view| requiring(view, only))? {
            let names = self.missing_variables(variables, plan.required_env());
            if !names.is_empty() {
                return Err(RunError::MissingVariables { plan: plan.name, names });
            }
        }
        Ok(())
    }
}

fn lacking<'n>(confinement: &Confinement, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let environment = confinement.environment();
    names.filter(|name| !environment.contains(OsStr::new(name))).map(str::to_owned).collect()
}

/// Returns the plans in the scope of a run that require variables and have tasks left.
fn requiring(view: &dyn View, only: &[Selector]) -> Result<Vec<PlanRecord>, DecideError> {
    let mut requiring = Vec::new();
    for plan in view.plans()? {
        if plan.required_env().next().is_some() && is_in_scope(view, &plan, only)? {
            requiring.push(plan);
        }
    }
    Ok(requiring)
}

fn is_in_scope(view: &dyn View, plan: &PlanRecord, only: &[Selector]) -> Result<bool, DecideError> {
    if only.is_empty() {
        return has_work(view, plan, Vec::new());
    }
    for selector in only {
        let is_in_scope = match selector {
            Selector::Plan(name) => *name == plan.name && has_work(view, plan, Vec::new())?,
            Selector::Label(label) => has_work(view, plan, vec![label.clone()])?,
            Selector::Task(id) => {
                let task = view.task(resolve_among(view, only, id)?)?;
                task.is_some_and(|task| task.plan.as_deref() == Some(plan.name.as_str()))
            }
        };
        if is_in_scope {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether tasks of the plan with these labels are left.
fn has_work(view: &dyn View, plan: &PlanRecord, labels: Vec<String>) -> Result<bool, DecideError> {
    let status = Status::ALL.iter().copied().filter(|status| !status.is_finished()).collect();
    let query = Query { plan: Some(plan.name.clone()), labels, status, limit: 1, ..Query::default() };
    Ok(!view.find(&query)?.is_empty())
}
