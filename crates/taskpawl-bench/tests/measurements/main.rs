//! Counts that must not grow: instructions, syncs, system calls and bytes per task. Unlike durations, they hardly
//! depend on other load.
#![expect(clippy::unwrap_used, reason = "the lint recognizes tests, but not their helper functions")]

mod counters;
mod instructions;
mod kernel;
