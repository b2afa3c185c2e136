//! Requests to servers over HTTP.
//!
//! A server is reached only at the address in its configuration. Redirects are not followed, and proxies in the
//! environment are ignored. Answers are bounded in size before they are parsed.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use hyper::http::request::Builder;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use thiserror::Error;

use super::handler::Shared;
use super::inexact;
use super::limits::{MAX_MESSAGE_BYTES, check_size, too_long};
use super::words::plain;

/// Time limit for opening a connection.
const CONNECT: Duration = Duration::from_secs(30);

/// Maximum part of an error answer that is read, in bytes.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Maximum part of an error answer that is shown, in characters.
const MAX_TOLD_CHARS: usize = 200;

/// The reason why a request has no usable answer.
#[derive(Debug, Error)]
pub(super) enum HttpError {
    #[error("no connection to the server")]
    Connect(#[source] hyper_util::client::legacy::Error),
    #[error("the connection broke off")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    #[error("the server answered with status {status}{}", told(.text))]
    Status { status: u16, text: String },
    #[error("the server wants a token: add an `Authorization` header to its `headers` (status {status})")]
    Unauthorized { status: u16 },
    #[error("the server redirects to `{to}`, which is not followed; if that is where it is, write so")]
    Redirect { to: String },
    #[error("{0}")]
    Request(String),
    #[error("{0}")]
    TooLarge(String),
    #[error(
        "`{address}` answered with {}, which is no JSON and no event stream; look whether an MCP server is there, and whether it wants a login",
        named(.kind)
    )]
    ContentType { address: String, kind: String },
}

fn told(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

fn named(kind: &str) -> String {
    if kind.is_empty() { "no content type".to_owned() } else { format!("`{}`", plain(kind, MAX_TOLD_CHARS)) }
}

/// Returns whether a content type is a page for people. Then no MCP server answered, and the call had no effect.
fn is_page(kind: &str) -> bool {
    ["text/html", "application/xhtml"].iter().any(|page| kind.starts_with(page))
}

impl HttpError {
    /// Returns whether the server answered. If it did, other calls on the connection may still succeed.
    pub(super) fn is_answer(&self) -> bool {
        match self {
            Self::Status { .. }
            | Self::Unauthorized { .. }
            | Self::Redirect { .. }
            | Self::ContentType { .. } => true,
            Self::Connect(_) | Self::Broken(_) | Self::Request(_) | Self::TooLarge(_) => false,
        }
    }

    /// Returns whether the call may have had an effect.
    pub(super) fn may_have_arrived(&self) -> bool {
        match self {
            Self::Connect(_)
            | Self::Status { .. }
            | Self::Unauthorized { .. }
            | Self::Redirect { .. }
            | Self::Request(_) => false,
            Self::ContentType { kind, .. } => !is_page(kind),
            Self::Broken(_) | Self::TooLarge(_) => true,
        }
    }
}

/// Finds the HTTP error that caused an error of the protocol.
pub(super) fn find<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e HttpError> {
    if let Some(StreamableHttpError::Client(found)) = error.downcast_ref::<StreamableHttpError<HttpError>>() {
        return Some(found);
    }
    error.downcast_ref().or_else(|| find(error.source()?))
}

type Fault = StreamableHttpError<HttpError>;

/// Sends the messages of one connection.
#[derive(Clone, Debug)]
pub(super) struct HttpClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    shared: Arc<Shared>,
}

impl HttpClient {
    /// Returns a client, with the configuration of its transport.
    pub(super) fn new(
        url: &str,
        headers: &BTreeMap<String, String>,
        shared: Arc<Shared>,
    ) -> Result<(Self, StreamableHttpClientTransportConfig), String> {
        check_url(url)?;
        let custom = headers.iter().map(|(name, value)| header(name, value)).collect::<Result<_, _>>()?;
        let mut connector = HttpConnector::new();
        // Addresses with `https` pass through this connector as well; TLS is added around it.
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT));
        let builder = HttpsConnectorBuilder::new().with_webpki_roots().https_or_http().enable_http1();
        let client = Client::builder(TokioExecutor::new()).build(builder.wrap_connector(connector));
        let config = StreamableHttpClientTransportConfig::with_uri(url)
            .custom_headers(custom)
            .max_sse_event_size(MAX_MESSAGE_BYTES);
        Ok((Self { client, shared }, config))
    }

    async fn send(&self, builder: Builder, body: Vec<u8>) -> Result<Response<Incoming>, HttpError> {
        let request: Request<_> = builder
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| HttpError::Request(error.to_string()))?;
        let response = self.client.request(request).await.map_err(|error| {
            if error.is_connect() { HttpError::Connect(error) } else { HttpError::Broken(error.into()) }
        })?;
        let status = response.status();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("?");
            return Err(HttpError::Redirect { to: to.to_owned() });
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(HttpError::Unauthorized { status: status.as_u16() });
        }
        Ok(response)
    }

    /// Returns the events of a stream. A message that is too large ends the connection.
    fn events(&self, response: Response<Incoming>) -> BoxStream<'static, Result<Sse, SseError>> {
        let bounded = Bounded { inner: response.into_body(), length: EventLength::default() };
        events_of(bounded, Arc::clone(&self.shared)).boxed()
    }
}

/// Reads the events of a stream. A message that is too large ends the connection.
pub(super) fn events_of(
    bytes: impl Stream<Item = Result<Bytes, StreamError>> + Send + 'static,
    shared: Arc<Shared>,
) -> impl Stream<Item = Result<Sse, SseError>> + Send + 'static {
    SseStream::from_bytes_stream(bytes).map(move |event| {
        shared.received.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let problem = match &event {
            Ok(Sse { data: Some(data), .. }) => check_size(data.as_bytes()).err(),
            // `Bounded` limits the bytes before they are collected; this also limits the values.
            Err(SseError::Body(error)) => match error.downcast_ref() {
                Some(StreamError::TooLarge) => Some(too_long()),
                Some(StreamError::Broken(_)) | None => None,
            },
            Ok(_) | Err(_) => None,
        };
        let Some(problem) = problem else { return event.map(exact) };
        shared.give_up(problem);
        Err(SseError::Body(StreamError::TooLarge.into()))
    })
}

/// Returns an event. A result that cannot be stored exactly is replaced by an error.
fn exact(mut event: Sse) -> Sse {
    let refused = event.data.as_ref().and_then(|data| inexact::in_place_of(data.as_bytes()));
    if let Some(refused) = refused {
        event.data = Some(serde_json::to_string(&refused).expect("BUG: an error is JSON"));
    }
    event
}

fn check_url(url: &str) -> Result<(), String> {
    let uri: Uri = url.parse().map_err(|error| format!("`{url}` is no address: {error}"))?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    match uri.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            Err("its address holds a user or password; send an `Authorization` header instead".to_owned())
        }
        Some(_) if is_http => Ok(()),
        Some(_) | None => Err(format!("`{url}` has to begin with `https://` or `http://`")),
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = || format!("`{name}` is no header, or its value cannot be sent");
    let mut text = HeaderValue::from_str(value).map_err(|_| wrong())?;
    // Keeps the value, which may be a token, out of debug output.
    text.set_sensitive(true);
    let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
    let own = ["accept", "content-type", "content-length", "host", "mcp-session-id", "last-event-id"];
    if own.contains(&header.as_str()) {
        return Err(format!("the header `{name}` is set by the protocol"));
    }
    Ok((header, text))
}

fn request(
    method: Method,
    uri: &str,
    session: Option<&str>,
    token: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> Builder {
    let accept = format!("{JSON_MIME_TYPE}, {EVENT_STREAM_MIME_TYPE}");
    let mut builder = Request::builder().method(method).uri(uri).header(ACCEPT, accept);
    if let Some(session) = session {
        builder = builder.header(HEADER_SESSION_ID, session);
    }
    if let Some(token) = token {
        builder = builder.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    headers.into_iter().fold(builder, |builder, (name, value)| builder.header(name, value))
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Fault> {
        let builder = request(Method::POST, &uri, session.as_deref(), token, headers);
        let body = serde_json::to_vec(&message)?;
        let response = self.send(builder.header(CONTENT_TYPE, JSON_MIME_TYPE), body).await;
        let response = response.map_err(Fault::Client)?;
        let status = response.status();
        // By the protocol, 404 means that the server no longer knows the session.
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(Fault::SessionExpired);
        }
        if !status.is_success() {
            return not_served(&message, session.is_some(), response).await;
        }
        self.served(&uri, &message, response).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Fault> {
        let builder = request(Method::DELETE, &uri, Some(&session), token, headers);
        // A server without sessions answers with an error, which changes nothing.
        self.send(builder, Vec::new()).await.map(drop).map_err(Fault::Client)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Fault> {
        let mut builder = request(Method::GET, &uri, session.as_deref(), token, headers);
        if let Some(last_event) = last_event {
            builder = builder.header(HEADER_LAST_EVENT_ID, last_event);
        }
        let response = self.send(builder, Vec::new()).await.map_err(Fault::Client)?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(Fault::ServerDoesNotSupportSse);
        }
        if !response.status().is_success() {
            let status = response.status().as_u16();
            return Err(Fault::Client(HttpError::Status { status, text: String::new() }));
        }
        match content_type(&response) {
            kind if kind.starts_with(EVENT_STREAM_MIME_TYPE) => Ok(self.events(response)),
            kind => Err(Fault::Client(HttpError::ContentType { address: address(&uri), kind })),
        }
    }
}

impl HttpClient {
    async fn served(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        response: Response<Incoming>,
    ) -> Result<StreamableHttpPostResponse, Fault> {
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        // Notifications have no answer.
        if !is_request || matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = response.headers().get(HEADER_SESSION_ID);
        let session = session.and_then(|session| Some(session.to_str().ok()?.to_owned()));
        let kind = content_type(&response);
        if kind.starts_with(EVENT_STREAM_MIME_TYPE) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session));
        }
        if !kind.starts_with(JSON_MIME_TYPE) {
            return Err(Fault::Client(HttpError::ContentType { address: address(uri), kind }));
        }
        let body = read(response, MAX_MESSAGE_BYTES).await.map_err(Fault::Client)?;
        check_size(&body).map_err(|problem| Fault::Client(HttpError::TooLarge(problem)))?;
        self.shared.received.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let message = inexact::in_place_of(&body).map_or_else(|| serde_json::from_slice(&body), Ok)?;
        Ok(StreamableHttpPostResponse::Json(message, session))
    }
}

/// Reads an error answer. An older server refuses the discovery request of the newer era, in the form of the protocol
/// or in another one. Both become an error message, on which the client falls back to the older handshake.
async fn not_served(
    message: &ClientJsonRpcMessage,
    has_session: bool,
    response: Response<Incoming>,
) -> Result<StreamableHttpPostResponse, Fault> {
    let status = response.status();
    let body = read(response, MAX_ERROR_BYTES).await.unwrap_or_default();
    let error = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        Ok(_) | Err(_) => None,
    };
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && status.is_client_error()
        && !has_session
    {
        let unknown = || ErrorData::invalid_request(format!("status {status}"), None);
        let error = error.map_or_else(unknown, |error| error.error);
        let error = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(error, None));
    }
    if let Some(error) = error {
        return Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None));
    }
    let text = plain(&String::from_utf8_lossy(&body), MAX_TOLD_CHARS);
    Err(Fault::Client(HttpError::Status { status: status.as_u16(), text }))
}

/// Returns the part of an address that may be shown. The query may contain a token.
fn address(uri: &str) -> String {
    uri.split(['?', '#']).next().unwrap_or_default().to_owned()
}

fn content_type(response: &Response<Incoming>) -> String {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.unwrap_or_default().to_ascii_lowercase()
}

async fn read(response: Response<Incoming>, most_bytes: usize) -> Result<Bytes, HttpError> {
    let body = Limited::new(response.into_body(), most_bytes).collect().await;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            HttpError::TooLarge(too_long())
        } else {
            HttpError::Broken(error)
        }
    })?;
    Ok(body.to_bytes())
}

/// The reason why reading an event stream ended early.
#[derive(Debug, Error)]
pub(super) enum StreamError {
    #[error("an event is too large")]
    TooLarge,
    #[error("the connection broke off")]
    Broken(#[from] hyper::Error),
}

/// The bytes of an event stream, up to the first event that is too large.
struct Bounded {
    inner: Incoming,
    length: EventLength,
}

/// Length of the current event and of its current line so far, in bytes.
#[derive(Debug, Default)]
pub(super) struct EventLength {
    at: usize,
    line: usize,
}

impl EventLength {
    pub(super) fn admit(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        for byte in bytes {
            self.at += 1;
            match byte {
                // An empty line ends an event.
                b'\n' if self.line == 0 => self.at = 0,
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => self.line += 1,
            }
            if self.at > MAX_MESSAGE_BYTES {
                return Err(StreamError::TooLarge);
            }
        }
        Ok(())
    }
}

impl Stream for Bounded {
    type Item = Result<Bytes, StreamError>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        use std::task::Poll;

        use hyper::body::Body;

        loop {
            let frame = match Pin::new(&mut self.inner).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
                Poll::Ready(Some(Ok(frame))) => frame,
            };
            if let Ok(bytes) = frame.into_data() {
                let admitted = self.length.admit(&bytes).map(|()| bytes);
                return Poll::Ready(Some(admitted));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_headers_are_checked() {
        let refused = |url: &str| check_url(url).unwrap_err();
        assert_eq!(check_url("https://example.com/mcp"), Ok(()));
        assert_eq!(check_url("http://127.0.0.1:8080/mcp"), Ok(()));
        assert_eq!(refused("example.com/mcp"), "`example.com/mcp` is no address: invalid format");
        assert_eq!(
            refused("ftp://example.com"),
            "`ftp://example.com` has to begin with `https://` or `http://`"
        );
        assert!(refused("https://me:pw@example.com").contains("`Authorization`"));
        assert!(header("X-Key", "a").is_ok());
        assert!(header("Host", "a").unwrap_err().contains("set by the protocol"));
        assert!(header("a b", "a").is_err() && header("a", "a\nb").is_err());
    }
}
