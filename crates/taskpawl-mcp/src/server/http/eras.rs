//! The protocol over HTTP, in both of its eras. In the newer era no request depends on an earlier one. The older era
//! has sessions, in which the server can notify and ask its client.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use rmcp::ServerHandler;
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RoleServer, TxJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use taskpawl_http::{Answer, body_of, plain};
use tokio_util::sync::CancellationToken;

use crate::server::invalid_request;
use crate::server::parse_errors::too_many_objects;

/// Maximum size of a request, in bytes. Whole plans are sent in one request.
const MAX_REQUEST_BYTES: usize = 8 << 20;

/// Maximum number of sessions. Further clients are served without one: everything works except subscriptions and
/// questions.
const MAX_SESSIONS: usize = 32;

/// Lifetime of an idle session. It is long, because an agent may wait for a person until the next day.
const IDLE: Duration = Duration::from_hours(24);

/// The header with the id of a session.
const SESSION: &str = "mcp-session-id";

/// A handler that gives each connection a value of its own, in the era with sessions.
pub(in crate::server) trait Served: ServerHandler + Clone {
    /// Returns the handler for one connection.
    fn connected(&self) -> Self;
}

/// Answers requests of both eras. Cheap to clone.
#[derive(Clone)]
pub(super) struct Eras<H> {
    alone: StreamableHttpService<H, NeverSessionManager>,
    in_session: StreamableHttpService<H, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
}

impl<H: Served> Eras<H> {
    /// Creates both services. They work until `stop` fires, which ends all sessions.
    pub(super) fn new(handler: &H, stop: &CancellationToken) -> Self {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(IDLE);
        let sessions = Arc::new(sessions);
        let (one, other) = (handler.clone(), handler.clone());
        let alone = StreamableHttpService::new(move || Ok(one.clone()), Arc::default(), config(stop, false));
        let in_session = StreamableHttpService::new(
            move || Ok(other.connected()),
            Arc::clone(&sessions),
            config(stop, true),
        );
        Self { alone, in_session, sessions }
    }

    pub(super) async fn answer(&self, request: Request<Incoming>) -> Answer {
        let is_in_session = request.headers().contains_key(SESSION);
        if request.method() != Method::POST {
            return if is_in_session {
                self.in_session.handle(request).await
            } else {
                self.alone.handle(request).await
            };
        }
        let (head, body) = request.into_parts();
        let body = match body_of(body, MAX_REQUEST_BYTES, "the request is larger than 8 MiB").await {
            Ok(body) => body,
            Err(refused) => return *refused,
        };
        // Checked before rmcp parses the message, since parsing is what takes the memory.
        match too_many_objects(&body) {
            Some((Some(id), error)) => return refused(id, error),
            Some((None, _)) => {
                return plain(StatusCode::PAYLOAD_TOO_LARGE, "the request has too many objects");
            }
            None => {}
        }
        if let Some((id, error)) =
            invalid_request::without_form(&body).or_else(|| invalid_request::inexact(&body))
        {
            return refused(id, error);
        }
        let begins = !is_in_session && begins_a_session(&body) && self.has_room().await;
        let request = Request::from_parts(head, Full::new(body));
        let answer = if begins || is_in_session {
            self.in_session.handle(request).await
        } else {
            self.alone.handle(request).await
        };
        in_words(answer).await
    }

    async fn has_room(&self) -> bool {
        self.sessions.sessions.read().await.len() < MAX_SESSIONS
    }
}

/// Returns the answer to a request that rmcp would answer without its id.
fn refused(id: RequestId, error: ErrorData) -> Answer {
    let message = TxJsonRpcMessage::<RoleServer>::error(error, Some(id));
    let text = serde_json::to_vec(&message).expect("BUG: an error is JSON");
    let mut answer = Response::new(Full::new(Bytes::from(text)).boxed());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Formats the error about an unknown method, which consists of the method's name alone.
async fn in_words(answer: Answer) -> Answer {
    if answer.status() != StatusCode::NOT_FOUND {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let Ok(body) = body.collect().await;
    let mut bytes = body.to_bytes();
    if let Ok(TxJsonRpcMessage::<RoleServer>::Error(mut refused)) = serde_json::from_slice(&bytes) {
        refused.error = invalid_request::in_words(refused.error);
        let message = TxJsonRpcMessage::<RoleServer>::Error(refused);
        bytes = serde_json::to_vec(&message).expect("BUG: an error is JSON").into();
        // The length of the body has changed.
        head.headers.remove(CONTENT_LENGTH);
    }
    Response::from_parts(head, Full::new(bytes).boxed())
}

fn config(stop: &CancellationToken, has_sessions: bool) -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_legacy_session_mode(has_sessions)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_REQUEST_BYTES)
        .with_cancellation_token(stop.child_token())
        // The guard has checked both already, more strictly.
        .disable_allowed_hosts()
        .disable_allowed_origins()
}

/// Returns whether a message begins a session. Invalid messages are refused elsewhere.
fn begins_a_session(body: &Bytes) -> bool {
    #[derive(Deserialize)]
    struct Message<'m> {
        #[serde(borrow)]
        method: Option<std::borrow::Cow<'m, str>>,
    }
    let message: Result<Message<'_>, _> = serde_json::from_slice(body);
    message.is_ok_and(|message| message.method.is_some_and(|method| method == "initialize"))
}
