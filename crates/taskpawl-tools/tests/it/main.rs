//! Tests of the registry, of the guard around calls, and of every built-in tool.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod arguments;
mod closed;
mod files;
mod fuzz;
mod fuzz_policy;
mod guard;
#[cfg(feature = "http")]
mod http;
mod odd_files;
mod outside;
mod own_tools;
mod policy;
mod policy_bypass;
mod policy_start;
mod programs;
mod race;
mod registry;
mod search;
mod support;
