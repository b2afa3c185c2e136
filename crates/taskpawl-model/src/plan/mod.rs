//! Plans: what a plan file says, with its short forms written out and its tasks in one flat list.

mod types;

pub use types::{Budget, Param, ParamType, Plan, PlanTask, Position};
