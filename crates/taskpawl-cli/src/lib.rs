//! The command line of taskpawl: translates between a terminal and the library, and holds no rules of its own.
//!
//! Code map: `args` is the tree of commands; each has a module in `commands` with its `Args` and its `run`. `app` opens the
//! store when a command first needs it. `output` is the only way to standard output and standard error, `error` and `output` are the
//! only places that know exit codes, `config` the only one that knows layers, `environment` the only one that reads variables; `within` says
//! which commands are for programs of a call.
//!
//! Invariants: whatever reaches a terminal is a `shown::Shown`, in which nothing but styles acts on a terminal. What becomes of standard
//! output changes no exit code but that of success.

mod agents;
mod app;
mod args;
mod caller;
mod checklist;
mod commands;
mod config;
mod environment;
mod error;
mod event_schema;
#[cfg(feature = "faults")]
pub mod faults;
#[cfg(not(feature = "faults"))]
mod faults;
mod files;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod nested_call;
mod output;
mod pin;
mod report;
mod schema;
mod servers;
mod shown;
mod text;
mod todo_lists;
mod toolbox;
mod trust;

use std::process::ExitCode;

/// Runs the command that the process was started with, to its end.
pub fn main() -> ExitCode {
    taskpawl::child_entry();
    args::main(environment::Environment::read())
}
