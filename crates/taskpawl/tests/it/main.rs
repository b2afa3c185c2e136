//! Guarantees for programs that embed taskpawl.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod asking;
mod authors;
mod check;
mod data;
mod digest;
mod examples;
mod facade;
mod handles;
mod hosts;
mod keys;
mod planning;
mod plans;
mod prune;
mod reads;
mod runs;
mod sizes;
mod support;
#[cfg(feature = "macros")]
mod traces;
mod typed;
