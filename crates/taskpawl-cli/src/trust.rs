//! Trust in project files that describe tools or servers. Another person or a program may have written them, so the
//! user confirms them first.
//!
//! Trust applies to one file with one content. It is stored in the user's state directory, which tools cannot write.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use taskpawl::model::advice::{Advice, Hint};
use taskpawl::model::value::Timestamp;
use taskpawl::tools::{Power, Ruling, content_hash};

use crate::context::Context;
use crate::error::CliError;
use crate::files::read_bytes;
use crate::state_files::{state_file, write_state};

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

fn path(context: &Context) -> Option<PathBuf> {
    state_file(context, "trust.json")
}
