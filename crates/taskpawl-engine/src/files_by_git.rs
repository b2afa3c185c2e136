//! `files: git`: the files of a project reach workers as commits of a remote, and declared changes come back the same way.

mod outline;
mod push;
mod results;
mod trees;

use serde::{Deserialize, Serialize};

use crate::worktrees::git::{Git, GitError, GitResult};

pub use self::outline::{FilesOutline, leftover_refs, outline, remove_refs};
pub(crate) use self::push::ProjectFiles;
pub(crate) use self::trees::{CallTree, WorkerTrees};

/// The references of runs.
const REFS: &str = "refs/taskpawl/";

/// Protocols that start no other program than those of git and ssh.
const TRANSPORT: [&str; 10] = [
    "-c",
    "protocol.allow=never",
    "-c",
    "protocol.file.allow=always",
    "-c",
    "protocol.ssh.allow=always",
    "-c",
    "protocol.https.allow=always",
    "-c",
    "protocol.http.allow=always",
];

/// The files with which a call begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentFiles {
    /// The reference of the remote that has the commit.
    pub reference: String,
    /// The commit.
    pub commit: String,
}

/// The files that a call changed: a commit on the one with which it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnedFiles {
    /// The reference of the remote that has the commit.
    pub reference: String,
    /// The commit.
    pub commit: String,
}

/// Checks a reference and a commit that came from another machine, before git gets them as arguments.
fn check_names(reference: &str, commit: &str) -> GitResult<()> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name = reference.strip_prefix(REFS).unwrap_or_default();
    let is_reference =
        !name.is_empty() && !name.starts_with('.') && !name.contains("..") && name.chars().all(is_part);
    let is_commit = [40, 64].contains(&commit.len()) && commit.chars().all(|c| c.is_ascii_hexdigit());
    if is_reference && is_commit {
        return Ok(());
    }
    Err(GitError::new("the other side names its files in a way that is not understood"))
}

/// Returns whether a file never leaves its machine: its name, or that of a directory above it, begins with `.env`.
fn is_withheld(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with(".env"))
}

/// Runs git with a remote.
fn with_remote(git: &Git, args: &[&str]) -> GitResult<String> {
    git.run(&[&TRANSPORT, args].concat())
}

/// Returns the names in a list that ends each with a NUL.
fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split('\0').filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests;
