//! Symbolic links on the way from a path to its target.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The maximum of links that are followed. The Linux kernel has the same limit.
const MAX: usize = 40;

/// A path that was followed to its target, which need not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// The links that were followed, each by its real path.
    pub links: Vec<PathBuf>,
    /// Directories that the path enters and leaves again by `..`. Those that hold a link or the target are not listed.
    ///
    /// A program that replaces one of them makes the path lead elsewhere.
    pub left: Vec<PathBuf>,
    /// The target of the path, without links.
    pub end: PathBuf,
}

/// Follows the links of an absolute path, including links whose target does not exist.
///
/// `std::fs::canonicalize` fails for such targets, and does not tell which links were on the way.
pub fn follow(path: &Path) -> Way {
    if let Some(end) = without_links(path) {
        return Way { end, ..Way::default() };
    }
    let mut way = Way::default();
    let mut rest = parts(path);
    while let Some(part) = rest.pop() {
        if part == ".." {
            way.left.push(way.end.clone());
            way.end.pop();
            continue;
        }
        let next = way.end.join(part);
        match next.read_link() {
            Ok(target) if way.links.len() < MAX => {
                rest.extend(parts(&target));
                way.links.push(next);
            }
            // After the maximum, a link counts as the end of the path, so that a loop of links ends.
            Ok(_) | Err(_) => way.end = next,
        }
    }
    // A directory above a link or above the target is not replaceable without moving them, so their own protection is enough.
    let kept = || way.links.iter().chain([&way.end]);
    way.left.retain(|directory| !kept().any(|place| place.starts_with(directory)));
    way
}

/// Returns the path without `.` parts if the kernel finds no link on it, in one system call in place of one for each part. Where a part is
/// missing, those behind it are no links either.
#[cfg(target_os = "linux")]
fn without_links(path: &Path) -> Option<PathBuf> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;

    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let (flags, mode) = (OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    match openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS) {
        Ok(_) | Err(Errno::NOENT) => Some(path.components().collect()),
        Err(_) => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn without_links(_: &Path) -> Option<PathBuf> {
    None
}

/// Returns the components of a path, the last one first. An absolute link target starts with `/`, and joining `/` replaces the path so far.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let mut parts: Vec<_> = parts.map(|part| part.as_os_str().to_owned()).collect();
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_of_a_way_is_found_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        symlink("a/first", at("link")).unwrap();
        symlink("../a/./b", at("a/first")).unwrap();
        symlink(at("nowhere"), at("a/b/dangling")).unwrap();
        symlink("self", at("self")).unwrap();
        let way = follow(&at("link/dangling/x"));
        assert_eq!(way.links, [at("link"), at("a/first"), at("a/b/dangling")]);
        assert_eq!(way.end, at("nowhere/x"));
        assert_eq!(way.left, [] as [PathBuf; 0], "what holds a link is kept with it");
        let around = Way { links: vec![], left: vec![at("a/b"), at("a")], end: at("c") };
        assert_eq!(follow(&at("a/b/../../c")), around);
        assert_eq!(follow(&at("a/./missing/x")), Way { end: at("a/missing/x"), ..Way::default() });
        assert_eq!(follow(&at("link")).links, [at("link"), at("a/first")], "the last part is followed");
        assert_eq!(follow(&at("a/../a/b")), Way { end: at("a/b"), ..Way::default() });
        assert_eq!(follow(&at("self")).links.len(), MAX, "it ends");
    }
}
