//! The commit that ends the work in a worktree.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::git::{Git, GitError, GitResult};
use super::tree::Tree;

/// Largest file that is committed without being asked for, in bytes.
const MAX_FILE_BYTES: u64 = 10 << 20;

/// Files that a result lists.
const LISTED: usize = 100;

/// Commits everything that is not committed yet, and returns the commit of the task. Ignored files stay as they are.
///
/// A second time it finds nothing to commit, and returns the same.
pub(crate) fn commit(git: &Git, tree: &Tree, message: &str) -> GitResult<Value> {
    let git = git.in_worktree(&tree.path, &tree.git_dir);
    let reference = git.try_run(&["symbolic-ref", "--quiet", "HEAD"])?.unwrap_or_default();
    let branch = &tree.branch;
    if reference != format!("refs/heads/{branch}") {
        let on = reference
            .strip_prefix("refs/heads/")
            .map_or("a detached commit".to_owned(), |on| format!("`{on}`"));
        return Err(GitError::new(format!("the worktree is on {on} instead of branch `{branch}`")));
    }
    if tree.git_dir.join("MERGE_HEAD").exists() || tree.git_dir.join("rebase-merge").exists() {
        let files = git.run(&["diff", "--name-only", "--diff-filter=U", "-z"])?;
        let files: Vec<String> =
            files.split('\0').filter(|file| !file.is_empty()).map(str::to_owned).collect();
        return Err(if files.is_empty() {
            GitError::new("a merge or rebase in the worktree is not finished")
        } else {
            GitError::conflict("an unfinished merge in the worktree", &files)
        });
    }
    // A program that was killed leaves it behind; the programs of the task have ended.
    let _ = fs::remove_file(tree.git_dir.join("index.lock"));
    git.run(&["reset", "--quiet"])?;
    let status = git.run(&["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"])?;
    let changed = status.split('\0').filter_map(|entry| entry.get(3..)).filter(|path| !path.is_empty());
    let (left, taken): (Vec<&str>, Vec<&str>) = changed.partition(|path| is_left_out(&tree.path, path));
    if !taken.is_empty() {
        let paths = taken.join("\0");
        let args = ["--literal-pathspecs", "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"];
        git.run_with(&args, paths.as_bytes())?;
    }
    if git.try_run(&["diff", "--cached", "--quiet"])?.is_none() {
        git.commit(message)?;
    }
    let head =
        git.commit_of("HEAD")?.ok_or_else(|| GitError::new(format!("branch `{branch}` has no commit")))?;
    let files = git.run(&["diff", "--name-only", "--no-renames", "-z", &tree.start, &head])?;
    let files: Vec<&str> = files.split('\0').filter(|file| !file.is_empty()).collect();
    Ok(json!({
        "commit": head,
        "branch": branch,
        "base": tree.start,
        "changed": files.len(),
        "files": &files[..files.len().min(LISTED)],
        "leftOut": &left[..left.len().min(LISTED)],
    }))
}

/// Returns whether a file is not committed: it may hold secrets, is large, or is a repository of its own.
fn is_left_out(root: &Path, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_secret = name.to_ascii_lowercase().starts_with(".env");
    let is_large =
        root.join(path).symlink_metadata().is_ok_and(|found| found.is_file() && found.len() > MAX_FILE_BYTES);
    is_secret || is_large || path.ends_with('/')
}
