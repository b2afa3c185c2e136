//! The changes of a task in its worktree.

use taskpawl_manager::Manager;

use super::commit::is_given;
use super::git::GitResult;
use super::tree::{TreeRecord, path_of, record_of};
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
    /// The changes, in the form of `git diff`. Files that git does not know yet are not part of it.
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
        let patch = git.run(&diff_of(&[start.as_str()]))?;
        let mut files = names(&git.run(&diff_of(&["--name-only", "-z", start.as_str()]))?);
        let unknown = names(&git.run(&["ls-files", "--others", "--exclude-standard", "-z"])?);
        files.extend(unknown.into_iter().filter(|file| !is_given(&given, file)));
        Ok(WorktreeDiff { base: start, commit: None, files, patch })
    }
}

fn names(list: &str) -> Vec<String> {
    list.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Returns the arguments of a comparison.
fn diff_of<'a>(more: &[&'a str]) -> Vec<&'a str> {
    DIFF.iter().copied().chain(more.iter().copied()).collect()
}
