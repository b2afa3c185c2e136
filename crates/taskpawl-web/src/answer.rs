//! Answers, with the headers that keep a browser from treating them as anything else.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue,
    REFERRER_POLICY, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};
use maud::Markup;
use serde::Serialize;
use serde_json::json;
use taskpawl::Error;
use taskpawl::model::advice::CommandLine;
use taskpawl::model::command::Refusal;
use taskpawl_http::Answer;
use taskpawl_text::error_chain;
use tokio::sync::mpsc;

/// Scripts, styles and data of this server alone; HTML enters the page through one policy.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types taskpawl";

/// The content type of metrics.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Sets the headers of every answer.
pub(crate) fn secure(headers: &mut HeaderMap) {
    let set = [
        (CONTENT_SECURITY_POLICY, CSP),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ];
    for (name, value) in set {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// A successful answer before it becomes bytes.
#[derive(Debug)]
pub(crate) enum Reply {
    Html(Markup),
    Json(Vec<u8>),
    /// Metrics in the text format of `OpenMetrics`.
    Metrics(String),
    /// A file of the page, with its content type.
    File(&'static str, &'static [u8]),
}

impl Reply {
    pub(crate) fn json(value: &impl Serialize) -> Self {
        Self::Json(serde_json::to_vec(value).expect("BUG: an answer is JSON"))
    }

    /// Returns the answer; without its body if the client has it already.
    pub(crate) fn into_answer(self, known: Option<&str>) -> Answer {
        let (kind, bytes) = match self {
            Self::Html(markup) => ("text/html; charset=utf-8", Bytes::from(markup.into_string())),
            Self::Json(bytes) => ("application/json", Bytes::from(bytes)),
            Self::Metrics(text) => (METRICS, Bytes::from(text)),
            Self::File(kind, bytes) => (kind, Bytes::from_static(bytes)),
        };
        let tag = etag(&bytes);
        if known == Some(tag.as_str()) {
            let mut answer = Response::new(Full::new(Bytes::new()).boxed());
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
            return tagged(answer, &tag);
        }
        let mut answer = Response::new(Full::new(bytes).boxed());
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        tagged(answer, &tag)
    }
}

fn tagged(mut answer: Answer, tag: &str) -> Answer {
    if let Ok(value) = HeaderValue::from_str(tag) {
        answer.headers_mut().insert(ETAG, value);
    }
    answer
}

/// Returns the tag of a body. The revision alone is not enough: time and killed runs change what is shown without an event.
fn etag(bytes: &Bytes) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("\"{:x}-{hash:016x}\"", bytes.len())
}

/// The reason why a request has no successful answer.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hint: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// Describes a refusal of the rules, or an error of the store.
    pub(crate) fn of(error: &Error, line: &CommandLine) -> Self {
        let status = if let Error::Refused(refusal) = error {
            if is_unknown(refusal) { StatusCode::NOT_FOUND } else { StatusCode::CONFLICT }
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        let hint = error.hint().map(|hint| hint.format_with(line)).filter(|hint| !hint.is_empty());
        Self { status, message: error_chain(error), hint }
    }

    pub(crate) fn into_answer(self) -> Answer {
        let Self { status, message, hint } = self;
        let mut answer = Reply::json(&json!({"error": {"message": message, "hint": hint}})).into_answer(None);
        *answer.status_mut() = status;
        answer
    }
}

fn is_unknown(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::UnknownTask { .. } | Refusal::UnknownRun { .. })
}

/// The body of a stream of events. It ends when the sender is dropped.
pub(crate) struct EventBody(mpsc::Receiver<Bytes>);

impl EventBody {
    /// Returns the answer with the events of `events`.
    pub(crate) fn answer(events: mpsc::Receiver<Bytes>) -> Answer {
        let mut answer = Response::new(Self(events).boxed());
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        answer
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
