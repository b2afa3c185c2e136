//! Traces: spans of finished and killed runs, in both formats.

use serde_json::Value;
use taskpawl_model::task::StartInRun;
use taskpawl_model::value::{CallId, RunId, TaskId};
use taskpawl_report::{
    Included, LogBuilder, RunEnd, SpanStatus, chrome_trace, otlp_json, otlp_protobuf, spans,
};

use crate::support::{event, log, run, started, status};

#[test]
fn calls_lie_below_tasks_and_tasks_below_the_run() {
    let spans = spans(&log("x", &[]));
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["run", "task a", "execute_tool exec", "task b", "execute_tool exec"]);
    assert_eq!(spans[1].parent, Some(spans[0].span_id));
    assert_eq!(spans[2].parent, Some(spans[1].span_id));
    assert_eq!(spans[4].parent, Some(spans[3].span_id));
    assert!(spans.iter().all(|span| span.trace_id == spans[0].trace_id));
    assert_eq!(spans[2].status, SpanStatus::Ok);
    assert_eq!(spans[4].status, SpanStatus::Error("exit code 1".to_owned()));
    let (run, task, call) = (RunId::from("0a1b2c3d4e5f"), TaskId::from("b"), CallId::from("c1"));
    let given = StartInRun { run: &run, task: &task, attempt: 1, call: &call, start: 1 };
    assert_eq!(spans[4].span_id, given.span_id(), "the id that the program got");
}

#[test]
fn a_killed_run_has_all_spans() {
    let mut record = run();
    (record.finished_at, record.exit) = (None, None);
    let mut builder = LogBuilder::new(&record, RunEnd::Killed, Included::default());
    builder.take(&event("a", 0, &status("todo", "in_progress", None)));
    builder.take(&event("a", 3, &started("c1")));
    let spans = spans(&builder.finish());
    assert_eq!(spans.len(), 3);
    for span in &spans {
        assert!(matches!(span.status, SpanStatus::Error(_)), "{span:?}");
        assert_eq!(span.ended_at.to_rfc3339(), "2026-01-02T03:04:08+00:00", "the last known time");
    }
}

#[test]
fn both_formats_have_every_span() {
    let log = log("x", &[]);
    let spans = spans(&log);
    let json: Value = serde_json::from_str(&otlp_json(&spans, &log.included).unwrap()).unwrap();
    let written = &json["resourceSpans"][0]["scopeSpans"][0]["spans"];
    assert_eq!(written.as_array().unwrap().len(), 5);
    assert_eq!(written[0]["startTimeUnixNano"], "1767323045000000000");
    assert_eq!(written[1]["parentSpanId"], written[0]["spanId"]);
    assert_eq!(written[0]["traceId"].as_str().unwrap().len(), 32);
    let chrome: Value = serde_json::from_str(&chrome_trace(&spans, &log.included)).unwrap();
    assert_eq!(chrome["traceEvents"].as_array().unwrap().len(), 5);
    assert_eq!(chrome["traceEvents"][0]["dur"], 10_000_000);
    assert_eq!(chrome["otherData"]["included"], "nothing");
    assert!(otlp_protobuf(&spans, &log.included).len() > 500);
}
