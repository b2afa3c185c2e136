//! Names that scans skip, and time stamps that scans may rely on.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Directories of dependencies and build results. They hold too many files, and hardly any of the user's own.
pub(crate) const SKIPPED: [&str; 12] = [
    ".git",
    ".hg",
    ".taskpawl",
    ".tox",
    ".venv",
    "__pycache__",
    "build",
    "dist",
    "node_modules",
    "target",
    "vendor",
    "venv",
];

/// The age at which the time stamp of a change is reliable. A second change in the same tick of the file system's clock has the same stamp.
pub(crate) const UNSETTLED: Duration = Duration::from_secs(2);

/// Returns whether a change is so long ago that its time stamp is reliable. `changed` is in seconds of the file system's clock.
///
/// A second change in the same tick of that clock would have the same time.
#[expect(
    clippy::disallowed_methods,
    reason = "it is compared with the clock of the file system, and shown to nobody"
)]
pub(crate) fn is_settled(changed: i64) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = Duration::from_secs(u64::try_from(changed).unwrap_or(0));
    now.checked_sub(changed).is_some_and(|age| age > UNSETTLED)
}

/// Returns whether directories with this name are not searched.
pub(crate) fn is_skipped(name: &str) -> bool {
    SKIPPED.contains(&name)
}
