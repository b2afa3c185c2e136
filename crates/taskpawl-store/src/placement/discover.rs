//! Finding the project of a directory: upwards, and from a git worktree to its main tree.

use std::fs;
use std::path::{Path, PathBuf};

use super::PlacementError;
use super::project::ProjectFile;
use crate::StoreError;
use crate::files::read_text;

/// A project as it was found.
#[derive(Debug)]
pub(super) struct Found {
    /// The directory in which its tasks work.
    pub(super) root: PathBuf,
    /// The directory that holds `.taskpawl`.
    pub(super) project: PathBuf,
    pub(super) file: ProjectFile,
}

/// Returns a path without links, so that two ways to one directory are the same project.
pub(super) fn real(path: &Path) -> Result<PathBuf, PlacementError> {
    Ok(fs::canonicalize(path).map_err(|error| StoreError::io("look at", path, error))?)
}

/// Finds the project that `directory` is in.
pub(super) fn find(directory: &Path) -> Result<Option<Found>, PlacementError> {
    for above in directory.ancestors() {
        if let Some(found) = at(above)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns where the project of `directory` begins, even if its file is damaged.
pub(super) fn root(directory: &Path) -> PathBuf {
    let is_project = |above: &&Path| !matches!(at(above), Ok(None));
    directory.ancestors().find(is_project).unwrap_or(directory).to_owned()
}

/// Finds the project that begins at `directory`, here or in the main tree of the git worktree that it is in.
pub(super) fn at(directory: &Path) -> Result<Option<Found>, PlacementError> {
    if ProjectFile::exists(directory) {
        return found(directory.to_owned(), directory.to_owned()).map(Some);
    }
    match in_main_tree(directory).filter(|main| ProjectFile::exists(main)) {
        Some(main) => found(directory.to_owned(), main).map(Some),
        None => Ok(None),
    }
}

fn found(root: PathBuf, project: PathBuf) -> Result<Found, PlacementError> {
    let file = ProjectFile::read(&project)?;
    Ok(Found { root, project, file })
}

/// Returns what corresponds to `directory` in the main tree of its git worktree.
fn in_main_tree(directory: &Path) -> Option<PathBuf> {
    let top = directory.ancestors().find(|above| above.join(".git").exists())?;
    let common = common_directory(&top.join(".git"))?;
    // The common directory of a bare repository has no tree beside it.
    let main = if common.ends_with(".git") { common.parent()? } else { return None };
    let below = directory.strip_prefix(top).ok()?;
    Some(if below.as_os_str().is_empty() { main.to_owned() } else { main.join(below) })
}

/// Follows the `.git` file of a worktree to the directory that all worktrees share. A submodule has such a file too, but no
/// `commondir` behind it.
fn common_directory(git_file: &Path) -> Option<PathBuf> {
    let text = read_text(git_file).ok()?;
    let own = git_file.parent()?.join(text.strip_prefix("gitdir:")?.trim());
    let common = read_text(&own.join("commondir")).ok()?;
    fs::canonicalize(own.join(common.trim())).ok()
}
