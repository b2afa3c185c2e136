//! Trust in project files that describe tools or servers. Another person or a program may have written them, so the
//! user confirms them first.
//!
//! Trust applies to one file with one content. It is stored in the user's state directory, which tools cannot write.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use taskpawl::model::advice::{Advice, Hint};
use taskpawl::model::value::Timestamp;
use taskpawl::tools::{Power, Ruling, content_hash, make_private_directories};

use crate::context::Context;
use crate::error::CliError;
use crate::files::read_bytes;

/// The trusted files.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Trusted {
    /// The entries by the real path of the file.
    files: BTreeMap<PathBuf, Entry>,
}

/// The trusted content of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The SHA-256 of the content, in hexadecimal.
    pub(crate) sha256: String,
    /// The time when the user trusted it.
    pub(crate) at: Timestamp,
}

/// Returns whether the user trusts this file with the content of this hash. The hash has to be that of the content
/// which was read, because the file may have changed since.
pub(crate) fn is_given(context: &Context, file: &Path, hash: &str) -> Result<bool, CliError> {
    if context.policy()?.ruling(Power::Trust).ruling == Ruling::Never {
        return Ok(false);
    }
    Ok(Trusted::read(context)?.entry(file).is_some_and(|entry| entry.sha256 == hash))
}

/// Returns the hint that names the command for trusting the file.
pub(crate) fn missing(file: &Path) -> Hint {
    Hint::default()
        .data(file.display())
        .text(" of the project describes it, and is not trusted as it is now: ")
        .advice(Advice::Trust {})
        .text(" shows it and asks")
}

/// Returns the hash of a file's content.
pub(crate) fn hash(file: &Path) -> io::Result<String> {
    Ok(content_hash(&read_bytes(file)?))
}

/// Returns the path with links resolved, so that a file has the same entry under every name.
pub(crate) fn real(file: &Path) -> PathBuf {
    fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())
}

impl Trusted {
    pub(crate) fn read(context: &Context) -> Result<Self, CliError> {
        let Some(path) = path(context) else { return Ok(Self::default()) };
        let failed = |source| CliError::File { action: "read", path: path.clone(), source };
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(error.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Returns the entry of a file.
    pub(crate) fn entry(&self, file: &Path) -> Option<&Entry> {
        self.files.get(&real(file))
    }

    pub(crate) fn insert(&mut self, file: &Path, sha256: String, at: Timestamp) {
        self.files.insert(real(file), Entry { sha256, at });
    }

    /// Removes the entry of a file. Returns whether there was one.
    pub(crate) fn remove(&mut self, file: &Path) -> bool {
        self.files.remove(&real(file)).is_some()
    }

    /// Writes all entries, atomically.
    pub(crate) fn write(&self, context: &Context) -> Result<(), CliError> {
        let Some(path) = path(context) else {
            return Err(CliError::usage_with(
                "there is no place for the record of trusted files",
                "set HOME",
            ));
        };
        let text = serde_json::to_string_pretty(self).expect("BUG: a record is always valid JSON");
        write_state(&path, &text).map_err(|source| CliError::File { action: "write", path, source })
    }
}

/// Creates the directory of a state file, accessible only to the user, and returns it.
pub(crate) fn state_directory_of(path: &Path) -> io::Result<&Path> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    make_private_directories(directory)?;
    Ok(directory)
}

/// Replaces a state file atomically and durably: writes a temporary file, syncs it and renames it.
pub(crate) fn write_state(path: &Path, text: &str) -> io::Result<()> {
    state_directory_of(path)?;
    // The process id keeps parallel commands from writing the same temporary file.
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all())?;
    fs::rename(&new, path)
}

fn path(context: &Context) -> Option<PathBuf> {
    state_file(context, "trust.json")
}

/// Returns the path of a file in the user's state directory; `None` without `HOME` and `XDG_STATE_HOME`.
pub(crate) fn state_file(context: &Context, name: &str) -> Option<PathBuf> {
    let environment = context.environment();
    let home = || environment.path("HOME").map(|home| home.join(".local").join("state"));
    let base = environment.path("XDG_STATE_HOME").filter(|path| path.is_absolute()).or_else(home)?;
    Some(base.join("taskpawl").join(name))
}
