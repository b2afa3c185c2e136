//! Links on the way to a path that the user or a call has named.
//!
//! The person who named or approved the path meant its target at that time. A link that programs can change could lead to any other path.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::excluded_paths::real;

/// A link that leads a named path elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Detour {
    pub(super) link: PathBuf,
    /// The real path of the named path.
    pub(super) to: PathBuf,
}

/// Returns the link that leads `path` out of the writable directory in which the link lies. Programs may have created such a link.
pub(super) fn leads_out(path: &Path, writable: &[PathBuf]) -> Option<Detour> {
    let writable: Vec<PathBuf> = writable.iter().map(|place| real(place)).collect();
    let to = real(path);
    let link = on_the_way(path).find(|link| {
        let above = link.parent().map(real).unwrap_or_default();
        let mut places = writable.iter().filter(|place| above.starts_with(place)).peekable();
        places.peek().is_some() && !places.any(|place| to.starts_with(place))
    })?;
    Some(Detour { link, to })
}

/// Returns the first link on the way to `path`, except links to or above the paths `known` and links of the system.
pub(super) fn leads_elsewhere(path: &Path, known: &[&Path]) -> Option<Detour> {
    let link = on_the_way(path).find(|link| {
        let is_known = known.iter().any(|place| place.starts_with(link));
        !is_known && !is_of_system(link)
    })?;
    Some(Detour { link, to: real(path) })
}

/// Returns the links among a path and the directories above it, outer ones first.
fn on_the_way(path: &Path) -> impl Iterator<Item = PathBuf> {
    let mut above: Vec<PathBuf> = path.ancestors().map(Path::to_owned).collect();
    above.reverse();
    above.into_iter().filter(|path| path.is_symlink())
}

/// Returns whether only administrators can change a link: it lies in the root directory, or in a directory that only root can write.
fn is_of_system(link: &Path) -> bool {
    let Some(above) = link.parent() else { return true };
    let is_theirs = || above.metadata().is_ok_and(|data| data.uid() == 0 && data.mode() & 0o022 == 0);
    above.parent().is_none() || (!rustix::process::geteuid().is_root() && is_theirs())
}

/// Returns the links in a directory.
pub(super) fn links_in(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_symlink()).collect()
}
