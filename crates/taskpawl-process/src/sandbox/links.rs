//! The links by which a path leads to what it names.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// How many links are followed; the system follows no more.
const MAX: usize = 40;

/// A path that was followed to its end, which need not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// The links that were followed, each where it really is.
    pub links: Vec<PathBuf>,
    /// The directories that it leaves by `..` and that hold nothing else of it: with something else in the place of one it leads
    /// elsewhere.
    pub left: Vec<PathBuf>,
    /// What the path leads to, without links.
    pub end: PathBuf,
}

/// Follows the links of an absolute path, also those that lead to nothing.
pub fn follow(path: &Path) -> Way {
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
            Ok(_) | Err(_) => way.end = next,
        }
    }
    let kept = || way.links.iter().chain([&way.end]);
    way.left.retain(|directory| !kept().any(|place| place.starts_with(directory)));
    way
}

/// Returns the parts of a path, the last one first. That of the root takes the place of whatever it is joined to.
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
        assert_eq!(follow(&at("a/../a/b")), Way { end: at("a/b"), ..Way::default() });
        assert_eq!(follow(&at("self")).links.len(), MAX, "it ends");
    }
}
