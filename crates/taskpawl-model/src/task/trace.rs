//! Ids of the spans of a run, task and call, derived from stored ids.
//!
//! A call learns its span before anything is exported, and a trace that is made from the history of a killed run has the
//! same ids.

use sha2::{Digest, Sha256};

use crate::value::{CallId, RunId, TaskId};

/// The id of a trace.
pub type TraceId = [u8; 16];

/// The id of a span.
pub type SpanId = [u8; 8];

/// Returns the id of the trace of a run.
pub fn trace_id(run: &RunId) -> TraceId {
    derived("trace", &[run.as_str()])
}

/// Returns the id of the span of a run.
pub fn run_span_id(run: &RunId) -> SpanId {
    derived("run", &[run.as_str()])
}

/// Returns the id of the span of an attempt of a task.
pub fn task_span_id(run: &RunId, task: &TaskId, attempt: u32) -> SpanId {
    derived("task", &[run.as_str(), task.as_str(), &attempt.to_string()])
}

/// A start of a call in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartInRun<'a> {
    /// The run.
    pub run: &'a RunId,
    /// The task.
    pub task: &'a TaskId,
    /// The attempt of the task.
    pub attempt: u32,
    /// The call.
    pub call: &'a CallId,
    /// The number of the start of the call, from 1.
    pub start: u32,
}

impl StartInRun<'_> {
    /// Returns the id of its span.
    pub fn span_id(&self) -> SpanId {
        let Self { run, task, attempt, call, start } = self;
        let (attempt, start) = (attempt.to_string(), start.to_string());
        derived("call", &[run.as_str(), task.as_str(), &attempt, call.as_str(), &start])
    }

    /// Returns the W3C trace context, as `traceparent` headers have it. The trace counts as sampled.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", hex(&trace_id(self.run)), hex(&self.span_id()))
    }
}

/// Returns the first bytes of a hash. The length before each part keeps `a`, `bc` and `ab`, `c` apart.
fn derived<const N: usize>(kind: &str, parts: &[&str]) -> [u8; N] {
    let mut hash = Sha256::new_with_prefix("taskpawl span ");
    for part in std::iter::once(&kind).chain(parts) {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let (mut id, hash) = ([0; N], hash.finalize());
    id.copy_from_slice(&hash[..N]);
    // An id of zeros means none.
    id[N - 1] |= 1;
    id
}

/// Returns bytes in hexadecimal.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_every_part() {
        let (run, other) = (RunId::from("r1"), RunId::from("r2"));
        let (task, call) = (TaskId::from("a"), CallId::from("c1"));
        let start = StartInRun { run: &run, task: &task, attempt: 1, call: &call, start: 1 };
        let again = StartInRun { start: 2, ..start };
        let ids = [
            start.span_id(),
            again.span_id(),
            StartInRun { attempt: 2, ..start }.span_id(),
            StartInRun { run: &other, ..start }.span_id(),
            task_span_id(&run, &task, 1),
            task_span_id(&run, &task, 11),
            run_span_id(&run),
        ];
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        let parent = start.traceparent();
        assert_eq!(parent.len(), 55);
        assert!(parent.starts_with("00-") && parent.ends_with("-01"), "{parent}");
    }
}
