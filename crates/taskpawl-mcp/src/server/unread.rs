//! Answers to messages that cannot be read. The transport below passes over them without a word, and who sent one would wait for ever.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

/// How many messages that cannot be read wait for their answers. Of more at a time the others get none: nobody is owed memory for
/// what is no message.
const MOST_WAITING: usize = 64;

/// Why a message cannot be read, and by which id its sender waits, where that can be told.
#[derive(Debug)]
struct Unread {
    id: Option<RequestId>,
    error: ErrorData,
}

/// Passes on what it reads, and looks at each line whether the transport can read it.
#[derive(Debug)]
pub(super) struct Reader<R> {
    input: R,
    line: Vec<u8>,
    is_too_long: bool,
    most_bytes: usize,
    /// Heard by [`Answering`], which ends with the transport that reads here.
    unread: mpsc::Sender<Unread>,
}

impl<R> Reader<R> {
    fn take(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.add(&bytes[..end]);
            self.end_line();
            bytes = &bytes[end + 1..];
        }
        self.add(bytes);
    }

    fn add(&mut self, bytes: &[u8]) {
        // The transport counts the end of the line, too.
        self.is_too_long |= self.line.len() + bytes.len() >= self.most_bytes;
        if !self.is_too_long {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        let unread = if self.is_too_long {
            let message = format!("the message is longer than {} bytes", self.most_bytes);
            Some(Unread { id: None, error: ErrorData::invalid_request(message, None) })
        } else {
            unread(&self.line)
        };
        self.line.clear();
        self.is_too_long = false;
        if let Some(unread) = unread {
            // There is no room, or nobody answers any more.
            let _ = self.unread.try_send(unread);
        }
    }
}

/// Returns what is wrong with a line that is no JSON, or more deeply nested than is read.
fn unread(line: &[u8]) -> Option<Unread> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let problem = serde_json::from_slice::<Value>(line).err()?;
    let error = ErrorData::parse_error(format!("the message cannot be read: {problem}"), None);
    Some(Unread { id: id(line), error })
}

/// Returns the id of a message of which the rest may be nested as deeply as it likes.
fn id(line: &[u8]) -> Option<RequestId> {
    #[derive(serde::Deserialize)]
    struct Head {
        id: RequestId,
    }
    serde_json::from_slice::<Head>(line).ok().map(|head| head.id)
}

impl<R: AsyncRead + Unpin> AsyncRead for Reader<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.input).poll_read(cx, buffer))?;
        this.take(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

type Sending<E> = Pin<Box<dyn Future<Output = Result<(), E>> + Send>>;

/// A transport that answers what it cannot read.
pub(super) struct Answering<T: Transport<RoleServer>> {
    inner: T,
    unread: mpsc::Receiver<Unread>,
    /// Answers on their way; kept here, for whoever waits for a message may stop waiting at any time.
    sending: VecDeque<Sending<T::Error>>,
}

/// Returns a transport over `input`, made by `transport`, that answers what it cannot read; lines of `most_bytes` and more are too long.
pub(super) fn answering<R, T: Transport<RoleServer>>(
    input: R,
    most_bytes: usize,
    transport: impl FnOnce(Reader<R>) -> T,
) -> Answering<T> {
    let (sender, unread) = mpsc::channel(MOST_WAITING);
    let reader = Reader { input, line: Vec::new(), is_too_long: false, most_bytes, unread: sender };
    Answering { inner: transport(reader), unread, sending: VecDeque::new() }
}

impl<T: Transport<RoleServer>> Answering<T> {
    fn answer(&mut self, unread: Unread) {
        let answer = TxJsonRpcMessage::<RoleServer>::error(unread.error, unread.id);
        let sending = self.inner.send(answer);
        self.sending.push_back(Box::pin(sending));
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Answering<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            while let Some(sending) = self.sending.front_mut() {
                // A client that reads nothing any more is noticed by whoever answers its requests.
                let _ = sending.await;
                self.sending.pop_front();
            }
            let message = tokio::select! {
                biased;
                Some(unread) = self.unread.recv() => {
                    self.answer(unread);
                    continue;
                }
                message = self.inner.receive() => message,
            };
            // What came right before the end is answered, too.
            match self.unread.try_recv() {
                Ok(unread) if message.is_none() => self.answer(unread),
                Ok(unread) => {
                    self.answer(unread);
                    return message;
                }
                Err(_) => return message,
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
