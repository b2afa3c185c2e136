//! Tests of the store: one contract for every backend, and what each backend promises beside it.

mod contract;
mod files;
mod placement;
mod support;
