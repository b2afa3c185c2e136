//! The facts about files that are sent, for the question before the first push, and the references of a remote.

use std::path::Path;

use super::push::{git_of, tree_of};
use super::{REFS, with_remote};
use crate::worktrees::git::{Git, GitError, GitResult};

/// The files that a push sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesOutline {
    /// Number of files.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The largest files with their sizes, largest first.
    pub largest: Vec<(String, u64)>,
}

/// Number of files that an outline names.
const NAMED: usize = 5;

/// Returns the files of the project at `root` that a run would send without `sends`. `scratch` is a file for an index. Blocks.
///
/// # Errors
/// The project is not at the top of a git repository.
pub fn outline(root: &Path, scratch: &Path) -> Result<FilesOutline, String> {
    let listed = || -> GitResult<String> {
        let git = git_of(root)?;
        let tree = tree_of(&git, scratch, &[]);
        let _ = std::fs::remove_file(scratch);
        git.run(&["ls-tree", "-r", "-z", "--format=%(objectsize) %(path)", &tree?])
    };
    let listed = listed().map_err(|error| error.message)?;
    let mut files: Vec<(String, u64)> = super::names(&listed)
        .filter_map(|line| line.trim_start().split_once(' '))
        // A submodule has no size.
        .filter_map(|(size, path)| Some((path.to_owned(), size.parse().ok()?)))
        .collect();
    files.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let (count, bytes) = (files.len() as u64, files.iter().map(|(_, bytes)| bytes).sum());
    files.truncate(NAMED);
    Ok(FilesOutline { files: count, bytes, largest: files })
}

/// Returns the references of runs that a remote has. Blocks.
///
/// # Errors
/// The remote does not answer.
pub fn leftover_refs(root: &Path, remote: &str) -> Result<Vec<String>, String> {
    let found = || references(&git_of(root)?, remote, REFS);
    found().map_err(|error: GitError| error.message)
}

/// Removes references of runs from a remote. Blocks.
///
/// # Errors
/// The remote does not answer, or refuses it.
pub fn remove_refs(root: &Path, remote: &str, refs: &[String]) -> Result<(), String> {
    let removed = || delete(&git_of(root)?, remote, refs);
    removed().map_err(|error: GitError| error.message)
}

/// Returns the references of a remote that begin with `start`.
pub(super) fn references(git: &Git, remote: &str, start: &str) -> GitResult<Vec<String>> {
    let listed = with_remote(git, &["ls-remote", "--quiet", "--refs", "--", remote, &format!("{REFS}*")])?;
    let names = listed.lines().filter_map(|line| Some(line.split_once('\t')?.1.to_owned()));
    Ok(names.filter(|name| name.starts_with(start)).collect())
}

pub(super) fn delete(git: &Git, remote: &str, refs: &[String]) -> GitResult<()> {
    if refs.is_empty() {
        return Ok(());
    }
    let gone: Vec<String> = refs.iter().map(|name| format!(":{name}")).collect();
    let mut args = vec!["push", "--quiet", "--no-verify", "--", remote];
    args.extend(gone.iter().map(String::as_str));
    with_remote(git, &args).map(drop)
}
