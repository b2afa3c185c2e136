//! Starts, watches and ends real programs.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod attempts;
mod ends;
mod engine;
mod handover;
mod output;
mod piped;
mod races;
mod sandbox;
mod start;
mod supervised;
mod support;
