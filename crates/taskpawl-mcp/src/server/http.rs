//! The server over HTTP. Every request needs its token.

mod eras;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use taskpawl::tools::OwnListener;
use taskpawl_http::{Answer, Guard, Listener, Mount, Place, Service, new_token, plain};
use tokio_util::sync::CancellationToken;

use self::eras::Eras;
pub(super) use self::eras::Served;
use super::mcp_server::McpServer;

pub use taskpawl_http::ListenError;

/// Path of the server.
const PATH: &str = "/mcp";

/// A port that serves only requests with its token.
#[derive(Debug)]
pub struct HttpListener {
    listener: Listener,
    token: String,
    /// Keeps programs of runs from this port, even where a port is granted.
    announced: Option<OwnListener>,
}

impl HttpListener {
    /// Listens on an address with a new random token. Port 0 chooses a free port. Addresses that other machines can
    /// reach are refused unless `is_open`.
    ///
    /// # Errors
    /// The address is refused, or cannot be used.
    pub async fn open(address: SocketAddr, is_open: bool) -> Result<Self, ListenError> {
        let listener = Listener::open(address, is_open).await?;
        // An error means that the port is announced by another program, which closes it as well.
        let announced = OwnListener::announce(listener.address().port()).ok();
        Ok(Self { listener, token: new_token(), announced })
    }

    /// Returns the address for clients.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.listener.address())
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

    /// Returns the server for a listener of another server, which checks the token of each request. It works until `stop` fires.
    pub fn mounted(&self, stop: &CancellationToken) -> Mount {
        let eras = Eras::new(self, stop);
        Mount::new(move |request| {
            let eras = eras.clone();
            async move { eras.answer(request).await }
        })
    }
}

/// Serves requests with the token of a listener.
pub(super) async fn serve_behind<H: Served>(handler: &H, listener: HttpListener, stop: CancellationToken) {
    let HttpListener { listener, token, announced } = listener;
    let guard = Some(Guard::new(listener.address(), [(token.as_str(), ())]));
    serve(handler, listener, guard, stop).await;
    drop(announced);
}

async fn serve<H: Served>(
    handler: &H,
    listener: Listener,
    guard: Option<Guard<()>>,
    stop: CancellationToken,
) {
    let endpoint = Endpoint { eras: Eras::new(handler, &stop), guard: Arc::new(guard) };
    listener.serve(endpoint, stop).await;
}

/// The one path of the server, behind its guard. Tests leave the guard out.
#[derive(Clone)]
struct Endpoint<H> {
    eras: Eras<H>,
    guard: Arc<Option<Guard<()>>>,
}

impl<H: Served> Service for Endpoint<H> {
    async fn answer(&self, request: Request<Incoming>, place: &Place) -> Answer {
        let admitted = match self.guard.as_ref() {
            Some(guard) => guard.look(request.method(), request.uri(), request.headers()),
            None => taskpawl_http::Verdict::Pass(()),
        };
        match admitted.admit(place) {
            Err(refused) => *refused,
            Ok(()) if request.uri().path() != PATH => plain(StatusCode::NOT_FOUND, "the server is at /mcp"),
            Ok(()) => self.eras.answer(request).await,
        }
    }
}
