//! The conditions under which a project can have worktrees.

use std::fs;
use std::path::Path;

use super::git::{Git, GitError, GitResult};

/// Largest file with attributes that is read, in bytes.
const MAX_ATTRIBUTES_BYTES: u64 = 1 << 20;

/// Refuses a project whose files git alone cannot put into a worktree.
pub(crate) fn check(git: &Git, root: &Path) -> GitResult<()> {
    let refuse = |why: String| Err(GitError::new(format!("the project cannot have worktrees: {why}")));
    let Some(top) = git.try_run(&["rev-parse", "--show-toplevel"])?.filter(|top| !top.is_empty()) else {
        return refuse("it is not in a git repository".to_owned());
    };
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real(Path::new(&top)) != real(root) {
        return refuse(format!("it is not the root of its git repository, which is `{top}`"));
    }
    if git.commit_of("HEAD")?.is_none() {
        return refuse("its repository has no commit yet".to_owned());
    }
    if root.join(".gitmodules").symlink_metadata().is_ok() {
        return refuse("it has submodules (`.gitmodules`)".to_owned());
    }
    let named = git.run(&["ls-files", "-z", "--", ":(glob)**/.gitattributes"])?;
    let own = git.common_dir()?.join("info/attributes");
    let files = named.split('\0').filter(|name| !name.is_empty()).map(|name| root.join(name)).chain([own]);
    for file in files {
        let is_small =
            file.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= MAX_ATTRIBUTES_BYTES);
        let text = if is_small { fs::read_to_string(&file).unwrap_or_default() } else { String::new() };
        let filter = text.lines().filter(|line| !line.trim_start().starts_with('#')).find_map(|line| {
            line.split_whitespace().find_map(|word| word.strip_prefix("filter=")).map(str::to_owned)
        });
        if let Some(filter) = filter {
            let name = if filter == "lfs" { "Git LFS".to_owned() } else { format!("the filter `{filter}`") };
            return refuse(format!("its files pass through {name} (`{}`)", file.display()));
        }
    }
    Ok(())
}
