use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::network::HostGrant;

/// The sandbox of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sandbox {
    /// No sandbox: the program has all permissions of the user.
    #[default]
    Off,
    /// The program is restricted by the profile. It is not started if the system cannot enforce it.
    On(Arc<Profile>),
}

/// The permissions of programs.
///
/// Programs of one run with equal profiles share a supervisor, which sandboxes itself once. A new profile has
/// a one-time cost, but no cost per program.
///
/// Paths are absolute. Symbolic links are resolved when the profile is first used; a link that is changed
/// later does not change the sandbox. Paths that do not exist are allowed: where a path is forbidden, no
/// program can create it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Profile {
    /// The isolation level.
    pub level: Level,
    /// The network access.
    pub network: Network,
    /// Hosts that programs may reach although `network` is `None`. Needs a network namespace.
    pub hosts: Vec<HostGrant>,
    /// Ports of this machine's loopback that programs may connect to, at the same ports of their own loopback. Needs a network namespace.
    pub ports: Vec<u16>,
    /// Directories and files that may be read, written and executed, with everything in them.
    pub write: Vec<PathBuf>,
    /// Directories and files that may be read and executed, with everything in them. A few devices, and
    /// `/proc` for the processes of the sandbox, are added.
    pub read: Vec<PathBuf>,
    /// Directories of `read` in which only the other paths of the profile exist. This needs mounts. Without them, all of
    /// such a directory can be read except `hidden`, which is reported as a gap.
    pub emptied: Vec<PathBuf>,
    /// Directories that programs see in place of the shared ones for temporary files, and may write. This needs mounts.
    pub private: Vec<Substitute>,
    /// Directories whose changes stay in private layers, such as caches in the home directory.
    pub layers: Layers,
    /// Files that programs see in place of others, read-only. This needs mounts. Without them programs see what the other
    /// lists say of the paths.
    pub copies: Vec<Substitute>,
    /// Excluded paths: neither they nor anything in them can be read or written, even inside the paths above.
    pub hidden: Vec<PathBuf>,
    /// The paths of `hidden` that only administrators can create or replace. If mounts cover the excluded
    /// paths, these need nothing else. Otherwise each of about a hundred neighboring files needs a Landlock
    /// rule, and every program start copies all rules.
    pub administered: Vec<PathBuf>,
    /// Paths inside `write` that cannot be written, with everything in them. An entry inside `hidden` has no
    /// effect.
    pub read_only: Vec<PathBuf>,
    /// Hidden or read-only paths with influence on the execution of programs. If one is writable and no mount
    /// can cover it, its directories become read-only. If one is missing and could be created, no program is
    /// started.
    pub guarded: Vec<PathBuf>,
    /// The resource limits.
    pub limits: ResourceLimits,
    /// Known gaps of the profile, as sentence fragments from its author. They are returned in
    /// [`Enforcement::gaps`].
    pub gaps: Vec<String>,
}

/// A file or directory that programs see in place of another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Substitute {
    /// The path by which programs use it, such as `/tmp`.
    pub path: PathBuf,
    /// The file or directory itself.
    pub source: PathBuf,
}

/// Directories that programs may write, while the directories themselves stay as they are.
///
/// This needs mounts. Without them, or where the system mounts no overlay, the directories are as the other lists of the profile say,
/// and this is reported as a gap. A path in `write`, and one that is hidden or contains a hidden path, is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Layers {
    /// The directory for the changes. Each supervisor takes a part of it for itself while it runs, because the changes of
    /// an overlay must not be shared: the first supervisor always takes the same part.
    pub source: Option<PathBuf>,
    /// Directories that programs see with their own changes on top. A missing one in an emptied directory starts empty.
    pub overlaid: Vec<PathBuf>,
    /// Directories in emptied ones of which programs see their own files alone.
    pub own: Vec<PathBuf>,
}

/// The isolation level of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Landlock, a system call filter, no capabilities, and namespaces where the system allows them.
    #[default]
    Standard,
    /// All of `Standard` inside `bwrap`, where only the listed paths exist. Without `bwrap` no program is
    /// started.
    Strict,
}

/// The network access of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// No network. If the system allows it, the programs of the profile share a loopback interface.
    #[default]
    None,
    /// The network of the user.
    Full,
}

/// Resource limits of programs. Core dumps are always disabled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResourceLimits {
    /// Open descriptors per process.
    pub open_files: u64,
    /// The size of each file that is written, in bytes.
    pub file_size: u64,
    /// Processes and threads of all programs of the profile together. Needs a delegated cgroup, or namespaces
    /// and a user other than root; that user has a limit of 10,000 by default.
    pub processes: Option<u64>,
    /// Memory in bytes of all programs of the profile together. Needs a delegated cgroup.
    pub memory: Option<u64>,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self { open_files: 1024, file_size: 16 << 30, processes: None, memory: None }
    }
}

/// The restrictions that were in force for a program, as its supervisor reported them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Enforcement {
    /// The requested isolation level.
    pub level: Level,
    /// The Landlock ABI version of the kernel.
    pub landlock: u32,
    /// True if mounts covered the hidden and read-only paths.
    pub mounts: bool,
    /// True if the programs had a process namespace of their own: they saw no other processes, and could not end their supervisor.
    pub own_processes: bool,
    /// The mechanism that blocked the network.
    pub network: NetworkWall,
    /// True if the programs had a cgroup of their own, which enforces the limits of processes and memory.
    pub cgroup: bool,
    /// The limit of processes and threads of all programs together; `None` if only the machine limits them.
    pub processes: Option<u64>,
    /// Requested restrictions that the system could not enforce, as sentence fragments.
    pub gaps: Vec<String>,
}

/// The part of the sandbox that a system enforces, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Isolation {
    /// Everything: mounts, a process namespace, and a network namespace unless the network is granted.
    A,
    /// Some of the namespaces, as in a user namespace without rights.
    B,
    /// No namespace; Landlock, also for the network, and the filter of system calls.
    C,
    /// No namespace, and Landlock without rules for the network.
    D,
}

/// The first version of Landlock with rules for the network.
const LANDLOCK_OF_NETWORK: u32 = 4;

impl Isolation {
    /// All levels, the best first.
    pub const ALL: [Self; 4] = [Self::A, Self::B, Self::C, Self::D];

    /// Returns the letter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
        }
    }
}

impl Enforcement {
    /// Returns how much of the sandbox was enforced.
    pub fn isolation(&self) -> Isolation {
        let namespaces = [self.mounts, self.own_processes, self.network == NetworkWall::Namespace];
        if self.mounts && self.own_processes && self.network != NetworkWall::Filter {
            Isolation::A
        } else if namespaces.contains(&true) {
            Isolation::B
        } else if self.landlock >= LANDLOCK_OF_NETWORK {
            Isolation::C
        } else {
            Isolation::D
        }
    }
}

/// The mechanism that blocks the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkWall {
    /// A network namespace with only a loopback interface.
    Namespace,
    /// A system call filter, which only allows sockets between related processes.
    Filter,
    /// None: the programs can use the network.
    #[default]
    Open,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_isolation_is_named_by_what_is_enforced() {
        let of = |mounts, own_processes, network, landlock| {
            Enforcement { landlock, mounts, own_processes, network, ..Enforcement::default() }.isolation()
        };
        assert_eq!(of(true, true, NetworkWall::Namespace, 6), Isolation::A);
        assert_eq!(of(true, true, NetworkWall::Open, 1), Isolation::A);
        assert_eq!(of(true, false, NetworkWall::Namespace, 6), Isolation::B);
        assert_eq!(of(false, false, NetworkWall::Namespace, 6), Isolation::B);
        assert_eq!(of(true, true, NetworkWall::Filter, 6), Isolation::B);
        assert_eq!(of(false, false, NetworkWall::Filter, 6), Isolation::C);
        assert_eq!(of(false, false, NetworkWall::Open, 3), Isolation::D);
    }
}
