//! Finds the project of a directory: upwards, and from a git worktree in its main tree.

use std::fs;
use std::path::{Path, PathBuf};

use super::PlacementError;
use super::project::ProjectFile;
use crate::StoreError;
use crate::files::read_text;

/// A discovered project.
#[derive(Debug)]
pub(super) struct DiscoveredProject {
    /// The working directory of its tasks. In a git worktree it differs from `project`.
    pub(super) root: PathBuf,
    /// The directory that contains `.taskpawl`.
    pub(super) project: PathBuf,
    pub(super) file: ProjectFile,
}

/// Resolves symbolic links, so that all paths to one directory lead to the same project.
pub(super) fn real(path: &Path) -> Result<PathBuf, PlacementError> {
    fs::canonicalize(path).map_err(|error| unreadable(path, error))
}

/// Returns the error of a path that cannot be examined.
pub(super) fn unreadable(path: &Path, error: std::io::Error) -> PlacementError {
    StoreError::io("look at", path, error).into()
}

/// Finds the nearest project at or above `directory`.
pub(super) fn find(directory: &Path) -> Result<Option<DiscoveredProject>, PlacementError> {
    for above in directory.ancestors() {
        if let Some(found) = at(above)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns the root of the nearest project, even if its file is damaged.
pub(super) fn root(directory: &Path) -> PathBuf {
    let is_project = |above: &&Path| !matches!(at(above), Ok(None));
    directory.ancestors().find(is_project).unwrap_or(directory).to_owned()
}

/// Finds a project that starts at `directory`, either there or in the main tree of its git worktree.
pub(super) fn at(directory: &Path) -> Result<Option<DiscoveredProject>, PlacementError> {
    if ProjectFile::exists(directory) {
        return found(directory.to_owned(), directory.to_owned()).map(Some);
    }
    match in_main_tree(directory).filter(|main| ProjectFile::exists(main)) {
        Some(main) => found(directory.to_owned(), main).map(Some),
        None => Ok(None),
    }
}

fn found(root: PathBuf, project: PathBuf) -> Result<DiscoveredProject, PlacementError> {
    let file = ProjectFile::read(&project)?;
    Ok(DiscoveredProject { root, project, file })
}

/// Maps `directory` to the same relative path in the main tree of its git worktree.
fn in_main_tree(directory: &Path) -> Option<PathBuf> {
    let top = directory.ancestors().find(|above| above.join(".git").exists())?;
    let common = common_directory(&top.join(".git"))?;
    // A bare repository has no main tree beside its common directory.
    let main = if common.ends_with(".git") { common.parent()? } else { return None };
    let below = directory.strip_prefix(top).ok()?;
    Some(if below.as_os_str().is_empty() { main.to_owned() } else { main.join(below) })
}

/// Follows the `.git` file of a worktree to the git directory that all worktrees share. Returns `None` for a
/// submodule: it has a `.git` file too, but no `commondir`.
fn common_directory(git_file: &Path) -> Option<PathBuf> {
    let text = read_text(git_file).ok()?;
    let own = git_file.parent()?.join(text.strip_prefix("gitdir:")?.trim());
    let common = read_text(&own.join("commondir")).ok()?;
    fs::canonicalize(own.join(common.trim())).ok()
}
