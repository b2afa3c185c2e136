//! The commit that ends the work in a worktree.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use taskpawl_tools::{HookedCommit, StagedWork};

use super::git::{Git, GitError, GitResult};
use super::tree::Tree;

/// Largest file that is committed without being asked for, in bytes.
const MAX_FILE_BYTES: u64 = 10 << 20;

/// Files that a result lists.
const LISTED: usize = 100;

/// Hooks that git runs for a commit.
const HOOKS: [&str; 4] = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];

/// Takes everything that is not committed yet into the index. Ignored files stay as they are.
///
/// A second time it finds nothing more.
pub(crate) fn stage(git: &Git, tree: &Tree, message: &str, has_hooks: bool) -> GitResult<StagedWork> {
    let git = git.in_worktree(&tree.path, &tree.git_dir);
    check_branch(&git, tree)?;
    // A program that was killed leaves it behind; the programs of the task have ended.
    let _ = fs::remove_file(tree.git_dir.join("index.lock"));
    git.run(&["reset", "--quiet"])?;
    let changed = uncommitted(&git, &tree.given)?;
    let (left_out, taken): (Vec<String>, Vec<String>) =
        changed.into_iter().partition(|path| is_left_out(&tree.path, path));
    if !taken.is_empty() {
        let paths = taken.join("\0");
        let args = ["--literal-pathspecs", "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"];
        git.run_with(&args, paths.as_bytes())?;
    }
    let directory = if has_hooks && has_staged(&git)? { hooks_of(&git, tree)? } else { None };
    let hooked = directory.map(|directory| hooked(&git, message, directory)).transpose()?;
    Ok(StagedWork { left_out, hooked })
}

/// Commits the index, and returns the commit of the task. A second time it finds nothing to commit, and returns the same.
pub(crate) fn commit(git: &Git, tree: &Tree, message: &str, staged: &StagedWork) -> GitResult<Value> {
    let git = git.in_worktree(&tree.path, &tree.git_dir);
    if has_staged(&git)? {
        if staged.hooked.is_some() {
            return Err(GitError::new("a hook of the repository has left the work without a commit"));
        }
        git.commit(message)?;
    }
    check_branch(&git, tree)?;
    let branch = &tree.branch;
    let head =
        git.commit_of("HEAD")?.ok_or_else(|| GitError::new(format!("branch `{branch}` has no commit")))?;
    let files = git.run(&["diff", "--name-only", "--no-renames", "-z", &tree.start, &head])?;
    let files: Vec<&str> = files.split('\0').filter(|file| !file.is_empty()).collect();
    let left = &staged.left_out;
    Ok(json!({
        "commit": head,
        "branch": branch,
        "base": tree.start,
        "changed": files.len(),
        "files": &files[..files.len().min(LISTED)],
        "leftOut": &left[..left.len().min(LISTED)],
    }))
}

/// Refuses a worktree that is on another branch, or in the middle of a merge.
fn check_branch(git: &Git, tree: &Tree) -> GitResult<()> {
    let reference = git.try_run(&["symbolic-ref", "--quiet", "HEAD"])?.unwrap_or_default();
    let branch = &tree.branch;
    if reference != format!("refs/heads/{branch}") {
        let on = reference
            .strip_prefix("refs/heads/")
            .map_or("a detached commit".to_owned(), |on| format!("`{on}`"));
        return Err(GitError::new(format!("the worktree is on {on} instead of branch `{branch}`")));
    }
    if !tree.git_dir.join("MERGE_HEAD").exists() && !tree.git_dir.join("rebase-merge").exists() {
        return Ok(());
    }
    let files = git.run(&["diff", "--name-only", "--diff-filter=U", "-z"])?;
    let files: Vec<String> = files.split('\0').filter(|file| !file.is_empty()).map(str::to_owned).collect();
    Err(if files.is_empty() {
        GitError::new("a merge or rebase in the worktree is not finished")
    } else {
        GitError::conflict("an unfinished merge in the worktree", &files)
    })
}

fn has_staged(git: &Git) -> GitResult<bool> {
    Ok(git.try_run(&["diff", "--cached", "--quiet"])?.is_none())
}

/// Returns the directory with the hooks of the repository, if it has some for commits.
fn hooks_of(git: &Git, tree: &Tree) -> GitResult<Option<PathBuf>> {
    // The last value is that of this program, which switches hooks off.
    let named = git.try_run(&["config", "--type=path", "--get-all", "core.hooksPath"])?.unwrap_or_default();
    let named = named.lines().rev().nth(1).filter(|path| !path.is_empty());
    let directory = named.map_or_else(|| tree.common.join("hooks"), |path| tree.path.join(path));
    let is_hook = |name: &str| {
        let found = directory.join(name).metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let has_some = HOOKS.iter().any(|name| is_hook(name));
    Ok(has_some.then(|| directory.canonicalize().unwrap_or(directory)))
}

/// Returns the program that commits the index with hooks. It runs in the sandbox, so that they may do what programs of the task may.
fn hooked(git: &Git, message: &str, directory: PathBuf) -> GitResult<HookedCommit> {
    let program = git.program().to_string_lossy().into_owned();
    let settings = ["commit.gpgSign=false", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false"];
    let settings = settings.iter().flat_map(|setting| ["-c", setting]);
    let args = settings.chain(["commit", "--quiet", "-m", message]).map(str::to_owned);
    let (name, email) = git.identity()?;
    let env = ["AUTHOR", "COMMITTER"].into_iter().flat_map(|role| {
        [(format!("GIT_{role}_NAME"), name.clone()), (format!("GIT_{role}_EMAIL"), email.clone())]
    });
    Ok(HookedCommit { argv: [program].into_iter().chain(args).collect(), env: env.collect(), directory })
}

/// Returns the files of a worktree that differ from its commit, without ignored ones and those that it got from the project.
pub(crate) fn uncommitted(git: &Git, given: &[String]) -> GitResult<Vec<String>> {
    let status = git.run(&["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"])?;
    let changed = status.split('\0').filter_map(|entry| entry.get(3..)).filter(|path| !path.is_empty());
    Ok(changed.filter(|path| !is_given(given, path)).map(str::to_owned).collect())
}

/// Returns whether a file came from the project, and is no work of the task.
pub(crate) fn is_given(given: &[String], path: &str) -> bool {
    let is_beneath = |rest: &str| rest.is_empty() || rest.starts_with('/');
    given.iter().any(|name| path.strip_prefix(name.as_str()).is_some_and(is_beneath))
}

/// Returns whether a file is not committed: it may hold secrets, is large, or is a repository of its own.
pub(crate) fn is_left_out(root: &Path, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_secret = name.to_ascii_lowercase().starts_with(".env");
    let is_large =
        root.join(path).symlink_metadata().is_ok_and(|found| found.is_file() && found.len() > MAX_FILE_BYTES);
    is_secret || is_large || path.ends_with('/')
}
