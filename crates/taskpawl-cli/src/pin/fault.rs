//! The reasons why the PIN does not let a decision through.

use std::fmt;
use std::io;
use std::path::PathBuf;

use taskpawl::model::advice::Hint;
use taskpawl::model::value::{Timestamp, format_time};

/// The most wrong PINs in a row before the PIN is locked.
pub(super) const MAX_TRIES: u32 = 5;

/// The reason why a decision is refused.
#[derive(Debug)]
pub(crate) enum PinFault {
    /// A policy requires a PIN, and none is set.
    Missing(String),
    Wrong {
        left: u32,
    },
    Locked {
        until: Timestamp,
    },
    /// No PIN was typed.
    NotTyped,
    /// The file cannot be read or written.
    File(PathBuf, io::Error),
}

impl fmt::Display for PinFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(place) => write!(f, "{place} requires one, and none is set"),
            Self::Wrong { left: 0 } => f.write_str("wrong PIN; it is locked for ten minutes"),
            Self::Wrong { left: 1 } => f.write_str("wrong PIN; one try is left"),
            Self::Wrong { left } => write!(f, "wrong PIN; {left} tries are left"),
            Self::Locked { until } => {
                write!(f, "locked until {} after {MAX_TRIES} wrong tries", format_time(*until))
            }
            Self::NotTyped => f.write_str("none was typed"),
            Self::File(path, error) => write!(f, "failed to use `{}`: {error}", path.display()),
        }
    }
}

impl PinFault {
    /// Returns the next step.
    pub(crate) fn hint(&self) -> Hint {
        match self {
            Self::Missing(_) => Hint::default().command("pin set").text(" sets it, in a terminal"),
            Self::Wrong { .. } | Self::NotTyped => "give the command again and type the PIN".into(),
            Self::Locked { .. } => "wait until then".into(),
            Self::File(..) => "repair the file, or remove it and set the PIN again".into(),
        }
    }
}
