//! Test support: random plans, a small reference interpreter that predicts their ends, invariants of a store, and
//! [`simulation`]: the engine in simulated time.
//!
//! The interpreter is written from the description of the statuses alone and shares no code with the rules. It keeps no
//! counters and no queues, and evaluates everything again until nothing more follows.

pub mod harness;
mod interpreter;
mod invariants;
mod plans;
mod random;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "its tables list everything that is allowed; all else, including future variants, is refused"
)]
pub mod reference;
pub mod simulation;
mod tables;

pub use interpreter::{CallName, Expected, Found, differences, interpret, other_results};
pub use invariants::broken_invariants;
pub use plans::{
    Decision, Expr, Items, RandomCall, RandomPlan, RandomRetry, RandomTask, Rounds, Script, TOOL, Template,
    Verdict,
};
pub use random::Random;
