//! Helpers of the tests: random plans, a small reference interpreter that says how they end, what always holds in a store, and
//! [`simulation`]: the engine under virtual time.
//!
//! The interpreter is written from the description of the states alone. It shares no code with the rules: it counts nothing,
//! queues nothing, and asks again and again until nothing more follows.

mod interpreter;
mod invariants;
mod plans;
mod random;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "its tables say what is allowed; everything else, also what is new, is not"
)]
pub mod reference;
pub mod scheduling;
pub mod simulation;
mod tables;

pub use interpreter::{CallName, Expected, Found, differences, interpret, other_results};
pub use invariants::broken_invariants;
pub use plans::{
    Decision, Expr, Items, RandomCall, RandomPlan, RandomRetry, RandomTask, Rounds, Script, TOOL, Template,
    Verdict,
};
pub use random::Random;
