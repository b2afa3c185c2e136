//! The places in the home directory that programs see, from the list in `home.txt`.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let lines = include_str!("home.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (place, _reason) = line.split_once(" -- ").expect("BUG: a row without a reason");
            place.split_once(' ').expect("BUG: a row without a kind").1
        })
        .collect()
});

/// Returns the existing places in a home directory that programs see.
pub(super) fn shown(home: &Path) -> Vec<PathBuf> {
    NAMES.iter().map(|name| home.join(name)).filter(|path| path.exists()).collect()
}

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
    fn each_place_is_listed_once_and_in_no_other() {
        for (position, name) in NAMES.iter().enumerate() {
            assert!(Path::new(name).is_relative() && !name.contains(".."), "{name}");
            let others = NAMES.iter().enumerate().filter(|(other, _)| *other != position);
            let around: Vec<_> = others
                .filter(|(_, other)| Path::new(name).starts_with(other))
                .map(|(_, other)| other)
                .collect();
            assert!(around.is_empty(), "{name} is in {around:?}");
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
