//! Tests of the model through its public API.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod data;
mod expr;
mod fuzz;
mod plan;
mod schedule;
mod tables;
mod wire;
