use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use taskpawl_process::HostGrant;

use super::named_grant::RememberedGrant;

/// The kind of sandbox that programs run in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SandboxMode {
    /// No sandbox: programs have all rights of the user.
    Off,
    /// The standard sandbox, which every current Linux can enforce.
    #[default]
    On,
    /// The standard sandbox inside `bwrap`, where only the listed paths exist.
    Strict,
}

impl SandboxMode {
    /// Returns the name of the mode in settings.
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

/// The user's settings for the sandbox. By default programs have no network and can write only to the project.
///
/// Paths are absolute, start with `~/`, or are relative to the root of the project. A path that is listed itself in `write` or `read` is no
/// longer protected or hidden. Listing its parent does not have this effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxSettings {
    /// The kind of sandbox.
    pub mode: SandboxMode,
    /// Allows network access.
    pub net: bool,
    /// Hosts that programs may reach without `net`.
    pub hosts: Vec<HostGrant>,
    /// Ports of this machine's loopback that programs may connect to without `net`.
    pub ports: Vec<u16>,
    /// Further paths that programs may write.
    pub write: Vec<PathBuf>,
    /// Further paths that programs may read, besides the system, the home directory without secrets, and the project.
    pub read: Vec<PathBuf>,
    /// Paths that programs must not read although they lie in a readable directory.
    pub hide: Vec<PathBuf>,
    /// Paths that programs must not write although they lie in the project.
    pub protect: Vec<PathBuf>,
    /// Grants that a person has remembered for plans of this project. They widen the sandbox of the calls of these plans.
    pub remembered: Vec<RememberedGrant>,
    /// Further environment variables that programs see. `NAME_*` stands for all variables that start with `NAME_`.
    pub env: Vec<String>,
    /// The memory limit in bytes of all programs together. Systems without a delegated cgroup do not enforce it.
    pub memory: Option<u64>,
    /// The limit of processes and threads of all programs together, enforced where the system can.
    pub processes: Option<u64>,
}

impl SandboxSettings {
    /// Returns settings without a sandbox.
    pub fn off() -> Self {
        Self { mode: SandboxMode::Off, ..Self::default() }
    }
}

/// Additional access of one call, after it was allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Widening {
    /// Network access.
    pub net: bool,
    /// Further paths to write.
    pub write: Vec<PathBuf>,
    /// Further paths to read.
    pub read: Vec<PathBuf>,
    /// Hosts to reach.
    pub hosts: Vec<HostGrant>,
    /// Ports of this machine to connect to.
    pub ports: Vec<u16>,
    /// Further environment variables.
    pub env: Vec<String>,
}

impl Widening {
    /// Adds the access of another widening.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let Self { net, write, read, hosts, ports, env } = other;
        self.net |= net;
        self.write.extend(write);
        self.read.extend(read);
        self.hosts.extend(hosts);
        self.ports.extend(ports);
        self.env.extend(env);
        self
    }
}
