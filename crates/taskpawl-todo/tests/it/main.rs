//! Contract tests of the four dialects, and tests of their common behaviour.

#![expect(clippy::unwrap_used, reason = "the lint recognizes tests, but not their helper functions")]

mod checklist;
mod conversation;
mod every;
mod fuzz;
mod promote;
mod queue;
mod session;
mod support;
mod words;
