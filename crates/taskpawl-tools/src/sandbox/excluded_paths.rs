//! Paths within paths, and their exclusion.

use std::path::{Component, Path, PathBuf};

/// Returns a path without `.` and `..`, lexically: links on the way are not read.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// Returns a path, which need not exist, without the links that are on the way now.
pub(super) fn real(path: &Path) -> PathBuf {
    taskpawl_process::follow(path).end
}

/// Returns whether a path equals one of `places` or lies beneath one.
pub(super) fn is_within(path: &Path, places: &[PathBuf]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

/// Removes `places` from the `closed` paths.
///
/// A closed path that is named itself is dropped. A closed directory above a named path is replaced by its entries beside the way to that
/// path. A named path does not open closed paths beneath it.
pub(super) fn open_up(closed: Vec<PathBuf>, places: &[PathBuf]) -> Vec<PathBuf> {
    places.iter().fold(closed, |closed, place| {
        closed
            .into_iter()
            .flat_map(|one| if place.starts_with(&one) { beside(&one, place) } else { vec![one] })
            .collect()
    })
}

/// Returns the entries of `directory`, and of the directories between it and `place`, that are not on the way to `place`.
pub(super) fn beside(directory: &Path, place: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let way: Vec<&Path> = place.ancestors().take_while(|above| *above != directory).collect();
    let above = std::iter::once(directory).chain(way.iter().rev().copied());
    for (above, next) in above.zip(way.iter().rev()) {
        let entries = std::fs::read_dir(above).into_iter().flatten().flatten();
        found.extend(entries.map(|entry| entry.path()).filter(|path| path != next));
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_out_of_those_that_hold_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["a/b/c", "a/b/d", "a/e"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        let opened = |closed: &[&str], place: &str| {
            let closed = closed.iter().map(|name| at(name)).collect();
            let left = open_up(closed, &[at(place)]);
            left.iter()
                .map(|path| path.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(opened(&["a"], "a/b/c"), ["a/b/d", "a/e"]);
        assert_eq!(opened(&["a/b/c", "a/e"], "a/b/c"), ["a/e"]);
        assert_eq!(opened(&["a/b"], "a"), ["a/b"], "a place above opens nothing");
        assert_eq!(opened(&["a/b"], "a/bc"), ["a/b"]);
        assert_eq!(opened(&["a/b"], "a/b/not/there"), ["a/b/c", "a/b/d"]);
    }
}
