//! Tests of the engine through its public interface.

#![expect(clippy::unwrap_used, reason = "the lint recognizes tests, but not their helper functions")]

mod approvals;
mod broker;
mod calls;
mod cut;
mod elsewhere;
mod ends;
mod limits;
mod mutations;
mod others;
mod pool;
mod quiet_plans;
mod random_plans;
mod secrets;
mod stops;
mod support;
mod trust;
