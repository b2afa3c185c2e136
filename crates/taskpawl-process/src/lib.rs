//! Starts, limits, watches and ends programs. Knows no tasks. Linux only.
//!
//! The programs of a run belong to a *supervisor*: a small process that is started with the first of them, starts all others,
//! and outlives this one for as long as it takes to kill what is left. It is the host program itself, executed a second time:
//! see [`child_entry`].
//!
//! A program runs in a process group of its own. Its standard output and standard error are pipes, and what comes through them goes on
//! to files, a piece at a time: it cannot fill the memory of this process. Whatever ends it,
//! be it the program itself, the deadline, the cancellation, too much output, the caller dropping the future or the death of
//! this process, nothing that it started survives the run, and nothing that can be recognised survives the call.
//!
//! Programs are started by `posix_spawn` or its like only: a `fork` copies the page tables of the whole process, which takes a
//! large engine hundreds of milliseconds. Hence nothing here uses `pre_exec`.
//!
//! A supervisor puts itself into the sandbox that its programs shall have, once; they inherit it, and starting one costs nothing
//! more. What cannot be enforced is not started. See [`Profile`] for what can be said, and [`Enforcement`] for what was in force.
//!
//! [`Programs`] is the one way in. `supervisor/` has both sides of the supervisor: `link` is the engine's, `server` and
//! `calls` are the supervisor's, `wire` and `socket` are between them. `sandbox/`
//! is what a supervisor does to itself.

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
mod inlet;
mod locate;
mod own_group;
mod piped;
mod private;
mod probe;
mod profile;
mod program;
mod programs;
mod recipe;
mod sandbox;
mod search;
mod supervisor;
mod watch;

pub use capture::{Captured, OutputFiles};
pub use environment::Environment;
pub use error::SpawnError;
pub use filter::{OutputFilter, StreamFilter, filter_file};
pub use handover::{Handover, inherited};
pub use heap::share_heap;
pub use piped::{Piped, PipedEnd};
pub use private::{keep_owner_rights, make_private_directories, make_private_directory};
pub use probe::{bubblewrap, probe};
pub use profile::{Enforcement, Level, Network, NetworkWall, Profile, ResourceLimits, Sandbox};
pub use program::{End, Limits, Outcome, Program};
pub use programs::{Programs, Supervision};
pub use sandbox::{Way, follow};
pub use search::SearchPath;
pub use supervisor::{child_entry, is_below_supervisor};
