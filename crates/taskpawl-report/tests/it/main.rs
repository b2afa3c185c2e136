//! Tests of reports and traces, from events alone.

#![expect(clippy::unwrap_used, reason = "the lint sees tests, but not their helpers")]

mod hostile;
mod sandboxes;
mod support;
mod traces;
mod waits;
