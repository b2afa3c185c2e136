//! Starts, limits, watches and ends programs. Knows no tasks. Linux only.
//!
//! A program runs in a process group of its own. Its standard output and standard error are files that it holds
//! open itself, so its output never passes through this process and cannot fill its memory. Whatever ends a run,
//! be it the program itself, the deadline, the cancellation, too much output or the caller dropping the future,
//! nothing of the group survives it.
//!
//! Programs are started by `posix_spawn` only: a `fork` copies the page tables of the whole process, which takes a
//! large engine hundreds of milliseconds. Hence nothing here uses `pre_exec`.
//!
//! [`run`] is the one way in. It takes and returns plain data, so that a supervisor process can do the
//! same work elsewhere.

mod capture;
mod environment;
mod error;
mod group;
mod locate;
mod run;
mod spare;

pub use capture::{Captured, OutputFiles};
pub use environment::Environment;
pub use error::SpawnError;
pub use run::{End, Limits, Outcome, Program, run};
pub use spare::SpareFiles;
