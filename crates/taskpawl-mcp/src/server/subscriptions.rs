//! The addresses that a client of the older era has subscribed to.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::task::TaskTracker;

/// The subscriptions of a client of the older era. They belong to its connection.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    uris: Mutex<BTreeSet<String>>,
    pub(super) tracker: TaskTracker,
}

impl Subscriptions {
    pub(super) fn remove(&self, uri: &str) {
        self.uris().remove(uri);
    }

    pub(super) fn uris(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
