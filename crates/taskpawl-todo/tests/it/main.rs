//! The contract of the four dialects, line by line, and what holds for all of them.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

mod checklist;
mod conversation;
mod every;
mod fuzz;
mod promote;
mod queue;
mod session;
mod support;
mod words;
