//! Messages over the pipes of a program, one a line.
//!
//! The transport of rmcp leaves out what is too long, and then the call waits for an answer that never comes; this one ends the
//! connection and says why. It also leaves out late answers to the question by which newer servers are told from older ones: a
//! server that takes long to start gives them when it has been asked in the older way already.

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
    /// The question for a newer server.
    discover: Option<RequestId>,
    /// Whether the server was asked in the older way after that.
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

    /// Reads on to the end of a line; nothing is lost when the future is dropped. `false` is the end of the output.
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

/// Puts together the lines that come in pieces, and reads them.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The beginning of a line that has not come whole.
    line: Vec<u8>,
    /// Bytes that were no messages.
    noise: usize,
}

impl Lines {
    /// Adds what belongs to the current line: returns how much that is, and whether the line is whole.
    pub(super) fn add(&mut self, read: &[u8]) -> Result<(usize, bool), String> {
        let end = read.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(read.len(), |end| end + 1);
        if self.line.len() + taken > MAX_MESSAGE_BYTES + 1 {
            return Err(too_long());
        }
        self.line.extend_from_slice(&read[..taken]);
        Ok((taken, end.is_some()))
    }

    /// Takes the line; what is no message is noise.
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
            Err("it prints what is no message of the protocol".to_owned())
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
        // Said first: a program that does not read holds up whoever writes to it, until it is ended.
        self.shared.over.cancel();
        self.input.lock().await.take();
        Ok(())
    }
}
