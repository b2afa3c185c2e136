//! Starts, limits, watches and ends programs. Knows nothing about tasks. Linux only.
//!
//! The programs of a run belong to a *supervisor*, a small process. It is started with the first program,
//! starts all others, and outlives the engine until it has killed the remaining processes. It is the host
//! program itself, executed a second time: see [`child_entry`].
//!
//! A program runs in a process group of its own. Its standard output and standard error are pipes. Their
//! content is moved to files in chunks, so that it cannot fill the memory of this process. A program ends by
//! itself, or because of a deadline, a cancellation, too much output, a dropped future or the death of this
//! process. In every case no process that it started survives the run, and none that can be recognized
//! survives the call.
//!
//! Programs are started with `posix_spawn` or its equivalent: `fork` copies the page tables of the whole
//! process, which takes hundreds of milliseconds in a large engine. Therefore nothing here uses `pre_exec`.
//!
//! A supervisor sandboxes itself once, and its programs inherit the sandbox, so each start is as cheap as
//! without one. If a sandbox cannot be enforced, no program is started. [`Profile`] describes a sandbox, and
//! [`Enforcement`] the restrictions that were in force.
//!
//! [`Programs`] is the entry point. In `supervisor/`, `link` is the engine's side, `server` and `calls` are
//! the supervisor's side, and `wire` and `socket` connect them. `sandbox/` is the code with which a
//! supervisor sandboxes itself.

#[cfg(not(unix))]
compile_error!("taskpawl does not run on Windows; in the Windows Subsystem for Linux it does");

#[cfg(all(unix, feature = "programs", not(target_os = "linux")))]
compile_error!(
    "the feature `programs` is for Linux: programs run in a sandbox, and are owned in a way, that other systems do not offer; build without it"
);

mod beneath;
mod bounded;
mod descriptors;
mod environment;
mod error;
mod filter;
mod handover;
mod locate;
mod network;
mod output;
mod private;
mod profile;
mod program;
mod sandbox;
mod search;
mod supervision;

#[cfg(feature = "programs")]
mod capture;
#[cfg(all(feature = "programs", feature = "faults"))]
pub mod faults;
#[cfg(all(feature = "programs", not(feature = "faults")))]
#[path = "no_faults.rs"]
mod faults;
#[cfg(feature = "programs")]
mod group;
#[cfg(feature = "programs")]
mod heap;
#[cfg(feature = "programs")]
mod located;
#[cfg(not(feature = "programs"))]
mod no_programs;
#[cfg(feature = "programs")]
mod own_group;
#[cfg(feature = "programs")]
mod pipe_reader;
#[cfg(feature = "programs")]
mod piped;
#[cfg(feature = "programs")]
mod probe;
#[cfg(feature = "programs")]
mod programs;
#[cfg(feature = "programs")]
mod spawn_spec;
#[cfg(feature = "programs")]
mod supervisor;
#[cfg(feature = "programs")]
mod watch;

pub use beneath::{PATH_ONLY, open_beneath};
pub use bounded::{Unfinished, blocking_within, passed};
pub use descriptors::{DescriptorShare, free_descriptors};
pub use environment::Environment;
pub use error::SpawnError;
pub use filter::{OutputFilter, StreamFilter, filter_file};
pub use handover::{Handover, inherited};
pub use network::{
    HostGrant, InvalidHostGrant, OwnListener, RefusedAccess, powerful_server, special_address,
};
pub use output::{Captured, OutputFiles};
pub use private::{keep_owner_rights, make_private_directories, make_private_directory};
pub use profile::{
    Enforcement, Isolation, Layers, Level, Network, NetworkWall, Profile, ResourceLimits, Sandbox, Substitute,
};
pub use program::{End, Limits, Outcome, Program};
pub use sandbox::{Way, follow};
pub use search::SearchPath;
pub use supervision::Supervision;

#[cfg(not(feature = "programs"))]
pub use no_programs::{Programs, bubblewrap, child_entry, is_below_supervisor, is_in_sandbox, probe};

#[cfg(feature = "programs")]
pub use self::{
    heap::share_heap,
    piped::{Piped, PipedEnd},
    probe::{bubblewrap, probe},
    programs::Programs,
    supervisor::{child_entry, is_below_supervisor, is_in_sandbox},
};
