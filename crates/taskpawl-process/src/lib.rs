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

#![cfg_attr(not(feature = "programs"), allow(dead_code, reason = "no program is started"))]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "taskpawl runs on Linux only: it starts programs in a sandbox and owns them in a way that other systems do not offer"
);

mod beneath;
mod bounded;
mod capture;
mod environment;
mod error;
#[cfg(feature = "faults")]
pub mod faults;
#[cfg(not(feature = "faults"))]
#[path = "no_faults.rs"]
mod faults;
mod filter;
mod group;
mod handover;
mod heap;
mod locate;
mod network;
mod own_group;
mod pipe_reader;
mod piped;
mod private;
mod probe;
mod profile;
mod program;
mod programs;
mod sandbox;
mod search;
mod spawn_spec;
mod supervisor;
mod watch;

pub use beneath::open_beneath;
pub use bounded::{Unfinished, blocking_within, passed};
pub use capture::{Captured, OutputFiles};
pub use environment::Environment;
pub use error::SpawnError;
pub use filter::{OutputFilter, StreamFilter, filter_file};
pub use handover::{Handover, inherited};
pub use heap::share_heap;
pub use network::{
    HostGrant, InvalidHostGrant, OwnListener, RefusedAccess, powerful_server, special_address,
};
pub use piped::{Piped, PipedEnd};
pub use private::{keep_owner_rights, make_private_directories, make_private_directory};
pub use probe::{bubblewrap, probe};
pub use profile::{
    Enforcement, Isolation, Layers, Level, Network, NetworkWall, Profile, ResourceLimits, Sandbox, Substitute,
};
pub use program::{End, Limits, Outcome, Program};
pub use programs::{Programs, Supervision};
pub use sandbox::{Way, follow};
pub use search::SearchPath;
pub use supervisor::{child_entry, is_below_supervisor, is_in_sandbox};
