//! The places in the home directory that programs see, from the list in `home.txt`.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A line of the list.
#[derive(Debug)]
struct Place {
    kind: Kind,
    name: &'static str,
}

#[derive(Debug, PartialEq)]
enum Kind {
    Tool,
    Setting,
    Cache,
}

static PLACES: LazyLock<Vec<Place>> = LazyLock::new(|| {
    let lines = include_str!("home.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(place).collect()
});

fn place(line: &'static str) -> Place {
    let (place, _reason) = line.split_once(" -- ").expect("BUG: a row without a reason");
    let (kind, name) = place.split_once(' ').expect("BUG: a row without a kind");
    let kind = match kind {
        "tool" => Kind::Tool,
        "setting" => Kind::Setting,
        "cache" => Kind::Cache,
        kind => panic!("BUG: an unknown kind of place: {kind}"),
    };
    Place { kind, name }
}

/// Returns the existing places in a home directory that programs see.
pub(super) fn shown(home: &Path) -> Vec<PathBuf> {
    PLACES.iter().map(|place| home.join(place.name)).filter(|path| path.exists()).collect()
}

/// Returns the caches in a home directory, which programs may write into private layers, also those that do not exist.
pub(super) fn caches(home: &Path) -> Vec<PathBuf> {
    PLACES.iter().filter(|place| place.kind == Kind::Cache).map(|place| home.join(place.name)).collect()
}

/// The directory in a home directory for caches of all kinds. Programs see those of the list in it, and their own files.
pub(super) const CACHES: &str = ".cache";

/// Returns the git repository around a project in the home directory: commands of git and workspaces need all of it.
pub(super) fn repository_around(root: &Path, home: &Path) -> Option<PathBuf> {
    let above = root.ancestors().skip(1).take_while(|above| *above != home && above.starts_with(home));
    above.filter(|above| above.join(".git").exists()).last().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_place_is_listed_once_and_only_caches_lie_in_others() {
        for (position, Place { kind, name }) in PLACES.iter().enumerate() {
            assert!(Path::new(name).is_relative() && !name.contains(".."), "{name}");
            let others = PLACES.iter().enumerate().filter(|(other, _)| *other != position);
            let around: Vec<_> = others
                .filter(|(_, other)| Path::new(name).starts_with(other.name))
                .map(|(_, other)| other)
                .collect();
            let is_cache_in_tool =
                |other: &&Place| *kind == Kind::Cache && other.kind == Kind::Tool && other.name != *name;
            assert!(around.iter().all(is_cache_in_tool), "{name} is in {around:?}");
        }
    }

    #[test]
    fn a_project_in_a_repository_sees_all_of_it() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("src/all/one");
        fs::create_dir_all(&root).unwrap();
        assert_eq!(repository_around(&root, home.path()), None);
        fs::create_dir_all(home.path().join("src/all/.git")).unwrap();
        assert_eq!(repository_around(&root, home.path()), Some(home.path().join("src/all")));
        // A repository of settings that is the home itself would show all of it.
        fs::create_dir(home.path().join(".git")).unwrap();
        assert_eq!(repository_around(&root, home.path()), Some(home.path().join("src/all")));
    }
}
