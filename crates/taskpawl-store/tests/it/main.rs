//! Tests of the store: one contract for every backend, and what each backend promises beside it.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod contract;
mod examine;
mod files;
mod golden;
mod placement;
mod support;
