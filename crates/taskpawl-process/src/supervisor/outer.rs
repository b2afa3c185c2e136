//! The sandbox of another taskpawl around this process.

use std::sync::OnceLock;

use rustix::process::Pid;
use rustix::thread::{SecureComputingMode, no_new_privs, secure_computing_mode};

use super::process_tree::is_supervisor;

/// Returns whether this process is a program of a run in that run's sandbox, with a process namespace. A sandbox of its own adds little
/// there: it gets no namespaces, and relies on those around it.
pub fn is_in_sandbox() -> bool {
    static IS_INSIDE: OnceLock<bool> = OnceLock::new();
    *IS_INSIDE.get_or_init(|| {
        let is_filtered = matches!(secure_computing_mode(), Ok(SecureComputingMode::Filter));
        // A supervisor is the first process only in a namespace that it has entered for its sandbox: one of a run without a sandbox is not,
        // even inside of a container or of another sandbox with a filter.
        is_filtered && no_new_privs().unwrap_or(false) && is_supervisor(Pid::INIT)
    })
}
