//! Merging: the work of tasks is joined without a work tree, checked, and then the branch moves to it in one step.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use taskpawl_tools::{JoinedWork, Joining, MergeConflict, make_private_directories};

use super::commit::uncommitted;
use super::conflict;
use super::git::{Git, GitError, GitResult};
use super::record::{TreeRecord, record_of};
use super::tree::{Tip, remove_tree};

/// Joins the commits of tasks with a branch, one after the other. Conflicts end it, unless `resolved` has a merge for them, in order.
pub(crate) fn join(git: &Git, tips: &[Tip], into: Option<&str>, resolved: &[String]) -> GitResult<Joining> {
    let into = match into {
        Some(into) => into.to_owned(),
        None => git
            .try_run(&["symbolic-ref", "--quiet", "--short", "HEAD"])?
            .ok_or_else(|| GitError::new("the project is on no branch: name one with `into`"))?,
    };
    let before = git
        .commit_of(&format!("refs/heads/{into}"))?
        .ok_or_else(|| GitError::new(format!("there is no branch `{into}`")))?;
    let (mut commit, mut resolved, mut number) = (before.clone(), resolved.iter(), 0);
    for tip in tips {
        let message = format!("Merge `{}`", tip.task);
        let files = match git.try_merge(&commit, &tip.commit, &message)? {
            Ok(merged) => {
                commit = merged;
                continue;
            }
            Err(files) => files,
        };
        let given = resolved.next().map(|name| resolution(git, name, (&commit, &tip.commit), &files));
        let problem = match given.transpose()? {
            Some(Ok(merged)) => {
                (commit, number) = (merged, number + 1);
                continue;
            }
            Some(Err(problem)) => Some(problem),
            None => None,
        };
        return Ok(Joining::Conflict(MergeConflict {
            number,
            into,
            task: tip.task.clone(),
            ours: commit,
            theirs: tip.commit.clone(),
            message: GitError::conflict(&format!("the work of task `{}`", tip.task), &files).message,
            files,
            problem,
        }));
    }
    let tasks = tips.iter().map(|tip| (tip.task.clone(), tip.commit.clone())).collect();
    Ok(Joining::Whole(JoinedWork { into, before, commit, tasks }))
}

/// Returns the commit of a merge that was resolved elsewhere, or the reason why it is none.
fn resolution(
    git: &Git,
    name: &str,
    (ours, theirs): (&str, &str),
    files: &[String],
) -> GitResult<Result<String, String>> {
    let shown = taskpawl_text::plain_line(name);
    let Some(commit) = git.commit_of(name)? else {
        return Ok(Err(format!("there is no branch or commit `{shown}`")));
    };
    for side in [ours, theirs] {
        if !git.is_ancestor(side, &commit)? {
            return Ok(Err(format!("`{shown}` does not contain commit {}", &side[..12.min(side.len())])));
        }
    }
    Ok(match conflict::marked(git, &commit, files)? {
        Some(file) => Err(format!("`{file}` in `{shown}` still has conflict markers")),
        None => Ok(commit),
    })
}

/// Makes a worktree for a check. The file beside `step` names it, so that one that a killed run left is removed.
pub(crate) fn make_check_tree(git: &Git, (step, path): (&Path, &Path), commit: &str) -> GitResult<()> {
    let record = record_of(step);
    let left = fs::read_to_string(&record).unwrap_or_default();
    if Path::new(&left).parent() == step.parent() {
        remove_tree(git, Path::new(&left))?;
    }
    remove_tree(git, path)?;
    let failed =
        |error: std::io::Error| GitError::new(format!("failed to write `{}`: {error}", record.display()));
    if let Some(directory) = record.parent() {
        make_private_directories(directory).map_err(failed)?;
    }
    fs::write(&record, path.to_string_lossy().as_bytes()).map_err(failed)?;
    git.run(&["worktree", "add", "--quiet", "--force", "--detach", &path.to_string_lossy(), commit]).map(drop)
}

/// Moves the branch. Git changes its files and its commit together, or refuses.
pub(crate) fn land(git: &Git, joined: &JoinedWork) -> GitResult<()> {
    let JoinedWork { into, before, commit, .. } = joined;
    if before == commit {
        return Ok(());
    }
    let reference = format!("refs/heads/{into}");
    if git.commit_of(&reference)?.as_ref() != Some(before) {
        return Err(GitError::new(format!("branch `{into}` has moved during the merge: run it again")));
    }
    let is_here = git.try_run(&["symbolic-ref", "--quiet", "HEAD"])?.as_deref() == Some(&reference);
    if is_here {
        return git.run(&["merge", "--ff-only", "--quiet", commit]).map(drop).map_err(|error| GitError {
            message: format!(
                "branch `{into}` stays as it was, because its files have changes: {}",
                error.message
            ),
            ..error
        });
    }
    let trees = git.run(&["worktree", "list", "--porcelain"])?;
    if trees.lines().any(|line| line == format!("branch {reference}")) {
        return Err(GitError::new(format!("branch `{into}` is checked out in another worktree")));
    }
    git.run(&["update-ref", "-m", "taskpawl merge", &reference, commit, before]).map(drop)
}

/// Removes the worktree of a merged task, and its branch. Returns false if it stays: it has files that are in no commit.
pub(crate) fn remove_merged(git: &Git, path: &Path, commit: &str) -> GitResult<bool> {
    let Some(record) = TreeRecord::read(&record_of(path)) else { return Ok(true) };
    // Git itself keeps a worktree with files that it does not know, also with those that came from the project.
    let is_clean = || -> GitResult<bool> {
        let Some(git_dir) = &record.git_dir else { return Ok(false) };
        Ok(uncommitted(&git.in_worktree(path, git_dir), &record.given)?.is_empty())
    };
    let place = path.to_string_lossy();
    let is_gone =
        !path.exists() || is_clean()? && git.try_run(&["worktree", "remove", "--force", &place])?.is_some();
    if is_gone {
        let reference = format!("refs/heads/{}", record.branch);
        // A branch that has moved since has work that was not merged.
        git.try_run(&["update-ref", "-d", &reference, commit])?;
    }
    Ok(is_gone)
}

/// Returns the result of a merge.
pub(crate) fn result(joined: &JoinedWork, kept: &[String]) -> Value {
    let tasks: serde_json::Map<String, Value> =
        joined.tasks.iter().map(|(task, commit)| (task.clone(), commit.as_str().into())).collect();
    json!({"into": joined.into, "before": joined.before, "commit": joined.commit, "tasks": tasks, "kept": kept})
}
