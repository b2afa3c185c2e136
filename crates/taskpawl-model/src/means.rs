//! What a run has: tools, and so much of each resource.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::command::Amount;
use crate::hint::Hint;
use crate::record::CallRecord;
use crate::spec::TaskSpec;
use crate::view::{View, ViewResult};

/// What a run here would have. The store does not know it: it follows from the program and its configuration.
#[derive(Debug, Clone, Default)]
pub struct Means {
    /// The tools; `None` for every tool.
    pub tools: Option<BTreeSet<String>>,
    /// What stands before the slash in the names of tools that a run finds when it needs them.
    pub found_later: BTreeSet<String>,
    /// How much there is of resources; it comes before what plans say.
    pub capacities: BTreeMap<String, u32>,
    /// How many calls it runs at once, where nothing else says; `None` if nobody knows.
    pub jobs: Option<usize>,
    /// What is known of tools that are not there.
    pub absent: Option<Arc<dyn AbsentTools>>,
}

/// Knowledge of tools that are not there.
pub trait AbsentTools: fmt::Debug + Send + Sync {
    /// Says that no tool of this name is known, and what may have been meant.
    fn unknown(&self, name: &str) -> Hint;

    /// Says of a task that it needs this tool, and why that is not there; nothing where that is not known.
    fn lack(&self, name: &str) -> Option<String>;
}

impl Means {
    /// Returns the first tool of those calls that is not there.
    pub(crate) fn missing_tool<'c>(
        &self,
        calls: impl IntoIterator<Item = &'c CallRecord>,
    ) -> Option<&'c str> {
        let mut names = calls.into_iter().map(|call| call.spec.tool_name.as_str());
        names.find(|name| !self.has_tool(name))
    }

    /// Says that no tool of this name is known.
    pub fn unknown(&self, name: &str) -> Hint {
        let plain = || Hint::new("no tool ").data(name).text(" is known here");
        self.absent.as_ref().map_or_else(plain, |absent| absent.unknown(name))
    }

    /// Returns whether a run has a tool, or finds it as far as anybody knows.
    pub fn has_tool(&self, name: &str) -> bool {
        let Some(tools) = &self.tools else { return true };
        tools.contains(name) || name.split_once('/').is_some_and(|(of, _)| self.found_later.contains(of))
    }
}

/// Returns how much there is of each resource that somebody declares: what is given, else the least that a plan says.
pub(crate) fn capacities(
    view: &dyn View,
    given: &BTreeMap<String, u32>,
) -> ViewResult<BTreeMap<String, u32>> {
    let mut found = given.clone();
    for plan in view.plans()? {
        let Some(Value::Object(resources)) = plan.header.get("resources") else { continue };
        for (name, capacity) in resources {
            let capacity = capacity.as_u64().and_then(|capacity| u32::try_from(capacity).ok());
            if let (Some(capacity), None) = (capacity, given.get(name)) {
                let least = found.entry(name.clone()).or_insert(capacity);
                *least = capacity.min(*least);
            }
        }
    }
    Ok(found)
}

/// Returns how much there is of a resource; one that nobody declares is a lock.
pub(crate) fn capacity(capacities: &BTreeMap<String, u32>, name: &str) -> u32 {
    capacities.get(name).copied().unwrap_or(1)
}

/// Returns the first resource of which a task needs more than there is.
pub(crate) fn too_much<'s>(
    spec: &'s TaskSpec,
    capacities: &BTreeMap<String, u32>,
) -> Option<(&'s str, Amount)> {
    let amount = |units: u32, name: &str| Amount { units, of: capacity(capacities, name) };
    let mut wanted = spec.resources.iter().map(|(name, units)| (name.as_str(), amount(*units, name)));
    wanted.find(|(_, amount)| amount.units > amount.of)
}

/// Says that a task needs more of a resource than there is.
pub(crate) fn too_much_text(name: &str, Amount { units, of }: Amount) -> String {
    format!("it needs {units} of resource `{name}`, and there is {of}")
}
