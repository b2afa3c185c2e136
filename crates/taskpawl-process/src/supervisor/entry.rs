use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bubble::are_of_supervisor;
use super::server;

/// What a process is called that is to be a supervisor.
pub(super) const MARKER: &str = "taskpawl-supervisor";

/// Whether the host program would turn into a supervisor if it were executed a second time.
static IS_PREPARED: AtomicBool = AtomicBool::new(false);

/// Makes the host program able to start programs; to be called first in `main`.
///
/// The programs of a run belong to a supervisor process, which is the host program itself, executed a second time with
/// another name. In that process this function does the supervisor's work and never returns; in a normal start
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

/// Returns the program that is the supervisor when it is executed again; `None` if this one would not turn into one.
pub(crate) fn this_program() -> Option<PathBuf> {
    // A supervisor whose `main` went on all the same would start supervisors for ever.
    let is_prepared = IS_PREPARED.load(Ordering::Relaxed) && !is_supervisor();
    // The link leads to the running program even if its file was replaced meanwhile.
    is_prepared.then(|| PathBuf::from("/proc/self/exe"))
}

pub(super) fn is_supervisor() -> bool {
    let has_socket = || rustix::net::sockopt::socket_type(rustix::stdio::stdin()).is_ok();
    are_of_supervisor(std::env::args_os(), has_socket)
}
