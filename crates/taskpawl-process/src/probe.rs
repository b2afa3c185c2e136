use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::error::SpawnError;
use crate::profile::{Enforcement, Profile, Sandbox};
use crate::programs::without_supervisor;
use crate::supervision::Supervision;
use crate::supervisor::{Link, version_of_bubbles};

/// Time limit for the end of a supervisor without programs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tests a profile: starts a supervisor in that sandbox, and returns the restrictions in force. Blocks until
/// the supervisor has ended.
///
/// # Errors
///
/// There is no supervisor, or the profile cannot be enforced here. The error names the missing feature and
/// gives advice.
pub fn probe(supervision: &Supervision, profile: &Arc<Profile>) -> Result<Enforcement, SpawnError> {
    let program = supervision.program()?.ok_or_else(without_supervisor)?;
    let link = Link::start(program, &Sandbox::On(Arc::clone(profile)), None)?;
    let enforcement = link.greeting();
    link.close();
    // A supervisor that hangs is harmless: it has no programs and has been told to end.
    let _ = link.is_gone_within(PATIENCE);
    Ok(enforcement?.as_deref().cloned().unwrap_or_default())
}

/// Returns the name and version of `bwrap`, which [`Level::Strict`](crate::Level::Strict) needs. [`probe`]
/// tests whether it works here. Directories in `writable` are not searched, because sandboxed programs could
/// have put a `bwrap` there.
///
/// # Errors
///
/// `bwrap` is not installed. The error gives advice.
pub fn bubblewrap(writable: &[PathBuf]) -> Result<String, SpawnError> {
    version_of_bubbles(writable)
}
