//! Ways to break the command line on purpose: tests switch one on and must then see what it otherwise keeps from happening.
//!
//! They are compiled only with the feature `faults`, which nothing but tests turns on.

#[cfg(feature = "faults")]
use std::sync::atomic::{AtomicU8, Ordering};

/// What is left out or done wrong.
#[cfg_attr(not(feature = "faults"), expect(unreachable_pub, reason = "public with the feature `faults`"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Text reaches the terminal as it is.
    RawTerminal,
}

/// One bit for each fault.
#[cfg(feature = "faults")]
static ENABLED: AtomicU8 = AtomicU8::new(0);

/// Breaks this process from now on.
#[cfg(feature = "faults")]
pub fn enable(fault: Fault) {
    ENABLED.fetch_or(1 << fault as u8, Ordering::SeqCst);
}

/// Returns whether a fault is on.
#[cfg(feature = "faults")]
pub(crate) fn is_on(fault: Fault) -> bool {
    ENABLED.load(Ordering::Relaxed) & (1 << fault as u8) != 0
}

/// Returns whether a fault is on: without the feature, none is.
#[cfg(not(feature = "faults"))]
pub(crate) const fn is_on(_: Fault) -> bool {
    false
}
