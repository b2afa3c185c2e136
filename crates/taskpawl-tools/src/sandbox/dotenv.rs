//! What is looked for in all of a project: the files in which the secrets of its environment are, and repositories.

use std::collections::VecDeque;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// Among how many files of a project they are looked for.
const ENTRIES: usize = 20_000;

/// Directories of files that others wrote or that were made: too many to look at, and no place for secrets of one's own.
const SKIPPED: [&str; 12] = [
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

/// Endings of files that only show what such a file looks like.
const SAMPLES: [&str; 5] = [".example", ".sample", ".template", ".dist", ".defaults"];

/// The files of a project that were found, and what was not looked at.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The nearest first.
    pub(super) files: Vec<PathBuf>,
    /// Every `.git`, which is a directory or a file.
    pub(super) repositories: Vec<PathBuf>,
    /// How many directories were left out because the project has too many files, and the first of them.
    left_out: Option<(PathBuf, usize)>,
}

impl Found {
    /// Says what is not hidden because it was not looked for, if there is anything.
    pub(super) fn gap(&self) -> Option<String> {
        let (first, count) = self.left_out.as_ref()?;
        let more = match count - 1 {
            0 => String::new(),
            more => format!(" and {more} more directories"),
        };
        let first = first.display();
        Some(format!(
            "`.env` files and repositories are not looked for in `{first}`{more}, because the project has more than {ENTRIES} files; `[sandbox] hide` and `protect` in the configuration name what is there"
        ))
    }

    fn leave_out(&mut self, directory: PathBuf) {
        self.left_out.get_or_insert((directory, 0)).1 += 1;
    }
}

/// Looks for `.env*` files beneath `root`, the nearest first.
pub(super) fn find(root: &Path) -> Found {
    find_among(root, ENTRIES)
}

fn find_among(root: &Path, most: usize) -> Found {
    let (mut found, mut seen) = (Found::default(), 0);
    let mut queue = VecDeque::from([root.to_owned()]);
    while let Some(directory) = queue.pop_front() {
        // Directories that were seen in time are read to their ends: one with very many files hides no other's.
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            seen += 1;
            let (name, is_directory) = look(&entry);
            if name == ".git" {
                found.repositories.push(entry.path());
            } else if is_secret(&name) {
                found.files.push(entry.path());
            } else if is_directory && !is_skipped(&name) {
                if seen < most {
                    queue.push_back(entry.path());
                } else {
                    found.leave_out(entry.path());
                }
            }
        }
    }
    found
}

/// Returns which part of a path, seen from the root of a project, is such a file, wherever it lies.
pub(super) fn part_of(path: &Path) -> Option<&Path> {
    let name_of = |above: &Path| above.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut parts: Vec<&Path> = path.ancestors().filter(|part| part.file_name().is_some()).collect();
    parts.reverse();
    let mut looked_at = parts
        .into_iter()
        .take_while(|part| !part.parent().and_then(name_of).is_some_and(|above| is_skipped(&above)));
    looked_at.find(|part| name_of(part).is_some_and(|name| is_secret(&name.to_lowercase())))
}

fn is_skipped(name: &str) -> bool {
    SKIPPED.contains(&name)
}

fn look(entry: &DirEntry) -> (String, bool) {
    let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
    (entry.file_name().to_string_lossy().into_owned(), is_directory)
}

fn is_secret(name: &str) -> bool {
    let is_env = name == ".env" || name == ".envrc" || name.starts_with(".env.");
    is_env && !SAMPLES.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_environment_are_found_but_for_samples_and_what_others_wrote() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            ".env",
            ".env.local",
            ".env.example",
            ".environment",
            "app/.env.production",
            "app/node_modules/x/.env",
            "env",
        ] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let mut found: Vec<_> = find(dir.path())
            .files
            .into_iter()
            .map(|path| path.strip_prefix(dir.path()).unwrap().to_owned())
            .collect();
        found.sort();
        assert_eq!(found, [".env", ".env.local", "app/.env.production"].map(PathBuf::from));
        assert_eq!(find(dir.path()).gap(), None);
    }

    #[test]
    fn what_is_not_looked_at_is_told() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a/.env", "a/b/c/d/e/f/g/h/.env", "a/b/c/d/e/f/g/h/i/.env"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let told = |most| {
            let found = find_among(dir.path(), most);
            let gap = found.gap().unwrap_or_default().replace(dir.path().to_str().unwrap(), "[dir]");
            (found.files.len(), gap)
        };
        assert_eq!(told(1_000), (3, String::new()), "depth does not matter");
        let (found, gap) = told(5);
        assert_eq!(found, 1);
        insta::assert_snapshot!(gap, @"`.env` files and repositories are not looked for in `[dir]/a/b/c/d`, because the project has more than 20000 files; `[sandbox] hide` and `protect` in the configuration name what is there");
    }

    #[test]
    fn such_a_file_is_known_by_its_path() {
        let part = |path: &str| part_of(Path::new(path)).map(|part| part.to_str().unwrap().to_owned());
        for path in [".env", "a/.env", "a/b/c/d/e/f/g/h/.env.local", ".ENV", "Target/.env"] {
            assert_eq!(part(path).as_deref(), Some(path));
        }
        assert_eq!(part(".env/bin/activate").as_deref(), Some(".env"));
        for path in ["", "env", ".env.example", ".environment", "node_modules/x/.env", "a/target/.env"] {
            assert_eq!(part(path), None, "{path}");
        }
    }
}
