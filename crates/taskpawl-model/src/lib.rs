//! The schema and the rules of taskpawl, as pure functions.
//!
//! Nothing here does I/O, reads a clock, draws random numbers or starts a thread. Times and ids come in as arguments,
//! so that the same inputs always give the same plan, schedule and messages.
//!
//! The modules are subjects, each above those that it uses: [`value`], [`task`] and [`expr`] (expressions);
//! [`advice`], [`plan`] (plan files) and [`command`]; [`view`] (reading a store and writing to it); [`rules`] (what a
//! command changes); [`run`] (the loop of a run); [`insight`] (explanations and forecasts).

pub mod advice;
pub mod command;
pub mod expr;
pub mod insight;
pub mod plan;
pub mod rules;
pub mod run;
pub mod task;
pub mod value;
pub mod view;
