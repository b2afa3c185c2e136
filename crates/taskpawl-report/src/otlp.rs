//! Traces in the OpenTelemetry protocol: as protobuf for collectors, and as JSON for files.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;
use taskpawl_model::value::Timestamp;

use crate::gen_ai;
use crate::included::Included;
use crate::spans::{AttributeValue, SpanRecord, SpanStatus};

/// Returns spans as the body of a request to a collector.
pub fn otlp_protobuf(spans: &[SpanRecord], included: &Included) -> Vec<u8> {
    request(spans, included).encode_to_vec()
}

/// Returns spans as one line of JSON, as files of collectors have them.
///
/// # Errors
/// None are known: the messages have no part without a JSON form.
pub fn otlp_json(spans: &[SpanRecord], included: &Included) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string(&request(spans, included))? + "\n")
}

fn request(spans: &[SpanRecord], included: &Included) -> ExportTraceServiceRequest {
    let attributes = [
        (gen_ai::SERVICE_NAME, "taskpawl".into()),
        (gen_ai::SERVICE_VERSION, env!("CARGO_PKG_VERSION").into()),
        (gen_ai::INCLUDED, included.to_string().into()),
    ];
    let attributes = attributes.iter().map(attribute).collect();
    let scope = InstrumentationScope { name: "taskpawl".to_owned(), ..InstrumentationScope::default() };
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource { attributes, ..Resource::default() }),
            scope_spans: vec![ScopeSpans {
                scope: Some(scope),
                spans: spans.iter().map(span).collect(),
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    }
}

fn span(span: &SpanRecord) -> Span {
    Span {
        trace_id: span.trace_id.to_vec(),
        span_id: span.span_id.to_vec(),
        parent_span_id: span.parent.map(|parent| parent.to_vec()).unwrap_or_default(),
        name: span.name.clone(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: nanos(span.started_at),
        end_time_unix_nano: nanos(span.ended_at),
        attributes: span.attributes.iter().map(attribute).collect(),
        status: Some(status(&span.status)),
        ..Span::default()
    }
}

fn status(status: &SpanStatus) -> Status {
    let (code, message) = match status {
        SpanStatus::Unset => (StatusCode::Unset, String::new()),
        SpanStatus::Ok => (StatusCode::Ok, String::new()),
        SpanStatus::Error(message) => (StatusCode::Error, message.clone()),
    };
    Status { code: code.into(), message }
}

fn attribute((name, value): &(&'static str, AttributeValue)) -> KeyValue {
    let value = match value {
        AttributeValue::Text(text) => Value::StringValue(text.clone()),
        AttributeValue::Number(number) => Value::IntValue(*number),
    };
    KeyValue { key: (*name).to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn nanos(time: Timestamp) -> u64 {
    time.timestamp_nanos_opt().and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or_default()
}
