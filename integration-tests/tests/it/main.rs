//! Harnesses of the promises, and tests over the workspace as a whole.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod call_executors;
mod crash_recovery;
mod durability_kill;
mod durability_power;
mod edits_after_kills;
mod entry_points;
mod idempotency_keys;
mod imports_of_0_1;
mod io_faults;
mod leftovers;
mod many_processes;
mod memory_plans;
mod memory_servers;
mod memory_tools;
mod migrations;
mod pages;
mod plan_access;
mod sandbox_bypass;
mod sandbox_git;
mod sandbox_late;
mod secret_leaks;
mod signatures;
mod single_start;
mod stores_of_0_1;
mod support;
mod syncs;
mod targets;
mod terminal_text;
mod workspace;
