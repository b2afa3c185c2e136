//! The server on standard input and output, or on any other two ends.

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};

use super::error_format::FormattedErrors;
use super::handler::McpServer;
use super::http::Served as _;
use super::parse_errors::answering;

/// The longest message that a client may send: whole plans come so.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// A server could not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// What came first is no beginning of a conversation.
    #[error("the client did not begin as the protocol says")]
    Begin(#[source] Box<ServerInitializeError>),
    /// The conversation broke off.
    #[error("the conversation broke off")]
    Broken(#[source] tokio::task::JoinError),
}

impl McpServer {
    /// Serves one client on standard input and output, until it closes its end. Runs that it has started go on; see
    /// [`wait_for_runs`](Self::wait_for_runs).
    ///
    /// # Errors
    /// The client did not speak the protocol.
    pub async fn serve_stdio(&self) -> Result<(), ServeError> {
        let (input, output) = rmcp::transport::io::stdio_pipes();
        self.serve_on(input, output).await
    }

    /// Serves one client on two ends, as [`serve_stdio`](Self::serve_stdio) does.
    ///
    /// # Errors
    /// The client did not speak the protocol.
    pub async fn serve_on<R, W>(&self, input: R, output: W) -> Result<(), ServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let transport = answering(input, MAX_MESSAGE_BYTES, |input| {
            AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_MESSAGE_BYTES)
        });
        let serving = match FormattedErrors(self.connected()).serve(transport).await {
            Ok(serving) => serving,
            // It went before it said anything: there is nothing to be said about that.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Begin(Box::new(error))),
        };
        serving.waiting().await.map(drop).map_err(ServeError::Broken)
    }
}
