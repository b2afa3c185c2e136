//! The changes of a task in its worktree.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use taskpawl_manager::Manager;

use super::commit::{is_given, is_left_out};
use super::git::{Git, GitResult};
use super::record::{TreeRecord, record_of};
use super::tree::path_of;
use super::{GitError, Worktrees, commit_of};

/// The changes of a task with a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorktreeDiff {
    /// The commit that the worktree began with.
    pub base: String,
    /// The commit of the task; `None` if it is not committed yet.
    pub commit: Option<String>,
    /// The changed files, with those that git does not know yet.
    pub files: Vec<String>,
    /// The changes, in the form of `git diff`, without files that would not be committed.
    pub patch: String,
}

const DIFF: [&str; 5] = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"];

impl Worktrees {
    /// Returns what a task has changed: up to its commit, or up to now while it has none.
    pub(crate) fn diff(&self, manager: &Manager, id: &str) -> Result<WorktreeDiff, String> {
        let task = manager.get(id).map_err(|error| error.to_string())?;
        let name = task.id.to_string();
        let found = manager.read(|view| {
            let Some(key) = view.key(&name)? else { return Ok(None) };
            let base = view.calls(key)?.into_iter().find_map(|call| {
                let result = call.body.result.as_ref()?;
                Some(result.get("base")?.as_str()?.to_owned())
                    .filter(|_| call.spec.part() == super::CallPart::Commit)
            });
            Ok(commit_of(view, key)?.zip(base))
        });
        let found = found.map_err(|error| error.to_string())?;
        let diff = match found {
            Some((tip, base)) => self.between(&base, Some(tip.commit)),
            None => self.until_now(task.plan.as_deref(), &name),
        };
        diff.map_err(|error| error.message)
    }

    fn between(&self, base: &str, commit: Option<String>) -> GitResult<WorktreeDiff> {
        let git = self.git()?;
        let end = commit.clone().unwrap_or_default();
        let patch = git.run(&diff_of(&[base, end.as_str()]))?;
        let files = git.run(&diff_of(&["--name-only", "-z", base, end.as_str()]))?;
        let files = names(&files);
        Ok(WorktreeDiff { base: base.to_owned(), commit, files, patch })
    }

    fn until_now(&self, plan: Option<&str>, task: &str) -> GitResult<WorktreeDiff> {
        let tree = path_of(self.base()?, plan, task);
        let record =
            TreeRecord::read(&record_of(&tree)).filter(|record| record.git_dir.is_some() && tree.is_dir());
        let Some(TreeRecord { start, git_dir: Some(git_dir), given, .. }) = record else {
            return Err(GitError::new(format!("task `{task}` has no worktree and no commit")));
        };
        let git = self.git()?.in_worktree(&tree, &git_dir);
        let mut files = names(&git.run(&diff_of(&["--name-only", "-z", start.as_str()]))?);
        let unknown = names(&git.run(&["ls-files", "--others", "--exclude-standard", "-z"])?);
        let unknown: Vec<String> = unknown.into_iter().filter(|file| !is_given(&given, file)).collect();
        let shown: Vec<&str> =
            unknown.iter().map(String::as_str).filter(|file| !is_left_out(&tree, file)).collect();
        let patch = with_unknown(&git, (git_dir.as_path(), self.base()?), &shown, |git| {
            git.run(&diff_of(&[start.as_str()]))
        })?;
        files.extend(unknown);
        Ok(WorktreeDiff { base: start, commit: None, files, patch })
    }
}

/// Runs git with an index in which it knows further files, without their contents. That of the worktree stays as it is: a call may be
/// at work in it. The index is below `base`, where programs of calls do not write.
fn with_unknown<T>(
    git: &Git,
    (git_dir, base): (&Path, &Path),
    files: &[&str],
    run: impl FnOnce(&Git) -> GitResult<T>,
) -> GitResult<T> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    if files.is_empty() {
        return run(git);
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let index = base.join(format!(".index-{}-{number}", std::process::id()));
    let failed = |error: std::io::Error| GitError::new(format!("failed to copy the index of git: {error}"));
    let own = git.with_index(&index);
    let add =
        ["--literal-pathspecs", "add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"];
    let result = fs::copy(git_dir.join("index"), &index)
        .map_err(failed)
        .and_then(|_| own.run_with(&add, files.join("\0").as_bytes()))
        .and_then(|_| run(&own));
    let _ = fs::remove_file(&index);
    result
}

fn names(list: &str) -> Vec<String> {
    list.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Returns the arguments of a comparison.
fn diff_of<'a>(more: &[&'a str]) -> Vec<&'a str> {
    DIFF.iter().copied().chain(more.iter().copied()).collect()
}
