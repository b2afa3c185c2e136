use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

/// Whether a program runs in a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sandbox {
    /// It may do whatever the user may.
    #[default]
    Off,
    /// It may do what the profile says. Where the system cannot enforce that, it is not started.
    On(Arc<Profile>),
}

/// What programs may do.
///
/// Programs of one run with equal profiles share a supervisor, which sandboxes itself once and hands its sandbox down: a
/// profile costs something when it is used first, and nothing per program.
///
/// Paths are absolute; links in them are followed when the profile is first used. What a link leads to later is another place.
/// Those that do not exist are fine: nobody can make them where they would be forbidden.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Profile {
    /// How strong the walls are.
    pub level: Level,
    /// Which network there is.
    pub network: Network,
    /// All beneath these may be read, written and executed.
    pub write: Vec<PathBuf>,
    /// All beneath these may be read and executed. A few devices and the processes of the sandbox in `/proc` are added.
    pub read: Vec<PathBuf>,
    /// These are neither read nor written, nor anything beneath them, although they lie beneath one of the above.
    pub hidden: Vec<PathBuf>,
    /// Those of `hidden` that only administrators make or replace. Where mounts cover what is hidden, these need nothing else: else each
    /// of the hundred files around them takes a rule, and every start of a program copies all rules.
    pub administered: Vec<PathBuf>,
    /// These are not written, nor anything beneath them, although they lie beneath one of `write`. Beneath `hidden` this says
    /// nothing.
    pub read_only: Vec<PathBuf>,
    /// These, which are hidden or read-only too, decide about programs: where they could write one of them and it cannot be covered,
    /// they write nothing in the directories that it is in, and where it is not there and could be made, nothing is started.
    pub guarded: Vec<PathBuf>,
    /// How much a program may use.
    pub limits: ResourceLimits,
    /// What whoever made the profile knows to be missing in it, one sentence fragment each. It comes back in [`Enforcement::gaps`].
    pub gaps: Vec<String>,
}

/// How strong the walls of a sandbox are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Landlock, a filter of system calls, no capabilities, and name spaces of its own where the system allows them.
    #[default]
    Standard,
    /// All of that inside of `bwrap`, in which only the named places exist; without `bwrap` nothing is started.
    Strict,
}

/// Which network programs have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// None but, where the system allows it, a loopback that the programs of the profile share.
    #[default]
    None,
    /// That of the user.
    Full,
}

/// How much programs may use. Core dumps are never written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResourceLimits {
    /// Descriptors that one process may have open.
    pub open_files: u64,
    /// Processes and threads of all programs of the profile together. Needs a delegated cgroup, or an ordinary user with namespaces, who
    /// has 10,000 of them without it.
    pub processes: Option<u64>,
    /// Bytes of memory of all programs of the profile together; needs a delegated cgroup.
    pub memory: Option<u64>,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self { open_files: 1024, processes: None, memory: None }
    }
}

/// What was in force around a program, as its supervisor found it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Enforcement {
    /// How strong the walls were meant to be.
    pub level: Level,
    /// The version of Landlock's interface that the kernel has.
    pub landlock: u32,
    /// Whether hidden and read-only places were covered by mounts.
    pub mounts: bool,
    /// What kept the network out.
    pub network: NetworkWall,
    /// Whether the programs shared a cgroup of their own, which holds the limits of processes and memory.
    pub cgroup: bool,
    /// How many processes and threads the programs may be together; `None` where nothing but the machine limits them.
    pub processes: Option<u64>,
    /// What the profile asks for and the system could not give, one sentence fragment each.
    pub gaps: Vec<String>,
}

/// What keeps programs from the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkWall {
    /// A network of their own in which there is only a loopback.
    Namespace,
    /// A filter of system calls: no sockets but those between related processes.
    Filter,
    /// Nothing: they may use the network.
    #[default]
    Open,
}
