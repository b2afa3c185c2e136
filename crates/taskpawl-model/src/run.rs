//! Runs: the run loop, its schedule, and recovery.

pub(crate) mod allocator;
pub(crate) mod ranks;
pub mod recovery;
pub mod run_loop;
pub(crate) mod run_view;
pub mod schedule;
pub(crate) mod simulated_schedule;
pub(crate) mod waiting_set;

pub use simulated_schedule::Turn;
