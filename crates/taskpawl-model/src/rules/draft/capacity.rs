//! Capacity of a round.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::command::{Grant, Round, RunRules};
use crate::value::Key;

/// Capacity and settings of a round of a run, reduced by each call that starts.
#[derive(Debug, Clone)]
pub(crate) struct RoundCapacity {
    /// Number of calls that may still start.
    pub(crate) places: usize,
    /// Number of calls of each tool that may still start; other tools are unlimited.
    pub(crate) tool_places: BTreeMap<String, usize>,
    /// Resources and paths granted to claims that have limits.
    pub(crate) grants: BTreeMap<Key, Grant>,
    /// Settings for all tasks of the run.
    pub(crate) rules: Arc<RunRules>,
    /// Tools that the run has.
    pub(crate) tools: Arc<BTreeSet<String>>,
    /// Plans whose tasks no longer start in this run.
    pub(crate) ended_plans: Arc<BTreeSet<String>>,
}

impl Default for RoundCapacity {
    fn default() -> Self {
        let (tool_places, grants, rules, tools, ended_plans) = Default::default();
        Self { places: usize::MAX, tool_places, grants, rules, tools, ended_plans }
    }
}

impl RoundCapacity {
    pub(crate) fn of(round: &Round) -> Self {
        Self {
            places: round.places,
            tool_places: round.tool_places.clone(),
            grants: round.grants.clone(),
            rules: Arc::clone(&round.rules),
            tools: Arc::clone(&round.tools),
            ended_plans: Arc::clone(&round.ended_plans),
        }
    }

    /// Reserves capacity for one call of a tool.
    pub(crate) fn take(&mut self, tool: &str) {
        self.places = self.places.saturating_sub(1);
        if let Some(places) = self.tool_places.get_mut(tool) {
            *places = places.saturating_sub(1);
        }
    }
}
