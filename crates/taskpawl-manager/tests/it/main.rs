//! Tests of the rules through the manager, over the store in memory.

mod again;
mod apply;
mod authors;
mod claims;
mod cycles;
mod gates;
mod hand;
mod refusals;
mod sizes;
mod support;
