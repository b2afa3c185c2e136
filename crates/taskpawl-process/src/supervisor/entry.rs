use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bwrap::are_of_supervisor;
use super::server;

/// True if the host program becomes a supervisor if it is executed again.
static IS_PREPARED: AtomicBool = AtomicBool::new(false);

/// Enables the host program to start programs. Call it first in `main`.
///
/// The programs of a run belong to a supervisor process: the host program, executed a second time under
/// another name. In that process this function does the work of the supervisor and never returns. Otherwise
/// it returns at once and does nothing.
///
/// ```standalone_crate
/// // The first line of `main`.
/// taskpawl_process::child_entry();
/// ```
pub fn child_entry() {
    if is_supervisor() {
        let code = server::main();
        #[expect(clippy::exit, clippy::disallowed_methods, reason = "the host's own `main` must not go on")]
        std::process::exit(code);
    }
    IS_PREPARED.store(true, Ordering::Relaxed);
}

/// Returns the program to execute as a supervisor, or `None` if this program has not called [`child_entry`].
pub(crate) fn this_program() -> Option<PathBuf> {
    // A supervisor must never start another one, or a `main` that continues in spite of it would start them
    // endlessly.
    let is_prepared = IS_PREPARED.load(Ordering::Relaxed) && !is_supervisor();
    // `/proc/self/exe` leads to the running binary even after an update has replaced its file.
    is_prepared.then(|| PathBuf::from("/proc/self/exe"))
}

pub(super) fn is_supervisor() -> bool {
    let has_socket = || rustix::net::sockopt::socket_type(rustix::stdio::stdin()).is_ok();
    are_of_supervisor(std::env::args_os(), has_socket)
}
