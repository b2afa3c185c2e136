//! Check of ignore files before they are read.

use std::fs::Metadata;
use std::path::Path;

/// Largest supported ignore file, in bytes: its compiled form takes many times its size in memory.
pub(super) const MAX_IGNORE_BYTES: u64 = 256 << 10;

/// Returns whether a directory has an ignore file that must not be read. A large one could fill the memory, and a link
/// to a device or a named pipe never ends.
pub fn has_unfit_ignore_file(directory: &Path) -> bool {
    let is_unfit = |name: &&str| {
        let metadata = std::fs::metadata(directory.join(name));
        let is_fine = |data: &Metadata| data.is_dir() || data.is_file() && data.len() <= MAX_IGNORE_BYTES;
        metadata.is_ok_and(|metadata| !is_fine(&metadata))
    };
    [".gitignore", ".ignore", ".git/info/exclude"].iter().any(is_unfit)
}
