//! The repository behind a git worktree. It lies outside the project.

use std::fs;
use std::path::{Path, PathBuf};

use super::repositories;

/// The parts of a repository that commits in one of its worktrees need.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Common {
    /// The directory that all worktrees share.
    pub(super) directory: PathBuf,
    /// Paths in it that git obeys later.
    pub(super) obeyed: Vec<PathBuf>,
}

/// Returns the repository that has `root` as a worktree.
///
/// The author of the project may have written the `.git` file, so it is not trusted alone. The named repository must also name this
/// worktree in `worktrees/NAME/gitdir`, which only git itself writes there.
pub(super) fn common(root: &Path) -> Option<Common> {
    let link = fs::canonicalize(root).ok()?.join(".git");
    let named = text(&link)?;
    let own = fs::canonicalize(root.join(named.strip_prefix("gitdir:")?.trim())).ok()?;
    let back = text(&own.join("gitdir"))?;
    let back = own.join(back.trim());
    let is_mutual = fs::canonicalize(back.parent()?).ok()?.join(back.file_name()?) == link;
    let worktrees = own.parent()?;
    let directory = worktrees.parent()?;
    let is_repository = directory.join("HEAD").is_file() && directory.join("objects").is_dir();
    if !(is_mutual && is_repository && worktrees.ends_with("worktrees")) {
        return None;
    }
    let obeyed = repositories::obeyed(directory).into_iter().chain([link]).collect();
    Some(Common { directory: directory.to_owned(), obeyed })
}

/// Reads a regular file. A pipe in its place would block until it has a writer, so it is skipped.
fn text(file: &Path) -> Option<String> {
    file.is_file().then(|| fs::read_to_string(file).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(at: &Path) {
        for name in ["objects", "worktrees/tree"] {
            fs::create_dir_all(at.join(name)).unwrap();
        }
        fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    #[test]
    fn a_worktree_knows_its_repository_when_the_repository_knows_it() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        let (main, tree) = (dir.join("main/.git"), dir.join("tree"));
        repository(&main);
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", main.join("worktrees/tree").display())).unwrap();
        assert_eq!(common(&tree), None, "it only says so itself");

        fs::write(main.join("worktrees/tree/gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
        let common = common(&tree).unwrap();
        assert_eq!(common.directory, main);
        for name in ["hooks", "config", "worktrees/tree/config.worktree", "worktrees/tree/commondir"] {
            assert!(common.obeyed.contains(&main.join(name)), "{name}");
        }
        assert!(common.obeyed.contains(&tree.join(".git")));
    }

    #[test]
    fn a_file_that_names_any_other_directory_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let fake = root.join("fake");
        fs::create_dir_all(&fake).unwrap();
        fs::write(fake.join("gitdir"), root.join(".git").to_str().unwrap()).unwrap();
        fs::write(fake.join("commondir"), "/").unwrap();
        fs::write(root.join(".git"), "gitdir: fake").unwrap();
        assert_eq!(common(&root), None);
    }
}
