//! The repositories of a project, and what in them git obeys when somebody uses it later.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// What in the directory of a repository, of a submodule or of a worktree is run, or leads to what is run: `commondir` says where
/// the configuration and the hooks are.
const OBEYED: [&str; 5] = ["hooks", "config", "config.worktree", "commondir", "info/attributes"];

/// How deep submodules are looked for beneath others; their names may have several parts.
const DEPTH: usize = 16;

/// How many submodules and worktrees are looked for.
const MOST: usize = 1_000;

/// Returns what of the repository at `git`, a `.git` in a project, is obeyed later, with its submodules and worktrees. A file
/// `.git`, which says where the repository is, is so itself.
pub(super) fn obeyed(git: &Path) -> Vec<PathBuf> {
    if !is_directory(git) {
        return vec![git.to_owned()];
    }
    let mut directories = vec![git.to_owned()];
    add_submodules(&git.join("modules"), DEPTH, &mut directories);
    directories.iter().flat_map(|directory| obeyed_in(directory)).collect()
}

fn obeyed_in(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = OBEYED.iter().map(|name| directory.join(name)).collect();
    for worktree in directories_in(&directory.join("worktrees")).take(MOST) {
        paths.extend(["config.worktree", "commondir"].map(|name| worktree.join(name)));
    }
    paths
}

fn add_submodules(above: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for directory in directories_in(above) {
        if depth == 0 || found.len() > MOST {
            return;
        }
        if directory.join("HEAD").symlink_metadata().is_ok() {
            add_submodules(&directory.join("modules"), depth - 1, found);
            found.push(directory);
        } else {
            add_submodules(&directory, depth - 1, found);
        }
    }
}

fn directories_in(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// Returns which part of a path, seen from the root of a project, git obeys, whether or not it is there: for tools that make files.
/// Directories of git are for git: what is not listed above may lead to what is, as `modules` and `worktrees` do.
pub(super) fn part_of(path: &Path) -> Option<PathBuf> {
    let names: Vec<String> = path
        .components()
        .filter_map(|part| if let Component::Normal(name) = part { Some(name) } else { None })
        .map(|name| name.to_string_lossy().to_lowercase())
        .collect();
    let git = names.iter().position(|name| name == ".git")?;
    let inside = &names[git + 1..];
    let is_led_to = inside.first().is_some_and(|name| name == "modules" || name == "worktrees");
    let is_named = OBEYED.iter().any(|obeyed| {
        obeyed.split('/').zip(inside).filter(|(a, b)| a == b).count() == obeyed.split('/').count()
    });
    (is_led_to || is_named).then(|| path.components().take(git + 2).collect())
}

/// Returns whether a path is that of a `.git`, which as a file says where a repository is.
pub(super) fn is_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submodules_and_worktrees_are_found_with_what_git_obeys_in_them() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join(".git");
        for name in ["hooks", "modules/a/b/hooks", "modules/a/b/modules/c", "worktrees/w", "objects/aa"] {
            fs::create_dir_all(git.join(name)).unwrap();
        }
        for name in ["HEAD", "modules/a/b/HEAD", "modules/a/b/modules/c/HEAD"] {
            fs::write(git.join(name), "").unwrap();
        }
        let found = obeyed(&git);
        for name in [
            "config",
            "commondir",
            "modules/a/b/hooks",
            "modules/a/b/modules/c/config",
            "worktrees/w/commondir",
        ] {
            assert!(found.contains(&git.join(name)), "{name}: {found:?}");
        }
        assert!(!found.iter().any(|path| path.starts_with(git.join("objects"))));
        fs::write(dir.path().join("file"), "gitdir: elsewhere\n").unwrap();
        assert_eq!(obeyed(&dir.path().join("file")), [dir.path().join("file")]);
    }

    #[test]
    fn what_git_obeys_is_known_by_its_path() {
        let part = |path: &str| part_of(Path::new(path)).map(|part| part.to_str().unwrap().to_owned());
        for (path, of) in [
            (".git/commondir", ".git/commondir"),
            ("sub/.git/config", "sub/.git/config"),
            ("sub/.git/hooks/pre-commit", "sub/.git/hooks"),
            (".GIT/Hooks/x", ".GIT/Hooks"),
            (".git/modules/sub/config", ".git/modules"),
            (".git/worktrees/w/commondir", ".git/worktrees"),
            (".git/info/attributes", ".git/info"),
        ] {
            assert_eq!(part(path).as_deref(), Some(of));
        }
        for path in ["", "git/config", ".gitignore", ".git", ".git/HEAD", ".git/info/exclude", "config"] {
            assert_eq!(part(path), None, "{path}");
        }
        assert!(is_git(Path::new("sub/.Git")) && !is_git(Path::new(".git/x")));
    }
}
