//! Fault injection: switches that disable a safeguard, as positive controls of tests. Compiled only with the
//! feature `faults`.

use std::sync::atomic::{AtomicU32, Ordering};

/// The safeguards that can be disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Fault {
    /// The supervisor does not kill the remaining processes when its engine is gone.
    NoSweep = 1,
    /// The supervisor does not hold the lock of its run, so the lock is free as soon as the engine is gone.
    EarlyLock = 2,
    /// The end of a call kills only its process group, not the processes that have left the group.
    OnlyGroup = 4,
    /// The sandbox has no namespaces: no mounts that cover excluded paths, and no network namespace.
    NoNamespaces = 8,
    /// The sandbox does not restrict the network in any way.
    NoNetworkWall = 16,
    /// The sandbox does not use Landlock.
    NoLandlock = 32,
    /// Landlock does not prevent signals to processes outside, nor access to their abstract sockets.
    NoScope = 64,
    /// The sandbox does not filter system calls.
    NoFilter = 128,
    /// Sandboxed programs keep the capabilities of the user.
    KeepCapabilities = 256,
    /// Programs of different calls are not isolated from each other.
    SharedRoom = 512,
    /// The sandbox has no process namespace.
    SharedProcesses = 1024,
    /// Granted names lead to every address, and connections to port 443 may ask for any server.
    AnyDestination = 2048,
    /// Programs connect by themselves, and no broker decides.
    NoConnectBroker = 4096,
    /// The broker decides about a connection, and then lets the program make it.
    CheckedConnect = 8192,
    /// The sandbox has namespaces without rights in them, so that nothing can be mounted: that is level B.
    NoMounts = 16384,
    /// Landlock has only the rules for files, as before Linux 6.7. Without namespaces that is level D.
    OldLandlock = 32768,
}

static ACTIVE: AtomicU32 = AtomicU32::new(0);

/// Disables a safeguard in this process, and in the supervisors that it starts from now on.
pub fn enable(fault: Fault) {
    ACTIVE.fetch_or(fault as u32, Ordering::Relaxed);
}

/// Returns the disabled safeguards as a bit set, for a supervisor.
pub(crate) fn bits() -> u32 {
    ACTIVE.load(Ordering::Relaxed)
}

/// Disables the safeguards of a bit set from the engine.
pub(crate) fn enable_bits(bits: u32) {
    ACTIVE.fetch_or(bits, Ordering::Relaxed);
}

pub(crate) fn is_on(fault: Fault) -> bool {
    bits() & fault as u32 != 0
}
