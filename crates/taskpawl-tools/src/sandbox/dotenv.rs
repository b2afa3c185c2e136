//! The files in which projects keep the secrets of their environment.

use std::collections::VecDeque;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// How deep in a project they are looked for, and among how many files.
const DEPTH: usize = 6;
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

/// Returns the `.env*` files beneath `root`, the nearest first, as far as they are looked for.
pub(super) fn files(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut seen) = (Vec::new(), 0);
    let mut queue = VecDeque::from([(root.to_owned(), 1)]);
    while let Some((directory, depth)) = queue.pop_front() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            seen += 1;
            let (name, is_directory) = look(&entry);
            if is_secret(&name) {
                found.push(entry.path());
            } else if is_directory && depth < DEPTH && seen < ENTRIES && !SKIPPED.contains(&name.as_str()) {
                queue.push_back((entry.path(), depth + 1));
            }
        }
    }
    found
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
        let mut found: Vec<_> = files(dir.path())
            .into_iter()
            .map(|path| path.strip_prefix(dir.path()).unwrap().to_owned())
            .collect();
        found.sort();
        assert_eq!(found, [".env", ".env.local", "app/.env.production"].map(PathBuf::from));
    }
}
