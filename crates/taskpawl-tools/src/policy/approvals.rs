//! Approvals that a person has given once and for all calls that do the same work.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::call::{CallOrigin, PolicyCall, Setting};
use super::layer::{LayerDecision, LayerKind};

/// An approval that holds for each call that does the same work, in one plan or in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RememberedApproval {
    /// The hash of the tool, the arguments and the sandbox request of the call.
    pub work: String,
    /// The plan whose calls it holds for, "" for tasks without a plan; `None` for all plans.
    pub plan: Option<String>,
    /// Calls that models wrote, or whose values models wrote, are approved as well.
    pub agents: bool,
}

impl RememberedApproval {
    fn covers(&self, origin: CallOrigin, work: &str, plan: &str) -> bool {
        let is_of_plan = self.plan.as_deref().is_none_or(|own| own == plan);
        self.work == work && is_of_plan && (self.agents || !origin.is_model())
    }
}

/// The remembered approvals of a run, with those that decided about a call.
///
/// Clones share the second part, so that a program can read it after the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remembered {
    all: Arc<[RememberedApproval]>,
    used: Arc<Mutex<BTreeSet<usize>>>,
}

impl Remembered {
    pub(crate) fn of(all: Vec<RememberedApproval>) -> Self {
        Self { all: all.into(), used: Arc::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns whether one covers a call, and notes its use.
    pub(crate) fn cover(&self, origin: CallOrigin, work: &str, plan: &str) -> bool {
        let found = self.all.iter().position(|own| own.covers(origin, work, plan));
        if let Some(position) = found {
            self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(position);
        }
        found.is_some()
    }

    /// Returns those that decided about a call.
    pub(crate) fn used(&self) -> Vec<RememberedApproval> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.iter().filter_map(|position| self.all.get(*position).cloned()).collect()
    }
}

/// Returns why no remembered approval answers the question of a layer about a call; `None` if one may.
pub(crate) fn why_not(
    said: &LayerDecision<'_>,
    call: &PolicyCall<'_>,
    setting: &Setting,
) -> Option<&'static str> {
    if setting.is_off {
        return Some("the sandbox is off");
    }
    if call.sandbox.is_some_and(|need| need.net) {
        return Some("it asks for the whole network");
    }
    if said.kind() == LayerKind::Ceiling {
        return Some("the policy of the machine asks each time");
    }
    said.is_of_power().then_some("the policy asks about this power each time")
}
