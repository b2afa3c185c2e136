//! Messages over the pipes of a program, one a line.
//!
//! The transport of rmcp drops messages that are too long, and the call then waits for an answer that never comes.
//! This one ends the connection with the reason.
//!
//! It also drops late answers to the discovery request, which distinguishes newer servers from older ones. A server
//! with a slow start may answer it after the client has fallen back to the older handshake.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::Mutex;

use super::handler::Shared;
use super::inexact;
use super::limits::{MAX_MESSAGE_BYTES, MAX_NOISE_BYTES, check_size, too_long};

pub(super) struct Stdio {
    output: BufReader<pipe::Receiver>,
    lines: Lines,
    input: Arc<Mutex<Option<pipe::Sender>>>,
    /// The id of the discovery request.
    discover: Option<RequestId>,
    /// True after the client has fallen back to the older handshake.
    is_older: bool,
    shared: Arc<Shared>,
}

impl Stdio {
    pub(super) fn new((input, output): (pipe::Sender, pipe::Receiver), shared: Arc<Shared>) -> Self {
        Self {
            output: BufReader::new(output),
            lines: Lines::default(),
            input: Arc::new(Mutex::new(Some(input))),
            discover: None,
            is_older: false,
            shared,
        }
    }

    fn note(&mut self, message: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(request) = message else { return };
        if matches!(request.request, ClientRequest::DiscoverRequest(_)) {
            self.discover = Some(request.id.clone());
        }
        self.is_older |= matches!(request.request, ClientRequest::InitializeRequest(_));
    }

    fn is_late(&self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
        };
        self.is_older && id.is_some() && id == self.discover.as_ref()
    }

    /// Reads to the end of a line. `false` is the end of the output. Cancel-safe: a partial line stays in `lines`.
    async fn read_line(&mut self) -> Result<bool, String> {
        loop {
            let read =
                self.output.fill_buf().await.map_err(|error| format!("its output broke off: {error}"))?;
            if read.is_empty() {
                return Ok(false);
            }
            let (taken, is_whole) = self.lines.add(read)?;
            self.output.consume(taken);
            if is_whole {
                return Ok(true);
            }
        }
    }

    async fn next(&mut self) -> Result<Option<ServerJsonRpcMessage>, String> {
        while self.read_line().await? {
            if let Some(message) = self.lines.take()? {
                self.shared.received.fetch_add(1, Ordering::Relaxed);
                if !self.is_late(&message) {
                    return Ok(Some(message));
                }
            }
        }
        Ok(None)
    }
}

/// Joins pieces of lines, and parses whole lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The beginning of a line whose end has not arrived yet.
    line: Vec<u8>,
    /// Number of bytes so far that were not messages.
    noise: usize,
}

impl Lines {
    /// Adds the part of `read` up to the end of the line. Returns its length, and whether the line is whole.
    pub(super) fn add(&mut self, read: &[u8]) -> Result<(usize, bool), String> {
        let end = read.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(read.len(), |end| end + 1);
        // The limit is for the message; the line end adds one byte.
        if self.line.len() + taken > MAX_MESSAGE_BYTES + 1 {
            return Err(too_long());
        }
        self.line.extend_from_slice(&read[..taken]);
        Ok((taken, end.is_some()))
    }

    /// Parses the line. `Ok(None)` is noise, such as a greeting.
    pub(super) fn take(&mut self) -> Result<Option<ServerJsonRpcMessage>, String> {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_ascii();
        if line.first() == Some(&b'{') {
            check_size(line)?;
            if let Some(refused) = inexact::in_place_of(line) {
                return Ok(Some(refused));
            }
            if let Ok(message) = serde_json::from_slice(line) {
                return Ok(Some(message));
            }
        }
        self.noise += line.len();
        if self.noise > MAX_NOISE_BYTES {
            Err("it prints lines that are no messages of the protocol".to_owned())
        } else {
            Ok(None)
        }
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        self.note(&message);
        let input = Arc::clone(&self.input);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let input = input.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            input.write_all(&line).await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.next().await {
            Ok(message) => message,
            Err(problem) => {
                self.shared.give_up(problem);
                None
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // Fires before the lock is taken: `send` may hold it while it waits for a program that does not read.
        self.shared.over.cancel();
        self.input.lock().await.take();
        Ok(())
    }
}
