//! Tests of the rules through the manager, over the store in memory.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod acceptance;
mod again;
mod apply;
mod approval_guard;
mod approvals;
mod approvals_ahead;
mod approvals_scope;
mod authors;
mod call_authorizations;
mod claims;
mod costs;
mod cycles;
mod definitions;
mod emit;
mod ending;
mod explain;
mod flow;
mod follow;
mod forecast;
mod gates;
mod hand;
mod identity;
mod ids;
mod imports;
mod leads_on;
mod limits;
mod loops;
mod plans;
mod recovery;
mod redo;
mod refusals;
mod release;
mod retries;
mod setup;
mod sizes;
mod support;
mod turns;
mod undo;
mod update_work;
mod verify;
mod waits;
