//! Counts that may not grow: instructions, syncs, system calls and bytes of a task. Unlike times, they are the same on a busy machine.
#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod counters;
mod instructions;
mod kernel;
