use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::error::SpawnError;
use crate::profile::{Enforcement, Profile, Sandbox};
use crate::programs::{Supervision, without_supervisor};
use crate::supervisor::{Link, version_of_bubbles};

/// How long a supervisor without programs may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tries a profile for real: starts a supervisor that puts itself into that sandbox, and returns what it has in force. Blocks
/// until that supervisor is gone.
///
/// # Errors
///
/// There is no supervisor, or the profile cannot be enforced here; then the error says what is missing and how to go on.
pub fn probe(supervision: &Supervision, profile: &Arc<Profile>) -> Result<Enforcement, SpawnError> {
    let program = supervision.program()?.ok_or_else(without_supervisor)?;
    let link = Link::start(program, &Sandbox::On(Arc::clone(profile)), None)?;
    let enforcement = link.greeting();
    link.close();
    // One that hangs harms nobody: it has been told to end.
    let _ = link.is_gone_within(PATIENCE);
    Ok(enforcement?.as_deref().cloned().unwrap_or_default())
}

/// Returns what the program says of itself that [`Level::Strict`](crate::Level::Strict) takes: its name and version. Whether it works
/// here [`probe`] tells. It is not taken from places that programs may write, which are `writable`.
///
/// # Errors
///
/// It is not installed; the error says how to go on.
pub fn bubblewrap(writable: &[PathBuf]) -> Result<String, SpawnError> {
    version_of_bubbles(writable)
}
