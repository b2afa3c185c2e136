//! The files of an export: what of them changes, and how they are written.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use taskpawl::model::advice::Hint;
use taskpawl_formats::{Files, Format, Written};

use crate::error::CliError;
use crate::files::replace_file;
use crate::text::path_word;

/// Refuses several tasks if the path is a single file of a folder format.
pub(super) fn check_single(format: Format, root: &Path, written: &Written) -> Result<(), CliError> {
    let count = written.files.iter().count();
    if !root.is_file() || count <= 1 {
        return Ok(());
    }
    let folder = root.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let path = root.display();
    let words = [format.name().to_owned(), path_word(folder)];
    Err(CliError::usage_with(
        format!("`{path}` is one file, and {count} tasks with a file each are to be written"),
        Hint::new("name the folder: ")
            .command_of("export", words)
            .text("; or this task alone, by `--only ID`"),
    ))
}

/// Returns the names of the files whose content differs from the existing one. Unchanged files keep their
/// modification time.
pub(super) fn changed(written: &Written, before: Option<&Files>) -> Vec<String> {
    let is_same = |name: &str, text: &str| before.and_then(|before| before.get(name)) == Some(text);
    let changed = written.files.iter().filter(|(name, text)| !is_same(name, text));
    changed.map(|(name, _)| name.to_owned()).collect()
}

pub(super) fn write_all(
    format: Format,
    root: &Path,
    written: &Written,
    changed: &[String],
) -> Result<(), CliError> {
    let is_folder = format.is_folder() && !root.is_file() && !is_list(format, root);
    let changed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
    for (name, text) in written.files.iter().filter(|(name, _)| changed.contains(name)) {
        let path = if is_folder { root.join(name) } else { root.to_owned() };
        write_file(&path, text).map_err(|source| CliError::File { action: "write", path, source })?;
    }
    Ok(())
}

/// Returns the names of the files that no longer hold any task.
pub(super) fn removed(before: Option<&Files>, rest: Option<&Files>) -> Vec<String> {
    let Some((before, rest)) = before.zip(rest) else { return Vec::new() };
    let names = before.iter().map(|(name, _)| name).filter(|name| rest.get(name).is_none());
    names.map(str::to_owned).collect()
}

pub(super) fn remove_all(root: &Path, names: &[String]) -> Result<(), CliError> {
    for name in names {
        let path = if root.is_dir() { root.join(name) } else { root.to_owned() };
        fs::remove_file(&path).map_err(|source| CliError::File { action: "remove", path, source })?;
    }
    Ok(())
}

/// Returns whether the path names the list form of a format that otherwise is a folder.
pub(super) fn is_list(format: Format, path: &Path) -> bool {
    format == Format::Claude
        && !path.is_dir()
        && path.extension().is_some_and(|extension| extension == "json")
}

/// Replaces a file, but never what a symbolic link leads to.
fn write_file(path: &Path, text: &str) -> std::io::Result<()> {
    if path.is_symlink() {
        return Err(std::io::Error::other("it is a symbolic link"));
    }
    replace_file(path, text)
}
