//! Plans whose events the host program reports itself.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// Names of plans. Clones share them, so that a host can add plans while a run goes on.
#[derive(Debug, Clone, Default)]
pub struct QuietPlans(Arc<RwLock<BTreeSet<String>>>);

impl QuietPlans {
    /// Adds a plan.
    pub fn insert(&self, plan: impl Into<String>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(plan.into());
    }

    pub(crate) fn contains(&self, plan: &str) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(plan)
    }
}
