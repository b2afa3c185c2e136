//! The server over HTTP. Every request needs its token.

mod eras;
mod guard;
mod pending;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::eras::Eras;
pub(super) use self::eras::Served;
use self::guard::{Guard, Verdict};
use self::pending::{Connections, Place};
use super::handler::McpServer;

/// Path of the server.
const PATH: &str = "/mcp";

/// Time limit for the head of each later request on a connection that has sent the token.
const LATER_HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after a connection could not be accepted, for example for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The reason why a server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Other machines could reach the address, which was not allowed.
    #[error("{address} is not an address of this machine alone")]
    Open {
        /// The address.
        address: IpAddr,
    },
    /// The address stands for all addresses, so the `Host` of a request could not be checked.
    #[error("{address} stands for every address of this machine")]
    Every {
        /// The address.
        address: IpAddr,
    },
    /// The address cannot be used.
    #[error("failed to listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A port that serves only requests with its token.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
}

impl HttpListener {
    /// Listens on an address with a new random token. Port 0 chooses a free port. Addresses that other machines can
    /// reach are refused unless `is_open`.
    ///
    /// # Errors
    /// The address is refused, or cannot be used.
    pub async fn open(address: SocketAddr, is_open: bool) -> Result<Self, ListenError> {
        let ip = address.ip();
        if ip.is_unspecified() {
            return Err(ListenError::Every { address: ip });
        }
        if !ip.is_loopback() && !is_open {
            return Err(ListenError::Open { address: ip });
        }
        let failed = |source| ListenError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        // 244 random bits of the operating system.
        let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        Ok(Self { listener, address, token })
    }

    /// Returns the address for clients.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Returns the token, which clients send as `Authorization: Bearer TOKEN`.
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl McpServer {
    /// Serves requests with the token until `stop` fires. For sessions of the older era only the subscriptions are
    /// kept; no other request depends on an earlier one.
    pub async fn serve_http(&self, listener: HttpListener, stop: CancellationToken) {
        serve_behind(self, listener, stop).await;
    }
}

/// Serves requests with the token of a listener.
pub(super) async fn serve_behind<H: Served>(handler: &H, listener: HttpListener, stop: CancellationToken) {
    let HttpListener { listener, address, token } = listener;
    let guard = Some(Guard::new(address, &token));
    serve(handler, listener, guard, stop).await;
}

async fn serve<H: Served>(handler: &H, listener: TcpListener, guard: Option<Guard>, stop: CancellationToken) {
    let (eras, guard) = (Eras::new(handler, &stop), Arc::new(guard));
    let (tasks, connections) = (TaskTracker::new(), Arc::new(Connections::default()));
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        // An error concerns one connection that is already gone, or a lack of descriptors that passes. Neither ends
        // the server; the pause avoids a busy loop.
        let Ok((stream, _)) = stream else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (eras, guard, stop) = (eras.clone(), Arc::clone(&guard), stop.clone());
        tasks.spawn(connection(stream, Arc::new(connections.admit()), eras, guard, stop));
    }
    tasks.close();
    tasks.wait().await;
}

async fn connection<H: Served>(
    stream: TcpStream,
    place: Arc<Place>,
    eras: Eras<H>,
    guard: Arc<Option<Guard>>,
    stop: CancellationToken,
) {
    let own = Arc::clone(&place);
    let answer = service_fn(move |request: Request<Incoming>| {
        let (eras, guard, place) = (eras.clone(), Arc::clone(&guard), Arc::clone(&own));
        async move { Ok::<_, Infallible>(answer(request, &place, &eras, guard.as_ref().as_ref()).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(LATER_HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(connection);
    tokio::select! {
        // An error means that the client closed the connection.
        _ = connection.as_mut() => {}
        () = place.over() => {}
        () = stop.cancelled() => {
            // Lets the request that is being answered finish.
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

async fn answer<H: Served>(
    request: Request<Incoming>,
    place: &Place,
    eras: &Eras<H>,
    guard: Option<&Guard>,
) -> Answer {
    let verdict =
        guard.map_or(Verdict::Pass, |guard| guard.look(request.method(), request.uri(), request.headers()));
    let mut answer = match verdict {
        Verdict::NoToken => {
            let mut answer = plain(
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong: send `Authorization: Bearer TOKEN`",
            );
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            answer
        }
        Verdict::Refused(why) => plain(StatusCode::FORBIDDEN, why),
        // Counted only after the token was checked, so that strangers cannot use up these connections.
        Verdict::Pass if !place.authorize() => plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many connections: close some, or use one for several requests",
        ),
        Verdict::Pass if request.uri().path() != PATH => {
            plain(StatusCode::NOT_FOUND, "the server is at /mcp")
        }
        Verdict::Pass => eras.answer(request).await,
    };
    // A browser must not interpret an answer as another type, such as a script.
    answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}
