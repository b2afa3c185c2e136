//! Random plans that combine all constructs.

mod draw;
mod expr;
mod flow;
mod plan;
mod spec;

pub use expr::{Expr, Template};
pub(crate) use expr::{Fact, Facts};
pub use plan::{Decision, Items, RandomCall, RandomPlan, RandomRetry, RandomTask, Rounds, Script, Verdict};
pub use spec::TOOL;
pub(crate) use spec::until;
