//! Traces in the format of Chrome's trace viewer, which Perfetto reads, too.

use serde_json::{Map, Value, json};

use crate::included::Included;
use crate::spans::{AttributeValue, SpanRecord, SpanStatus};
use crate::timeline::lanes;

/// Returns spans as a document of trace events. Spans that overlap in time stand in different rows.
pub fn chrome_trace(spans: &[SpanRecord], included: &Included) -> String {
    let begin = spans.first().map(|run| run.started_at);
    let micros = |time| begin.map(|begin| micros_between(begin, time)).unwrap_or_default();
    let mut order: Vec<&SpanRecord> = spans.iter().collect();
    order.sort_by_key(|span| span.started_at);
    // A call is drawn in the row of its task only if it is alone there, so each span gets a row by its times.
    let times: Vec<(i64, i64)> =
        order.iter().map(|span| (micros(span.started_at), micros(span.ended_at))).collect();
    let rows = lanes(&times);
    let events = order.iter().zip(times).zip(rows).map(|((span, (start, end)), row)| {
        json!({"name": span.name, "cat": "taskpawl", "ph": "X", "ts": start, "dur": (end - start).max(1),
            "pid": 1, "tid": row + 1, "args": args(span)})
    });
    let events: Vec<Value> = events.collect();
    let other = json!({"program": "taskpawl", "version": env!("CARGO_PKG_VERSION"), "included": included.to_string()});
    json!({"displayTimeUnit": "ms", "otherData": other, "traceEvents": events}).to_string() + "\n"
}

fn micros_between(begin: taskpawl_model::value::Timestamp, time: taskpawl_model::value::Timestamp) -> i64 {
    (time - begin).num_microseconds().unwrap_or(i64::MAX).max(0)
}

fn args(span: &SpanRecord) -> Map<String, Value> {
    let value = |value: &AttributeValue| match value {
        AttributeValue::Text(text) => Value::from(text.as_str()),
        AttributeValue::Number(number) => Value::from(*number),
    };
    let mut args: Map<String, Value> =
        span.attributes.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect();
    if let SpanStatus::Error(message) = &span.status {
        args.insert("error".to_owned(), message.as_str().into());
    }
    args
}
