use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Whether programs run in a sandbox, and in which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SandboxMode {
    /// In none: they may do whatever the user may.
    Off,
    /// In the one that every Linux of today can enforce.
    #[default]
    On,
    /// In one that is begun inside of `bwrap` too, where only the named places exist.
    Strict,
}

impl SandboxMode {
    /// Returns the mode as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Strict => "strict",
        }
    }
}

impl fmt::Display for SandboxMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SandboxMode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::On),
            "strict" => Ok(Self::Strict),
            _ => Err("on, strict or off"),
        }
    }
}

/// What the user lets programs do. The default is a sandbox without network that writes to the project alone.
///
/// Paths are absolute, begin with `~/`, or start from the root of the project. A path that stands in `write` or `read` by its own
/// name is no longer protected or hidden; its parent does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxSettings {
    /// Whether there is a sandbox.
    pub mode: SandboxMode,
    /// Whether programs reach the network.
    pub net: bool,
    /// Where they may write beside the project.
    pub write: Vec<PathBuf>,
    /// What they may read beside the system, the home without its secrets, and the project.
    pub read: Vec<PathBuf>,
    /// What they may not read although it lies in one of these places.
    pub hide: Vec<PathBuf>,
    /// What they may not write although it lies in the project.
    pub protect: Vec<PathBuf>,
    /// Variables that they see beside the usual ones, by name; `NAME_*` is all that begin so.
    pub env: Vec<String>,
    /// How many bytes of memory they have together, where the system can hold them to it.
    pub memory: Option<u64>,
    /// How many processes and threads they may be together, where the system can hold them to it.
    pub processes: Option<u64>,
}

impl SandboxSettings {
    /// Returns settings without a sandbox.
    pub fn off() -> Self {
        Self { mode: SandboxMode::Off, ..Self::default() }
    }
}

/// What one call may do beside what the settings say, once somebody has allowed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Widening {
    /// Network access.
    pub net: bool,
    /// More paths to write.
    pub write: Vec<PathBuf>,
    /// More paths to read.
    pub read: Vec<PathBuf>,
}
