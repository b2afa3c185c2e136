//! Switches that take a safeguard away, so that tests can show that they would notice. Compiled only with the feature `faults`.

use std::sync::atomic::{AtomicU32, Ordering};

/// A safeguard that is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Fault {
    /// The supervisor leaves everything alive that is there when its engine is gone.
    NoSweep = 1,
    /// The supervisor does not hold the lock of its run, so that it is free as soon as the engine is gone.
    EarlyLock = 2,
    /// The end of a call ends its process group and nothing that has left the group.
    OnlyGroup = 4,
    /// A sandbox has no namespaces: neither mounts that cover something nor a network of its own.
    NoNamespaces = 8,
    /// A sandbox does not keep the network out, by no means.
    NoNetworkWall = 16,
    /// A sandbox does without Landlock.
    NoLandlock = 32,
    /// Landlock does not keep programs from signalling others and from their abstract sockets.
    NoScope = 64,
    /// A sandbox does not filter system calls.
    NoFilter = 128,
    /// Programs in a sandbox keep the capabilities that the user has.
    KeepCapabilities = 256,
    /// The programs of all calls may look into each other.
    SharedRoom = 512,
}

static ACTIVE: AtomicU32 = AtomicU32::new(0);

/// Takes a safeguard away, in this process and in the supervisors that it starts from now on.
pub fn enable(fault: Fault) {
    ACTIVE.fetch_or(fault as u32, Ordering::Relaxed);
}

/// Returns what is taken away, as one number for another process.
pub(crate) fn bits() -> u32 {
    ACTIVE.load(Ordering::Relaxed)
}

/// Takes away what another process says.
pub(crate) fn enable_bits(bits: u32) {
    ACTIVE.fetch_or(bits, Ordering::Relaxed);
}

pub(crate) fn is_on(fault: Fault) -> bool {
    bits() & fault as u32 != 0
}
