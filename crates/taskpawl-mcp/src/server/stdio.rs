//! The server over standard input and output, or over any other pair of streams.

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};

use super::error_format::FormattedErrors;
use super::http::Served as _;
use super::mcp_server::McpServer;
use super::parse_errors::answering;

/// Maximum size of a message from a client, in bytes. Whole plans are sent in one message.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// The reason why a server stopped serving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The first message was not a valid handshake.
    #[error("the client did not begin as the protocol says")]
    Begin(#[source] Box<ServerInitializeError>),
    /// The connection ended with an error.
    #[error("the conversation broke off")]
    Broken(#[source] tokio::task::JoinError),
}

impl McpServer {
    /// Serves one client on standard input and output, until it closes its end. Runs that it has started continue;
    /// see [`wait_for_runs`](Self::wait_for_runs).
    ///
    /// # Errors
    /// The client did not follow the protocol.
    pub async fn serve_stdio(&self) -> Result<(), ServeError> {
        let (input, output) = rmcp::transport::io::stdio_pipes();
        self.serve_on(input, output).await
    }

    /// Serves one client on a pair of streams, as [`serve_stdio`](Self::serve_stdio) does.
    ///
    /// # Errors
    /// The client did not follow the protocol.
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
            // The client closed the connection before its first message, which is no error.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Begin(Box::new(error))),
        };
        serving.waiting().await.map(drop).map_err(ServeError::Broken)
    }
}
