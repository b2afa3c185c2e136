//! The tool with an agent that does what its scenario says.

#![expect(clippy::unwrap_used, reason = "the lint recognizes tests, but not their helper functions")]

mod conversation;
mod faults;
mod support;
