//! Deliberate faults. A test enables one and then has to observe the failure that the engine normally prevents: the
//! positive control of the crash and security tests.
//!
//! They are only compiled with the feature `faults`, which only tests enable.

#[cfg(feature = "faults")]
use std::sync::atomic::{AtomicU8, Ordering};

/// A protection that is switched off.
#[cfg_attr(not(feature = "faults"), expect(unreachable_pub, reason = "public with the feature `faults`"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Every start of a call gets a new idempotency key.
    FreshKeys,
    /// Every call that a dead run had started is started again, even if that is unsafe.
    RepeatEverything,
    /// Everything that a call adds to its plan is done as if a person had asked for it.
    AddAnything,
    /// Results of calls are stored with their secrets.
    KeepSecrets,
    /// New files that other programs obey are searched only after each call, neither at the end of a run nor after a kill.
    NoLastLook,
    /// An executor of calls of other processes keeps no record of the starts.
    NoStartRecord,
    /// It keeps no table of running calls: a ticket that comes again starts again.
    NoTable,
    /// A newer start of a call does not end an older one.
    NoFencing,
}

/// One bit per fault.
#[cfg(feature = "faults")]
static ENABLED: AtomicU8 = AtomicU8::new(0);

/// Enables a fault for all engines of this process, permanently.
#[cfg(feature = "faults")]
pub fn enable(fault: Fault) {
    ENABLED.fetch_or(1 << fault as u8, Ordering::SeqCst);
}

/// Returns whether a fault is enabled.
#[cfg(feature = "faults")]
pub(crate) fn is_on(fault: Fault) -> bool {
    ENABLED.load(Ordering::Relaxed) & (1 << fault as u8) != 0
}

/// Returns false: without the feature there are no faults.
#[cfg(not(feature = "faults"))]
pub(crate) const fn is_on(_: Fault) -> bool {
    false
}
