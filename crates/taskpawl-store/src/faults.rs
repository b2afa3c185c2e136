//! Fault injection: tests enable one fault and must then observe the failure that the store normally
//! prevents.
//!
//! Compiled only with the feature `faults`, which only tests enable. They are the positive controls of the
//! crash tests.

#[cfg(feature = "faults")]
use std::sync::atomic::{AtomicU8, Ordering};

/// The safeguards that can be disabled.
#[cfg_attr(not(feature = "faults"), expect(unreachable_pub, reason = "public with the feature `faults`"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Commits are reported before they reach the disk, so that a power failure loses them.
    SkipSync,
    /// Outcomes are reported before the commit is made.
    AnswerEarly,
    /// Commands are decided on data read before the lock was taken, so that updates of other processes are
    /// lost.
    DecideBeforeLock,
    /// Writers do not take the lock file. The busy timeout of SQLite orders them instead, and some of them
    /// starve.
    NoLockFile,
    /// A failed commit is reported as a success.
    SwallowErrors,
    /// A schema migration runs statement by statement instead of in one transaction.
    MigrateInPieces,
}

/// The enabled faults, one bit each.
#[cfg(feature = "faults")]
static ENABLED: AtomicU8 = AtomicU8::new(0);

/// Enables a fault for every store of this process, permanently.
#[cfg(feature = "faults")]
pub fn enable(fault: Fault) {
    ENABLED.fetch_or(1 << fault as u8, Ordering::SeqCst);
}

/// Returns whether a fault is enabled.
#[cfg(feature = "faults")]
pub(crate) fn is_on(fault: Fault) -> bool {
    ENABLED.load(Ordering::Relaxed) & (1 << fault as u8) != 0
}

/// Returns whether a fault is enabled: never without the feature.
#[cfg(not(feature = "faults"))]
pub(crate) const fn is_on(_: Fault) -> bool {
    false
}
