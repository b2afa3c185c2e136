//! Tests of every format with files of the original programs, with round trips, and with hostile input.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod belongs;
mod changes;
mod detection;
mod edges;
mod errors;
mod exports;
mod fuzz;
mod hostile;
mod identity;
mod imports_of_0_1;
mod moves;
mod order;
mod property;
mod removals;
mod samples;
mod support;
mod table;
mod tools;
mod unchanged;
mod unsupported;
mod words;
