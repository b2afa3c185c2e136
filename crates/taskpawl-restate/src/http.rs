//! Requests to the server: JSON over HTTP/1.1, one connection for each request in flight.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// The largest answer, in bytes: that of a call with the largest result, and some more for its frame.
const MAX_ANSWER: usize = 20 << 20;

/// The reason why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// No connection: the server has not seen the request.
    #[error("failed to connect to {0}: {1}")]
    Connect(String, String),
    /// The server may have seen the request.
    #[error("no answer from {0}: {1}")]
    Answer(String, String),
    /// The server refused the request.
    #[error("{0} answered {1}: {2}")]
    Status(String, u16, String),
    /// The answer is not JSON of the expected form.
    #[error("{0} gave an answer that is not understood: {1}")]
    Form(String, String),
}

/// A client of one server.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
}

impl Http {
    pub(crate) fn new(base: &str) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(Duration::from_secs(5)));
        let connector = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Self { client, base: base.trim_end_matches('/').to_owned() }
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Sends a request, and returns the status and the body of the answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Bytes,
    ) -> Result<(u16, Bytes), HttpError> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        request = request.header("content-type", "application/json").header("accept", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let connect = |error: String| HttpError::Connect(self.base.clone(), error);
        let request = request.body(Full::new(body)).map_err(|error| connect(error.to_string()))?;
        let answer = self.client.request(request).await.map_err(|error| {
            let text = chain(&error);
            if error.is_connect() { connect(text) } else { HttpError::Answer(self.base.clone(), text) }
        })?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|error| HttpError::Answer(self.base.clone(), error.to_string()))?;
        Ok((status, body.to_bytes()))
    }

    /// Sends a request whose answer is JSON.
    pub(crate) async fn json(&self, method: Method, path: &str, body: &Value) -> Result<Value, HttpError> {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = self.send(method, path, None, text.into()).await?;
        if !(200..300).contains(&status) {
            return Err(HttpError::Status(self.base.clone(), status, message_of(&answer)));
        }
        if answer.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&answer).map_err(|error| HttpError::Form(self.base.clone(), error.to_string()))
    }
}

/// Returns the message in an error of the server.
pub(crate) fn message_of(body: &[u8]) -> String {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let message = parsed.as_ref().and_then(|value| value["message"].as_str()).map(str::to_owned);
    let mut text = message.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    if text.len() > 500 {
        let end = (0..=500).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(end);
    }
    text
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
