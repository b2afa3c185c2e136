//! Why a path is closed to a tool, in words.

use std::fmt;
use std::path::PathBuf;

/// The reason why a tool must not touch a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClosedReason {
    /// The path may hold secrets.
    Hidden {
        /// The path to name for reading.
        place: PathBuf,
        /// Set if the path exists. A missing path cannot be named yet.
        exists: bool,
    },
    /// Other programs obey the file without asking, as git runs hooks.
    Protected {
        /// The path to name for writing.
        place: PathBuf,
        /// Set if the path exists. A missing path cannot be named yet.
        exists: bool,
    },
    /// The configuration closes the path.
    Configured {
        /// The name of the setting: `hide` or `protect`.
        setting: &'static str,
        /// The path in the setting.
        place: PathBuf,
    },
    /// The path belongs to taskpawl itself.
    Own,
}

impl fmt::Display for ClosedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden { place, exists } => {
                let (place, once) = (place.display(), once(*exists));
                write!(
                    f,
                    "is hidden, because it may contain secrets; {once}`--allow-read {place}` makes it readable"
                )
            }
            Self::Protected { place, exists } => {
                let (place, once) = (place.display(), once(*exists));
                write!(
                    f,
                    "is protected, because other programs run or load it; {once}`--allow-write {place}` makes it writable"
                )
            }
            Self::Configured { setting, place } => {
                let place = place.display();
                write!(
                    f,
                    "is closed to tools: `{setting}` in `[sandbox]` of the configuration contains `{place}`"
                )
            }
            Self::Own => f.write_str("belongs to taskpawl, and tools may not use it"),
        }
    }
}

pub(crate) fn once(exists: bool) -> &'static str {
    if exists { "" } else { "create it first, then " }
}
