//! Hard links to protected files. A write through any name of a file changes it under all of its names.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{Metadata, read_dir};
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::closed::{Opener, Place, has_other_names};
use super::excluded_paths::{is_within, real};
use crate::scan::{ScanBounds, ScanStopped};

/// The maximum of files that are read in protected directories, and of directory entries that are searched for other names. Programs can
/// create any number of both.
const FILES: usize = 1_000;
const ENTRIES: usize = 200_000;

/// Identifies a file: the device and the inode number.
type Id = (u64, u64);

/// The other names that were found.
#[derive(Debug, Default)]
pub(super) struct OtherNames {
    /// Each gets the opener of the protected file.
    pub(super) places: Vec<Place>,
    /// Set if the search reached its limit.
    pub(super) gap: Option<String>,
}

impl OtherNames {
    /// Searches the directories `written` for other names of the files that are `protected`, or lie in a protected directory.
    pub(super) fn of(
        protected: &[Place],
        written: Vec<PathBuf>,
        bounds: &ScanBounds,
    ) -> Result<Self, ScanStopped> {
        let files = with_other_names(protected);
        if files.is_empty() {
            return Ok(Self::default());
        }
        let closed: Vec<PathBuf> = protected.iter().map(|place| place.path.clone()).collect();
        let (mut waiting, mut left) = (VecDeque::from(written), ENTRIES);
        let mut names = Self::default();
        while let Some(directory) = waiting.pop_front() {
            for entry in read_dir(&directory).into_iter().flatten().flatten() {
                if left == 0 {
                    names.gap = Some(
                        "protected files may have hard links through which they can be changed".to_owned(),
                    );
                    return Ok(names);
                }
                left -= 1;
                bounds.check()?;
                // The inode number comes with the entry, so it is compared first. Only a match needs the metadata, which tells the device.
                let (path, kind) = (entry.path(), entry.file_type());
                if kind.is_ok_and(|kind| kind.is_dir()) {
                    waiting.push_back(path);
                } else if files.keys().any(|(_, number)| *number == entry.ino())
                    && let Some(opener) = path.symlink_metadata().ok().and_then(|data| files.get(&id(&data)))
                    // Names in protected directories are closed already.
                    && !is_within(&path, &closed)
                {
                    names.places.push(Place { path, opener: *opener });
                }
            }
        }
        Ok(names)
    }
}

/// Returns the protected files with several names, and their openers.
fn with_other_names(protected: &[Place]) -> BTreeMap<Id, Opener> {
    let of = |place: &Place| {
        let opener = place.opener;
        files(&place.path).into_iter().map(move |data| (id(&data), opener))
    };
    protected.iter().flat_map(of).collect()
}

/// Returns the metadata of the files with several names at or beneath a path.
///
/// The search is breadth-first and ends after [`FILES`] entries, so that one deep directory does not hide files near the top.
fn files(place: &Path) -> Vec<Metadata> {
    let mut found = Vec::new();
    let (mut waiting, mut left) = (VecDeque::from([real(place)]), FILES);
    while let Some(path) = waiting.pop_front() {
        let Ok(data) = path.symlink_metadata() else { continue };
        if data.is_dir() {
            let entries = read_dir(&path).into_iter().flatten().flatten().take(left);
            let before = waiting.len();
            waiting.extend(entries.map(|entry| entry.path()));
            left -= waiting.len() - before;
        } else if has_other_names(&data) {
            found.push(data);
        }
    }
    found
}

fn id(data: &Metadata) -> Id {
    (data.dev(), data.ino())
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, hard_link, write};

    use super::*;

    #[test]
    fn what_lies_deep_does_not_hide_what_lies_above() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["a", "z"] {
            let outputs = at("p/kept").join(name).join("outputs");
            create_dir_all(&outputs).unwrap();
            (0..FILES).for_each(|number| write(outputs.join(number.to_string()), "").unwrap());
            let file = at("p/kept").join(name).join("file");
            write(&file, "").unwrap();
            hard_link(&file, at("p").join(name)).unwrap();
        }
        let protected = [Place { path: at("p/kept"), opener: Opener::Nobody }];
        assert_eq!(
            OtherNames::of(&protected, vec![at("p")], &ScanBounds::default()).unwrap().places.len(),
            2
        );
    }

    #[test]
    fn other_names_are_closed_as_the_protected_one() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for directory in ["p/.git/hooks", "p/deep/er", "config"] {
            create_dir_all(at(directory)).unwrap();
        }
        for (file, other) in [
            ("p/.git/config", "p/deep/er/c"),
            ("p/.git/hooks/pre-push", "p/h"),
            ("config/policy.toml", "p/deep/policy"),
            ("p/one", "p/two"),
        ] {
            write(at(file), "").unwrap();
            hard_link(at(file), at(other)).unwrap();
        }
        write(at("p/.git/hooks/alone"), "").unwrap();
        let place = |name: &str, opener| Place { path: at(name), opener };
        let protected = [
            place("p/.git/config", Opener::Naming),
            place("p/.git/hooks", Opener::Configuration),
            place("config", Opener::Nobody),
        ];
        let mut found = OtherNames::of(&protected, vec![at("p")], &ScanBounds::default()).unwrap().places;
        found.sort_by(|one, other| one.path.cmp(&other.path));
        assert_eq!(
            found,
            [
                place("p/deep/er/c", Opener::Naming),
                place("p/deep/policy", Opener::Nobody),
                place("p/h", Opener::Configuration),
            ]
        );
    }
}
