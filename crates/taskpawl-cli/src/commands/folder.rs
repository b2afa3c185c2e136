//! Files of a folder that is imported as a whole. One that cannot be read does not keep the others from being read.

use std::fs;
use std::io;
use std::path::Path;
use std::string::FromUtf8Error;

use taskpawl::model::advice::Hint;
use taskpawl_formats::{Files, Format, LeftOut};

use crate::commands::exchange::{MAX_BYTES, MAX_FILES, read_bytes};
use crate::error::CliError;

/// Reads the files of a folder that belong to the format. Subfolders are read one level deep. Files that cannot be read are left
/// out: one of them does not keep the others from being read.
pub(super) fn read_folder(format: Format, root: &Path) -> Result<(Files, Vec<LeftOut>), CliError> {
    let (names, mut unreadable) = names(format, root)?;
    let (mut files, mut left) = (Files::default(), MAX_BYTES);
    for name in names {
        match read_bytes(&root.join(&name), left) {
            Ok(bytes) => {
                left -= bytes.len() as u64;
                match String::from_utf8(bytes) {
                    Ok(text) => files.insert(name, text),
                    Err(error) => unreadable.push(not_utf8(name, &error)),
                }
            }
            Err(CliError::File { source, .. }) => {
                let why = format!("it cannot be read: {source}");
                unreadable.push(unread(name, why, "make it readable, or move it out of the folder"));
            }
            Err(error) => return Err(error),
        }
    }
    for left in &unreadable {
        files.insert_unread(left.file.as_str());
    }
    Ok((files, unreadable))
}

/// Returns a file of a folder as left out, because it is not UTF-8.
pub(super) fn not_utf8(name: String, error: &FromUtf8Error) -> LeftOut {
    let why = format!("it is not UTF-8 (byte {})", error.utf8_error().valid_up_to());
    unread(name, why, "save it as UTF-8")
}

/// Returns a file of a folder as left out.
pub(super) fn unread(name: String, why: impl Into<String>, hint: impl Into<Hint>) -> LeftOut {
    LeftOut { what: name.clone(), why: why.into(), file: name, line: None, is_fault: true, hint: hint.into() }
}

/// The reason why a link in a folder is left out.
pub(super) const LINK: (&str, &str) = (
    "it is a symbolic link, and links in such a folder are not followed",
    "put the file itself there, or name it",
);

/// Returns the names of the files that belong to the format, and those that cannot be read.
fn names(format: Format, root: &Path) -> Result<(Vec<String>, Vec<LeftOut>), CliError> {
    let (mut names, mut unreadable) = (Vec::new(), Vec::new());
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        let failed = |source| CliError::File { action: "read", path: path.clone(), source };
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let is_text = name.to_str().is_some();
            let name = format!("{folder}{}", name.to_string_lossy());
            if !is_text {
                if format.takes(&name) {
                    let hint = "rename the file, or move it out of the folder";
                    unreadable.push(unread(name, "its name is not UTF-8", hint));
                }
                continue;
            }
            let kind = entry.file_type().map_err(failed)?;
            let is_wanted = format.takes(&name);
            if kind.is_dir() && folder.is_empty() && format.takes(&format!("{name}/x.md")) {
                folders.push(format!("{name}/"));
            } else if kind.is_symlink() && (is_wanted || format.takes(&format!("{name}/x.md"))) {
                unreadable.push(unread(name, LINK.0, LINK.1));
            } else if kind.is_file() && is_wanted {
                names.push(name);
            } else if !kind.is_dir() && is_wanted {
                unreadable.push(unread(name, "it is no regular file", "move it out of the folder"));
            }
        }
        if names.len() > MAX_FILES {
            let problem = format!("`{}` has more than {MAX_FILES} files", root.display());
            return Err(CliError::usage_with(problem, "move some of them out of it"));
        }
    }
    names.sort();
    unreadable.sort_by(|one, other| one.file.cmp(&other.file));
    Ok((names, unreadable))
}

/// Returns the folders inside those with tasks of Backlog.md, which does not read them.
pub(super) fn inner_folders(root: &Path) -> Result<Vec<LeftOut>, CliError> {
    let mut found = Vec::new();
    for outer in ["tasks", "completed"] {
        let path = root.join(outer);
        let failed = |source| CliError::File { action: "read", path: path.clone(), source };
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_dir() {
                let name = format!("{outer}/{}", entry.file_name().to_string_lossy());
                let why = format!("it is a folder: Backlog.md reads the files in `{outer}` alone");
                found.push(LeftOut {
                    what: name.clone(),
                    why,
                    file: name,
                    line: None,
                    is_fault: false,
                    hint: Hint::default(),
                });
            }
        }
    }
    found.sort_by(|one, other| one.what.cmp(&other.what));
    Ok(found)
}
