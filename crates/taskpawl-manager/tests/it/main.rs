//! Tests of the rules through the manager, over the store in memory.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod again;
mod apply;
mod authors;
mod claims;
mod cycles;
mod ending;
mod explain;
mod gates;
mod hand;
mod limits;
mod recovery;
mod refusals;
mod sizes;
mod support;
mod undo;
