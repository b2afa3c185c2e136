//! Replies to unparsable messages. The transport of rmcp drops them silently or replies without an id, so the client
//! would wait forever.

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

use super::invalid_request;

/// Maximum number of unparsable messages that wait for their replies. Further ones get none, so that they cannot fill
/// the memory.
const MAX_WAITING: usize = 64;

/// Number of bytes per read.
const READ_BYTES: usize = 8 << 10;

/// The error for an unparsable message, with its id if that can be found.
#[derive(Debug)]
struct UnparsedMessage {
    id: Option<RequestId>,
    error: ErrorData,
}

/// Passes lines on to the transport, except those that are answered here.
#[derive(Debug)]
pub(super) struct Reader<R> {
    input: R,
    line: Vec<u8>,
    /// Lines to pass on. The first `passed` bytes have been passed.
    lines: Vec<u8>,
    passed: usize,
    is_too_long: bool,
    /// The part that is kept of a line that is too long.
    outline: Outline,
    most_bytes: usize,
    /// Received by [`Answering`], which ends with the transport that reads here.
    unread: mpsc::Sender<UnparsedMessage>,
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
        // The transport's limit includes the line end.
        if !self.is_too_long && self.line.len() + bytes.len() >= self.most_bytes {
            self.is_too_long = true;
            self.outline.take(&std::mem::take(&mut self.line));
        }
        if self.is_too_long {
            self.outline.take(bytes);
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        let unread = if self.is_too_long {
            let message = format!(
                "the message is too long: at most {} bytes are read; send less at a time",
                self.most_bytes - 1
            );
            let id = std::mem::take(&mut self.outline).id();
            Some(UnparsedMessage { id, error: ErrorData::invalid_request(message, None) })
        } else if let Some((id, error)) = too_many_objects(&self.line) {
            Some(UnparsedMessage { id, error })
        } else {
            unread(&self.line)
        };
        match unread {
            // Dropped if too many are waiting, or if the receiver is gone.
            Some(unread) => drop(self.unread.try_send(unread)),
            None => self.pass_on(),
        }
        // A new buffer, because plans are long and most other messages are short.
        self.line = Vec::new();
        self.is_too_long = false;
    }

    fn pass_on(&mut self) {
        if self.lines.is_empty() {
            self.lines = std::mem::take(&mut self.line);
        } else {
            self.lines.append(&mut self.line);
        }
        self.lines.push(b'\n');
    }

    /// Moves as many bytes into `buffer` as fit.
    fn give(&mut self, buffer: &mut ReadBuf<'_>) {
        let left = &self.lines[self.passed..];
        let count = left.len().min(buffer.remaining());
        buffer.put_slice(&left[..count]);
        self.passed += count;
        if self.passed == self.lines.len() {
            // Frees the memory: plans are long, and most other messages are short.
            self.lines = Vec::new();
            self.passed = 0;
        }
    }
}

/// Returns the error for a line that is not JSON, is nested too deeply, or is a request that violates the protocol.
fn unread(line: &[u8]) -> Option<UnparsedMessage> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    if invalid_request::is_read(line) {
        return invalid_request::inexact(line).map(|(id, error)| UnparsedMessage { id: Some(id), error });
    }
    if let Err(problem) = serde_json::from_slice::<Value>(line) {
        // serde_json rejects numbers beyond floating point. The message is JSON otherwise, so the error names the
        // number.
        if let Some((id, error)) = invalid_request::inexact(line) {
            return Some(UnparsedMessage { id: Some(id), error });
        }
        let error = ErrorData::parse_error(format!("the message cannot be read: {problem}"), None);
        return Some(UnparsedMessage { id: id(line), error });
    }
    invalid_request::without_form(line).map(|(id, error)| UnparsedMessage { id: Some(id), error })
}

/// Maximum number of objects in a message. Each takes some 650 bytes in memory, and 8 MB of text can contain a
/// million of them.
const MAX_OBJECTS: usize = 130_000;

/// Returns the error and the id for a message with too many objects to parse.
pub(super) fn too_many_objects(message: &[u8]) -> Option<(Option<RequestId>, ErrorData)> {
    // Each object takes at least one byte, so shorter messages need no count.
    if message.len() <= MAX_OBJECTS {
        return None;
    }
    let mut text = TextState::default();
    let is_object = |byte: &&u8| text.is_outside(**byte) && **byte == b'{';
    if message.iter().filter(is_object).count() <= MAX_OBJECTS {
        return None;
    }
    let mut outline = Outline::default();
    outline.take(message);
    let problem = format!(
        "the message has too many objects: at most {MAX_OBJECTS} are read; send less at a time: `plan_write` takes a plan in parts with \
         `merge: true`"
    );
    Some((outline.id(), ErrorData::invalid_request(problem, None)))
}

/// The state of a scan of JSON: inside a string, and after a backslash in one.
#[derive(Debug, Default)]
struct TextState {
    is_text: bool,
    is_escaped: bool,
}

impl TextState {
    /// Processes the next byte. Returns whether it is outside of strings; quotes count as inside.
    fn is_outside(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.is_text => self.is_escaped = true,
            b'"' => self.is_text = !self.is_text,
            _ => return !self.is_text,
        }
        false
    }
}

/// Maximum length of an outline, in bytes.
const MAX_OUTLINE: usize = 4 << 10;

/// A message without its nested values. The id is found at any position among the fields, without storing the rest.
#[derive(Debug, Default)]
struct Outline {
    text: Vec<u8>,
    depth: usize,
    scan: TextState,
}

impl Outline {
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.take_byte(*byte);
        }
    }

    fn take_byte(&mut self, byte: u8) {
        let is_outside = self.depth <= 1;
        let is_structure = self.scan.is_outside(byte);
        match byte {
            b'{' | b'[' if is_structure => {
                self.depth += 1;
                if self.depth == 2 {
                    self.keep(b"null");
                }
                if self.depth > 1 {
                    return;
                }
            }
            b'}' | b']' if is_structure => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth > 0 {
                    return;
                }
            }
            _ => {}
        }
        if is_outside {
            self.keep(&[byte]);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.text.len() <= MAX_OUTLINE {
            self.text.extend_from_slice(bytes);
        }
    }

    /// Returns the id of a request. The id of a response belongs to a request of this server, which needs no reply.
    fn id(&self) -> Option<RequestId> {
        #[derive(serde::Deserialize)]
        struct Head {
            id: RequestId,
            #[serde(rename = "method")]
            _method: String,
        }
        serde_json::from_slice::<Head>(&self.text).ok().map(|head| head.id)
    }
}

/// Returns the id of a message whose other fields may be nested to any depth.
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
        while this.lines.is_empty() {
            let mut bytes = [0; READ_BYTES];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut this.input).poll_read(cx, &mut read))?;
            // A line without an end is not a message.
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.take(read.filled());
        }
        this.give(buffer);
        Poll::Ready(Ok(()))
    }
}

type Sending<E> = Pin<Box<dyn Future<Output = Result<(), E>> + Send>>;

/// A transport that replies to unparsable messages.
pub(super) struct Answering<T: Transport<RoleServer>> {
    inner: T,
    unread: mpsc::Receiver<UnparsedMessage>,
    /// Replies that are being sent. They are stored here because the future of `receive` may be dropped at any time.
    sending: VecDeque<Sending<T::Error>>,
}

/// Returns a transport over `input` that replies to unparsable messages. Lines of `most_bytes` bytes or more are too
/// long.
pub(super) fn answering<R, T: Transport<RoleServer>>(
    input: R,
    most_bytes: usize,
    transport: impl FnOnce(Reader<R>) -> T,
) -> Answering<T> {
    let (sender, unread) = mpsc::channel(MAX_WAITING);
    let reader = Reader {
        input,
        line: Vec::new(),
        lines: Vec::new(),
        passed: 0,
        is_too_long: false,
        outline: Outline::default(),
        most_bytes,
        unread: sender,
    };
    Answering { inner: transport(reader), unread, sending: VecDeque::new() }
}

impl<T: Transport<RoleServer>> Answering<T> {
    fn answer(&mut self, unread: UnparsedMessage) {
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
                // A client that has stopped reading is noticed when its requests are answered.
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
            // Errors that arrived together with the message or the end are answered as well.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(message: &str) -> Option<RequestId> {
        let mut outline = Outline::default();
        // In pieces, as they are read.
        message.as_bytes().chunks(3).for_each(|bytes| outline.take(bytes));
        outline.id()
    }

    #[test]
    fn a_request_of_too_many_objects_is_known_by_its_id_and_braces_in_texts_are_none() {
        let message = |objects: usize, text: &str| {
            let list = vec!["{}"; objects].join(",");
            format!(r#"{{"params":{{"list":[{list}],"text":"{text}"}},"id":3,"method":"a"}}"#)
        };
        let refused = |message: &str| too_many_objects(message.as_bytes());
        // The message and its parameters are objects as well.
        assert!(refused(&message(MAX_OBJECTS - 2, "")).is_none());
        let (id, error) = refused(&message(MAX_OBJECTS - 1, "")).unwrap();
        assert_eq!(id, Some(RequestId::Number(3)));
        assert!(error.message.contains("at most 130000"), "{}", error.message);
        assert!(refused(&message(1, &r#"{\" { \\"#.repeat(MAX_OBJECTS))).is_none());
    }

    #[test]
    fn a_request_that_is_too_long_is_known_by_its_id_wherever_it_stands() {
        let long = r#"x \" } { \\"#.repeat(1_000);
        let params = format!(r#""params":{{"id":7,"list":[[1,{{"id":8}}]],"text":"{long}"}}"#);
        for message in [
            format!(r#"{{"jsonrpc":"2.0","id":3,"method":"a",{params}}}"#),
            format!(r#"{{"method":"a",{params},"jsonrpc":"2.0","id":3}}"#),
            format!(r#" {{ {params} , "id" : 3 , "method" : "a" }} "#),
        ] {
            assert_eq!(id_of(&message), Some(RequestId::Number(3)), "{message}");
        }
        // A response, no id, no JSON, and a method name that is too long.
        for message in [
            format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"text":"{long}"}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","method":"a",{params}}}"#),
            "x".repeat(100_000),
            format!(r#"{{"jsonrpc":"2.0","id":3,"method":"{}"}}"#, "y".repeat(100_000)),
        ] {
            assert_eq!(id_of(&message), None, "{message}");
        }
    }
}
