//! Whether files of a project that describe tools or servers are trusted: somebody else may have written them.
//!
//! Trust is for one file with one content. It is kept with the state of the user, outside everything that tools may write.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use taskpawl::model::{Advice, Hint, Timestamp};
use taskpawl::tools::{content_hash, make_private_directories};

use crate::app::App;
use crate::error::CliError;
use crate::files::read_bytes;

/// What is trusted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Trusted {
    /// By the path of the file.
    files: BTreeMap<PathBuf, Entry>,
}

/// A file that is trusted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The SHA-256 of its content, in hexadecimal.
    pub(crate) sha256: String,
    /// Since when.
    pub(crate) at: Timestamp,
}

/// Returns whether the user trusts this file of a project with the content of this hash: that which was read, because the file may
/// be another one by now.
pub(crate) fn is_given(app: &App, file: &Path, hash: &str) -> Result<bool, CliError> {
    Ok(Trusted::read(app)?.entry(file).is_some_and(|entry| entry.sha256 == hash))
}

/// Says how a file that is not trusted becomes so.
pub(crate) fn missing(file: &Path) -> Hint {
    Hint::default()
        .data(file.display())
        .text(" of the project describes it, and is not trusted as it is now: ")
        .advice(Advice::Trust {})
        .text(" shows it and asks")
}

/// Returns the hash of a file.
pub(crate) fn hash(file: &Path) -> io::Result<String> {
    Ok(content_hash(&read_bytes(file)?))
}

/// The same file is the same by every path.
pub(crate) fn real(file: &Path) -> PathBuf {
    fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())
}

impl Trusted {
    pub(crate) fn read(app: &App) -> Result<Self, CliError> {
        let Some(path) = path(app) else { return Ok(Self::default()) };
        let failed = |source| CliError::File { action: "read", path: path.clone(), source };
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(error.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Returns what is recorded about a file.
    pub(crate) fn entry(&self, file: &Path) -> Option<&Entry> {
        self.files.get(&real(file))
    }

    pub(crate) fn insert(&mut self, file: &Path, sha256: String, at: Timestamp) {
        self.files.insert(real(file), Entry { sha256, at });
    }

    /// Returns whether it was trusted.
    pub(crate) fn remove(&mut self, file: &Path) -> bool {
        self.files.remove(&real(file)).is_some()
    }

    /// Writes the whole record beside itself and then in its place.
    pub(crate) fn write(&self, app: &App) -> Result<(), CliError> {
        let Some(path) = path(app) else {
            return Err(CliError::usage_with("there is no place for what is trusted", "set HOME"));
        };
        let text = serde_json::to_string_pretty(self).expect("BUG: a record is always valid JSON");
        write_state(&path, &text).map_err(|source| CliError::File { action: "write", path, source })
    }
}

/// Makes the directory of a file of the user's state, open to nobody else, and returns it.
pub(crate) fn state_directory_of(path: &Path) -> io::Result<&Path> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    make_private_directories(directory)?;
    Ok(directory)
}

/// Writes a file of the user's state beside itself and then in its place.
pub(crate) fn write_state(path: &Path, text: &str) -> io::Result<()> {
    state_directory_of(path)?;
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all())?;
    fs::rename(&new, path)
}

fn path(app: &App) -> Option<PathBuf> {
    state_file(app, "trust.json")
}

/// Returns the path of a file of the user's state.
pub(crate) fn state_file(app: &App, name: &str) -> Option<PathBuf> {
    let environment = app.environment();
    let home = || environment.path("HOME").map(|home| home.join(".local").join("state"));
    let base = environment.path("XDG_STATE_HOME").filter(|path| path.is_absolute()).or_else(home)?;
    Some(base.join("taskpawl").join(name))
}
