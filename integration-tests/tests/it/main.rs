//! Tests over the workspace as a whole.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod p10;
mod p10_git;
mod p10_plan;
mod p11;
mod p12_plans;
mod p12_servers;
mod p12_tools;
mod p15;
mod p1_kills;
mod p1_power;
mod p2;
mod p21;
mod p3;
mod p4;
mod p5;
mod p7;
mod p9;
mod readme;
mod support;
mod syncs;
mod ways;
mod workspace;
