use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answer::Answer;
use crate::pending::{Connections, Place};

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

/// Returns a new token: 244 random bits of the operating system.
pub fn new_token() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

/// Answers the requests of a listener.
pub trait Service: Clone + Send + Sync + 'static {
    /// Answers a request. `place` is the slot of its connection, which the service authorizes once a token was accepted.
    fn answer(&self, request: Request<Incoming>, place: &Place) -> impl Future<Output = Answer> + Send;
}

/// A port that accepts connections.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens on an address. Port 0 chooses a free port. Addresses that other machines can reach are refused unless `is_open`.
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
        Ok(Self { listener, address })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Passes requests to `service` until `stop` fires, and then lets those that are being answered finish.
    pub async fn serve<S: Service>(self, service: S, stop: CancellationToken) {
        let (tasks, connections) = (TaskTracker::new(), Arc::new(Connections::default()));
        loop {
            let stream = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            // An error concerns one connection that is already gone, or a lack of descriptors that passes. Neither ends
            // the server; the pause avoids a busy loop.
            let Ok((stream, _)) = stream else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let place = Arc::new(connections.admit());
            tasks.spawn(connection(stream, place, service.clone(), stop.clone()));
        }
        tasks.close();
        tasks.wait().await;
    }
}

async fn connection<S: Service>(stream: TcpStream, place: Arc<Place>, service: S, stop: CancellationToken) {
    let own = Arc::clone(&place);
    let answer = service_fn(move |request: Request<Incoming>| {
        let (service, place) = (service.clone(), Arc::clone(&own));
        async move {
            let mut answer = service.answer(request, &place).await;
            // A browser must not interpret an answer as another type, such as a script.
            answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            Ok::<_, Infallible>(answer)
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_that_others_reach_are_refused() {
        for (address, is_open, said) in [
            ("192.0.2.1:0", false, "192.0.2.1 is not an address of this machine alone"),
            ("0.0.0.0:0", true, "0.0.0.0 stands for every address of this machine"),
            ("[::]:0", true, ":: stands for every address of this machine"),
        ] {
            let refused = Listener::open(address.parse().unwrap(), is_open).await.unwrap_err();
            assert_eq!(refused.to_string(), said);
        }
    }
}
