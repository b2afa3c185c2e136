//! Tasks that wait for a time or a signal, which no run does.

use serde_json::{Value, json};
use taskpawl_report::{Included, LogBuilder, Outcome, RunEnd, RunLog, SpanStatus, junit, spans};

use crate::support::{ended, event, run, status};

fn waits() -> Value {
    json!({"type": "status", "from": "in_progress", "to": "in_progress", "cause": "wait", "attempt": 1})
}

/// Returns a log of a task that began to wait at second 1, with further events.
fn log(further: &[(u32, Value)]) -> RunLog {
    let mut builder = LogBuilder::new(&run(), RunEnd::Exit(3), Included::default());
    builder.take(&event("soak", 0, &status("todo", "in_progress", None)));
    builder.take(&event("soak", 1, &waits()));
    for (second, kind) in further {
        builder.take(&event("soak", *second, kind));
    }
    builder.finish()
}

#[test]
fn a_task_that_still_waits_is_no_error_and_has_one_span() {
    let log = log(&[]);
    assert_eq!(log.tasks[0].outcome(), Outcome::Waiting);
    assert_eq!((log.failures().count(), log.counts_text()), (0, "1 waiting".to_owned()));
    assert!(junit(&log).contains("<skipped message=\"waiting\"/>"));
    let spans = spans(&log);
    assert_eq!((spans.len(), &spans[1].status), (2, &SpanStatus::Unset));
}

#[test]
fn a_wait_that_ended_is_a_call_from_its_start_to_its_end() {
    for (end, task, outcome) in [("succeeded", "done", Outcome::Done), ("failed", "failed", Outcome::Failed)]
    {
        let log = log(&[(4, ended("c1", end, None)), (4, status("in_progress", task, None))]);
        assert_eq!(log.tasks[0].outcome(), outcome);
        assert_eq!((log.tasks[0].attempts.len(), log.tasks[0].calls.len()), (1, 1));
        let spans = spans(&log);
        let seconds = |at: usize| (spans[at].ended_at - spans[at].started_at).num_seconds();
        assert_eq!((spans.len(), seconds(1), seconds(2)), (3, 4, 3));
    }
}
