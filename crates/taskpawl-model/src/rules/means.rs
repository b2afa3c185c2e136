//! The tools and resources of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::advice::hint::Hint;
use crate::command::Amount;
use crate::task::record::CallRecord;
use crate::task::spec::{TaskSpec, WORKER_RESOURCE};
use crate::view::{GivenGrants, View, ViewResult};

/// The tools and resources that a run would have. The store does not know them: they depend on the program and its
/// configuration.
#[derive(Debug, Clone, Default)]
pub struct Means {
    /// The available tools; `None` for all tools.
    pub tools: Option<BTreeSet<String>>,
    /// Names of servers, the part before the slash in tool names, whose tools are only discovered during a run.
    pub found_later: BTreeSet<String>,
    /// Capacities of resources; they override those of plans.
    pub capacities: BTreeMap<String, u32>,
    /// The number of calls that run at once by default; `None` if unknown.
    pub jobs: Option<usize>,
    /// Information about unavailable tools.
    pub absent: Option<Arc<dyn AbsentTools>>,
    /// Grants that advice does not repeat.
    pub given: Option<Arc<dyn GivenGrants>>,
}

/// Information about unavailable tools.
pub trait AbsentTools: fmt::Debug + Send + Sync {
    /// Returns a message that the tool is unknown, with a suggestion.
    fn unknown(&self, name: &str) -> Hint;

    /// Returns a message that a task needs this tool, with the reason why it is unavailable; `None` if the reason is
    /// unknown.
    fn lack(&self, name: &str) -> Option<String>;

    /// Returns whether a run may have the tool although it is not known yet: a configured server, or a file that needs
    /// trust, may bring it.
    fn may_come(&self, name: &str) -> bool;
}

impl Means {
    /// Returns the first unavailable tool of these calls.
    pub(crate) fn missing_tool<'c>(
        &self,
        calls: impl IntoIterator<Item = &'c CallRecord>,
    ) -> Option<&'c str> {
        let mut names = calls.into_iter().map(|call| call.spec.tool_name.as_str());
        names.find(|name| !self.has_tool(name))
    }

    /// Returns a message that the tool is unknown.
    pub fn unknown(&self, name: &str) -> Hint {
        let plain = || Hint::new("no tool ").data(name).text(" is known here");
        self.absent.as_ref().map_or_else(plain, |absent| absent.unknown(name))
    }

    /// Returns whether a run has a tool, or may have it later.
    pub fn may_have_tool(&self, name: &str) -> bool {
        self.has_tool(name) || self.absent.as_ref().is_some_and(|absent| absent.may_come(name))
    }

    /// Returns whether a run has a tool, or probably discovers it.
    pub fn has_tool(&self, name: &str) -> bool {
        let Some(tools) = &self.tools else { return true };
        tools.contains(name) || name.split_once('/').is_some_and(|(of, _)| self.found_later.contains(of))
    }
}

/// Returns the capacities of all declared resources: the given one, otherwise the smallest that a plan declares.
pub(crate) fn capacities(
    view: &dyn View,
    given: &BTreeMap<String, u32>,
) -> ViewResult<BTreeMap<String, u32>> {
    let mut all = given.clone();
    for plan in view.plans()? {
        let Some(Value::Object(resources)) = plan.header.get("resources") else { continue };
        for (name, capacity) in resources {
            let capacity = capacity.as_u64().and_then(|capacity| u32::try_from(capacity).ok());
            if let (Some(capacity), None) = (capacity, given.get(name)) {
                let least = all.entry(name.clone()).or_insert(capacity);
                *least = capacity.min(*least);
            }
        }
    }
    Ok(all)
}

/// Returns the capacity of a resource. An undeclared resource is a lock, with a capacity of 1; labels that no worker offers
/// have none.
pub(crate) fn capacity(capacities: &BTreeMap<String, u32>, name: &str) -> u32 {
    let undeclared = u32::from(!name.starts_with(WORKER_RESOURCE));
    capacities.get(name).copied().unwrap_or(undeclared)
}

/// Returns the first resource of which a task needs more than its capacity.
pub(crate) fn too_much(spec: &TaskSpec, capacities: &BTreeMap<String, u32>) -> Option<(String, Amount)> {
    let amount = |units: u32, name: &str| Amount { units, of: capacity(capacities, name) };
    let mut wanted = spec.wanted_resources(None).map(|(name, units)| {
        let amount = amount(units, &name);
        (name, amount)
    });
    wanted.find(|(_, amount)| amount.units > amount.of)
}

/// Returns the message for a task that needs more of a resource than its capacity.
pub(crate) fn too_much_text(name: &str, Amount { units, of }: Amount) -> String {
    if let Some(label) = name.strip_prefix(WORKER_RESOURCE) {
        return format!("no worker offers `{label}`");
    }
    format!("it needs {units} of resource `{name}`, which has {of}")
}
