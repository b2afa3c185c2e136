//! Tests of the store: the contract of all backends, and the specific guarantees of each.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod contract;
mod examine;
mod files;
mod golden;
mod placement;
mod support;
