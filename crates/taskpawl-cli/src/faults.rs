//! Faults that tests inject into the command line, to prove that a check would notice them.
//!
//! They are compiled only with the feature `faults`, which only tests enable.

#[cfg(feature = "faults")]
use std::sync::atomic::{AtomicU8, Ordering};

/// A fault to inject.
#[cfg_attr(not(feature = "faults"), expect(unreachable_pub, reason = "public with the feature `faults`"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Text reaches the terminal without escaping.
    RawTerminal,
}

/// The enabled faults, one bit for each.
#[cfg(feature = "faults")]
static ENABLED: AtomicU8 = AtomicU8::new(0);

/// Enables a fault for the rest of the process.
#[cfg(feature = "faults")]
pub fn enable(fault: Fault) {
    ENABLED.fetch_or(1 << fault as u8, Ordering::SeqCst);
}

/// Returns whether a fault is enabled.
#[cfg(feature = "faults")]
pub(crate) fn is_on(fault: Fault) -> bool {
    ENABLED.load(Ordering::Relaxed) & (1 << fault as u8) != 0
}

/// Returns `false`: without the feature, no fault can be enabled.
#[cfg(not(feature = "faults"))]
pub(crate) const fn is_on(_: Fault) -> bool {
    false
}
