//! The command line of taskpawl: translates between a terminal and the library, and contains no rules of its own.
//!
//! Code map: `command_line` leads from words to an exit code; `args` is the tree of commands; each command has a module in `commands` with
//! its `Args` and its `run`. `context` holds flags, configuration, policy and place; `app` adds tools and the store, opened when a command
//! first needs them. `output` is the only path to standard output and standard
//! error. Only `error`, `failure` and `output` know exit codes, only `config` knows layers of configuration, only `environment`
//! reads variables. `nested_call` decides which commands a program of a call may use.
//!
//! Invariants: everything that reaches a terminal is a `shown::Shown`, in which only styles and the controls of this
//! crate act on a terminal. A failure of standard output changes only the exit code of a successful command.

mod agents;
mod app;
mod args;
mod audit;
mod byte_size;
mod caller;
mod checklist;
mod coding_agents;
mod collector;
mod command_line;
mod commands;
mod config;
mod context;
mod environment;
mod error;
mod event_schema;
mod failure;
mod failure_words;
#[cfg(feature = "faults")]
pub mod faults;
#[cfg(not(feature = "faults"))]
mod faults;
mod files;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod global;
mod grants;
mod kits;
mod live_trace;
mod nested_call;
mod output;
#[cfg(test)]
mod page_commands;
mod person;
mod pin;
mod plan_library;
mod plan_relay;
mod planner;
#[cfg(test)]
mod reference;
mod remembered;
mod report;
mod run_events;
mod run_log;
mod schedules;
mod schema;
mod server_tools;
mod servers;
mod shown;
mod state_files;
mod text;
mod todo_lists;
mod tokens;
mod toolbox;
mod trust;
pub mod worker;

use std::process::ExitCode;

/// Runs the command of this process and returns its exit code.
pub fn main() -> ExitCode {
    taskpawl::child_entry();
    command_line::main(environment::Environment::read())
}
