//! Builds without the feature `programs` start none: each start is refused.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::SpawnError;
use crate::filter::OutputFilter;
use crate::profile::{Enforcement, Profile};
use crate::program::{Limits, Outcome, Program};
use crate::supervision::Supervision;

/// The programs of one run, of which there are none.
#[derive(Clone, Debug, Default)]
pub struct Programs(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    filter: OnceLock<Arc<dyn OutputFilter>>,
    is_closed: AtomicBool,
}

impl Programs {
    /// Creates an empty set of programs.
    pub fn new(_: Supervision) -> Self {
        Self::default()
    }

    /// Like [`new`](Self::new): no process keeps the lock open.
    pub fn with_lock(_: Supervision, _: Arc<File>) -> Self {
        Self::default()
    }

    /// Sets the output filter. The first filter that is set applies to all clones.
    pub fn filter_output(&self, filter: Arc<dyn OutputFilter>) {
        // A second filter is ignored.
        let _ = self.0.filter.set(filter);
    }

    /// Returns the output filter.
    pub fn output_filter(&self) -> Option<Arc<dyn OutputFilter>> {
        self.0.filter.get().cloned()
    }

    /// Refuses a program.
    ///
    /// # Errors
    /// Always [`SpawnError::NotBuilt`].
    #[expect(clippy::unused_async, reason = "the form that it has with programs")]
    pub async fn run(&self, _: &Program, _: &Limits, _: &CancellationToken) -> Result<Outcome, SpawnError> {
        Err(SpawnError::NotBuilt)
    }

    /// Marks the set as closed.
    #[expect(clippy::unused_async, reason = "the form that it has with programs")]
    pub async fn close(&self) {
        self.close_within(Duration::ZERO);
    }

    /// Marks the set as closed, and returns that no process is left.
    pub fn close_within(&self, _: Duration) -> bool {
        self.0.is_closed.store(true, Ordering::Relaxed);
        true
    }

    /// Returns whether the run is over.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed.load(Ordering::Relaxed)
    }

    /// Returns whether both are handles of the same set of programs.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Does nothing: no program is executed a second time.
pub fn child_entry() {}

/// Returns false: there are no supervisors.
pub fn is_below_supervisor() -> bool {
    false
}

/// Returns false: nothing tells the sandbox of another taskpawl.
pub fn is_in_sandbox() -> bool {
    false
}

/// Refuses the test of a profile.
///
/// # Errors
/// Always [`SpawnError::NotBuilt`].
pub fn probe(_: &Supervision, _: &Arc<Profile>) -> Result<Enforcement, SpawnError> {
    Err(SpawnError::NotBuilt)
}

/// Refuses the question for `bwrap`.
///
/// # Errors
/// Always [`SpawnError::NotBuilt`].
pub fn bubblewrap(_: &[PathBuf]) -> Result<String, SpawnError> {
    Err(SpawnError::NotBuilt)
}
