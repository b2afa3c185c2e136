//! The restriction of the sandbox that a failed call met, and the setting that would lift it.

use std::fmt;
use std::path::{Path, PathBuf};

/// The setting that would probably let a failed call succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hint {
    /// The restriction that the call met, and the way to lift it, for people.
    pub text: String,
    /// The way to lift it by an option of the run; `None` if no option does, or if what it opens may hold secrets or is obeyed by
    /// other programs. Such a path has to be typed by a person.
    pub grant: Option<Grant>,
}

/// A way to widen the sandbox of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grant {
    /// Programs may use the network.
    Network,
    /// Programs may reach a host, in the syntax of `HostGrant`.
    Host(String),
    /// Programs may connect to a port of this machine.
    Port(u16),
    /// Programs may read a path.
    Read(PathBuf),
    /// Programs may read and write a path.
    Write(PathBuf),
}

impl Hint {
    /// Makes a hint with a way to open a path.
    ///
    /// The path comes from the output of a program, which can name any. So the grant is left out if it would open the home, or a
    /// directory above the project: a reader may run the suggested command without checking it.
    pub(super) fn opening(place: &Path, grant: fn(PathBuf) -> Grant, text: String) -> Self {
        let around = [std::env::home_dir(), std::env::current_dir().ok()];
        let hint = Self { text, grant: Some(grant(place.to_owned())) };
        around.into_iter().flatten().fold(hint, |hint, inner| hint.without_grant_around(&inner))
    }

    /// Drops a grant that would open `inner`, and with it everything beside it.
    pub(super) fn without_grant_around(mut self, inner: &Path) -> Self {
        self.grant = self.grant.filter(|grant| match grant {
            Grant::Read(path) | Grant::Write(path) => !inner.starts_with(path),
            Grant::Network | Grant::Host(_) | Grant::Port(_) => true,
        });
        self
    }

    /// Drops a grant of a dot file in a home directory: a program can print any path, and these are private.
    pub(super) fn without_private_grant(mut self, homes: &[PathBuf]) -> Self {
        let is_private = |path: &Path| {
            let names = homes.iter().filter_map(|home| path.strip_prefix(home).ok()?.components().next());
            names.into_iter().any(|name| name.as_os_str().as_encoded_bytes().starts_with(b"."))
        };
        self.grant = self.grant.filter(|grant| match grant {
            Grant::Read(path) | Grant::Write(path) => !is_private(path),
            Grant::Network | Grant::Host(_) | Grant::Port(_) => true,
        });
        self
    }

    /// Widens a grant to read a path into one that also lets programs write it.
    pub(super) fn for_writing(mut self) -> Self {
        self.grant =
            self.grant.map(|grant| if let Grant::Read(path) = grant { Grant::Write(path) } else { grant });
        self
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self { text, grant: None }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
