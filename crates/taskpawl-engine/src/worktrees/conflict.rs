//! Conflicts of a merge in a worktree of their own, where an agent resolves them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use taskpawl_tools::MergeConflict;

use super::commit::{is_left_out, uncommitted};
use super::git::{Git, GitError, GitResult};
use super::record::{record_of, write_record};
use super::tree::remove_tree;

/// The file beside the worktree: the conflicts of one call. A call that asked a person, or was killed, goes on with it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConflictRecord {
    /// The conflict whose files are in the worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<String>,
    /// The worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<PathBuf>,
    /// The private directory of the worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    git_dir: Option<PathBuf>,
    /// The merge commits of resolved conflicts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resolved: BTreeMap<String, String>,
}

impl ConflictRecord {
    fn read(path: &Path) -> Self {
        let text = fs::read(record_of(path)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn write(&self, path: &Path) -> GitResult<()> {
        write_record(&record_of(path), self)
    }
}

/// The place of a conflict.
#[derive(Debug)]
pub(crate) enum Opened {
    /// An earlier start of the call resolved it.
    Resolved(String),
    /// Its files are in the worktree `tree` with this private directory.
    In { tree: PathBuf, git_dir: PathBuf },
}

fn name_of(conflict: &MergeConflict) -> String {
    format!("{}..{}", conflict.ours, conflict.theirs)
}

/// Makes a worktree in the middle of the merge, with the markers of git in its files. The record lies beside `path`.
///
/// `fresh` is a place that no worktree of this run had: the sandbox of a run knows a place by the directory that it had first.
pub(crate) fn open(
    git: &Git,
    (path, fresh): (&Path, PathBuf),
    conflict: &MergeConflict,
) -> GitResult<Opened> {
    let (mut record, name) = (ConflictRecord::read(path), name_of(conflict));
    if let Some(commit) = record.resolved.get(&name)
        && git.commit_of(commit)?.is_some()
    {
        return Ok(Opened::Resolved(commit.clone()));
    }
    if let (Some(tree), Some(git_dir)) = (record.tree.take(), record.git_dir.take()) {
        if record.open.as_ref() == Some(&name) && tree.is_dir() && git_dir.is_dir() {
            return Ok(Opened::In { tree, git_dir });
        }
        remove_tree(git, &tree)?;
    }
    remove_tree(git, &fresh)?;
    record.open = None;
    record.write(path)?;
    let text = fresh.to_string_lossy();
    git.run(&["worktree", "add", "--quiet", "--force", "--detach", &text, &conflict.ours])?;
    let git_dir = PathBuf::from(git.run(&["-C", &text, "rev-parse", "--absolute-git-dir"])?);
    // It ends with conflicts, which is no success. Without a merge the files would be those of one side, and pass for resolved ones.
    let merge = ["merge", "--quiet", "--no-commit", "--no-ff", conflict.theirs.as_str()];
    git.in_worktree(&fresh, &git_dir).with_own_identity().try_run(&merge)?;
    if !git_dir.join("MERGE_HEAD").exists() {
        return Err(GitError::new(format!("git did not begin the merge of task `{}`", conflict.task)));
    }
    (record.open, record.tree, record.git_dir) = (Some(name), Some(fresh.clone()), Some(git_dir.clone()));
    record.write(path)?;
    Ok(Opened::In { tree: fresh, git_dir })
}

/// Commits the files of the worktree as the merge of both sides, and removes it.
///
/// The index and the commits that an agent may have made do not count: the files do.
pub(crate) fn resolve(git: &Git, path: &Path, conflict: &MergeConflict) -> GitResult<String> {
    let mut record = ConflictRecord::read(path);
    let (Some(root), Some(git_dir)) = (record.tree.take(), record.git_dir.take()) else {
        return Err(GitError::new("the worktree of the conflict is gone"));
    };
    let own = git.in_worktree(&root, &git_dir).with_index(&git_dir.join("taskpawl-index"));
    let MergeConflict { ours, theirs, task, files, .. } = conflict;
    own.run(&["read-tree", ours])?;
    let mut tracked = BTreeSet::new();
    for side in [ours, theirs] {
        let names = own.run(&["ls-tree", "-r", "-z", "--name-only", side])?;
        tracked.extend(names.split('\0').map(str::to_owned));
    }
    let changed = uncommitted(&own, &[])?;
    let taken: Vec<String> =
        changed.into_iter().filter(|file| tracked.contains(file) || !is_left_out(&root, file)).collect();
    if !taken.is_empty() {
        let args = ["--literal-pathspecs", "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"];
        own.run_with(&args, taken.join("\0").as_bytes())?;
    }
    let tree = own.run(&["write-tree"])?;
    let commit = git.commit_tree(&tree, &[ours, theirs], &format!("Merge `{task}`"))?;
    if let Some(file) = marked(git, &commit, files)? {
        return Err(GitError::conflict_of(format!("`{file}` still has conflict markers")));
    }
    record.open = None;
    record.resolved.insert(name_of(conflict), commit.clone());
    record.write(path)?;
    remove_tree(git, &root)?;
    Ok(commit)
}

/// Returns the first of the files that still has conflict markers in a commit.
pub(crate) fn marked(git: &Git, commit: &str, files: &[String]) -> GitResult<Option<String>> {
    let mut args =
        vec!["--literal-pathspecs", "grep", "-l", "-z", "-E", "-e", "^(<{7}|>{7})( |$)", commit, "--"];
    args.extend(files.iter().map(String::as_str));
    // It fails if no line matches.
    let found = git.try_run(&args)?.unwrap_or_default();
    let file = found.split('\0').find(|name| !name.is_empty());
    Ok(file.map(|name| name.split_once(':').map_or(name, |(_, name)| name).to_owned()))
}

/// Removes the record of a step of a merge.
pub(crate) fn forget(path: &Path) -> GitResult<()> {
    match fs::remove_file(record_of(path)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(GitError::new(format!("failed to remove `{}`: {error}", record_of(path).display())))
        }
        _ => Ok(()),
    }
}
