//! Feeds any output of a server through all of its readers: none panics, and no result grows much larger than its
//! message.

#[cfg(test)]
mod tests;

use std::cell::LazyCell;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use futures_util::{FutureExt, StreamExt, stream};
use hyper::body::Bytes;
use rmcp::model::{CallToolResult, ListToolsResult, ServerJsonRpcMessage, ServerNotification};
use rmcp::service::ClientServiceExt;
use serde_json::{Value, json};
use taskpawl::tools::{CallContext, ToolError, check_foreign};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::runtime::Runtime;

use super::catalogue::{Catalogue, Entry};
use super::connection::{Connection, answered, newer_first, take_tools};
use super::handler::{Handler, Shared, words};
use super::http::{EventLength, events_of};
use super::limits::{CatalogueSize, check_size};
use super::result::result_of;
use super::stdio::{Lines, Stdio};
use super::words::plain;

/// Number of polls without a request, after which the server of a conversation sends its next line unasked.
const PATIENCE: usize = 300;

/// Placeholder in a conversation for the id of the request that is answered.
const ID: &str = "\"@id\"";

/// Reads messages as a program prints them. Returns whether there was one.
pub(crate) fn messages(bytes: &[u8]) -> bool {
    let mut lines = Lines::default();
    let mut heard = false;
    // In pieces, as a pipe delivers them. The added line end closes the last line.
    for piece in bytes.chunks(1 + bytes.len() % 97).chain([&b"\n"[..]]) {
        let mut rest = piece;
        while !rest.is_empty() {
            let Ok((taken, is_whole)) = lines.add(rest) else { return heard };
            rest = &rest[taken..];
            if !is_whole {
                continue;
            }
            match lines.take() {
                Ok(Some(message)) => heard |= hear(message, bytes.len()),
                Ok(None) => {}
                Err(problem) => {
                    assert_plain(&problem);
                    return heard;
                }
            }
        }
    }
    heard
}

/// Reads the bytes as an HTTP body and as an event stream.
pub(crate) fn events(bytes: &[u8]) -> bool {
    let mut length = EventLength::default();
    let admitted = bytes.chunks(1 + bytes.len() % 97).map(|piece| {
        let admitted = length.admit(piece);
        admitted.map(|()| Bytes::copy_from_slice(piece))
    });
    let pieces: Vec<_> = admitted.collect();
    let events = events_of(stream::iter(pieces), Arc::default());
    let heard = events.filter_map(|event| {
        let data = event.ok().and_then(|event| event.data);
        let message = data.and_then(|data| serde_json::from_str(&data).ok());
        std::future::ready(message.map(|message| hear(message, bytes.len())))
    });
    let heard: Vec<bool> = heard.collect().now_or_never().unwrap_or_default();
    let whole = check_size(bytes).ok().and_then(|()| serde_json::from_slice(bytes).ok());
    let whole = whole.is_some_and(|message| hear(message, bytes.len()));
    whole | heard.contains(&true)
}

/// Runs a connection with a server that sends one of these lines for each request, and the rest unasked. Returns
/// whether the client got as far as a call.
pub(crate) fn conversation(bytes: &[u8]) -> bool {
    thread_local! {
        static RUNTIME: LazyCell<Runtime> = LazyCell::new(|| {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_all().event_interval(1).build().expect("a runtime can be made")
        });
    }
    RUNTIME.with(|runtime| runtime.block_on(converse(bytes)))
}

async fn converse(bytes: &[u8]) -> bool {
    let ((input, their_input), (their_output, output)) =
        (pipe::pipe().expect("a pipe can be made"), pipe::pipe().expect("a pipe can be made"));
    let shared = Arc::<Shared>::default();
    let transport = Stdio::new((input, output), Arc::clone(&shared));
    let client = async {
        let serve = Handler(Arc::clone(&shared)).serve_with_lifecycle(transport, newer_first());
        let Ok(running) = serve.await else { return false };
        let connection = Connection::new(running, Arc::clone(&shared), None);
        if connection.get_ready().await.is_err() {
            return false;
        }
        let cx = CallContext::new("/", "/nowhere");
        let _ = connection.call(&cx, "echo", serde_json::Map::new()).await;
        let _ = connection.refresh_if_stale().await;
        true
    };
    let server = speak(bytes, their_input, their_output);
    tokio::join!(client, server).0
}

/// Sends one line for each request, and after a while without one.
async fn speak(bytes: &[u8], input: pipe::Receiver, mut output: pipe::Sender) {
    let mut input = BufReader::new(input);
    for line in bytes.split(|byte| *byte == b'\n') {
        let id = request(&mut input).await.unwrap_or(Value::Null);
        let mut said = match std::str::from_utf8(line) {
            Ok(text) => text.replace(ID, &id.to_string()).into_bytes(),
            Err(_) => line.to_vec(),
        };
        said.push(b'\n');
        if output.write_all(&said).await.is_err() {
            return;
        }
    }
}

/// Returns the id of the next request, or `None` if none arrives.
async fn request(input: &mut BufReader<pipe::Receiver>) -> Option<Value> {
    let mut line = Vec::new();
    loop {
        let read = input.read_until(b'\n', &mut line);
        let mut read = std::pin::pin!(read);
        let mut looks = 0;
        let ended = poll_fn(|cx| {
            looks += 1;
            match read.as_mut().poll(cx) {
                Poll::Ready(read) => Poll::Ready(read.unwrap_or(0) == 0),
                Poll::Pending if looks > PATIENCE => Poll::Ready(true),
                Poll::Pending => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            }
        });
        if ended.await {
            return None;
        }
        let message: Value = serde_json::from_slice(&line).unwrap_or_default();
        line.clear();
        if let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) {
            return Some(id.clone());
        }
    }
}

/// Processes a message like the client, regardless of the request. Returns whether it had content.
fn hear(message: ServerJsonRpcMessage, length: usize) -> bool {
    match message {
        ServerJsonRpcMessage::Response(response) => {
            let result = serde_json::to_value(&response.result).unwrap_or_default();
            let has_tools = serde_json::from_value::<ListToolsResult>(result.clone()).is_ok_and(|listed| {
                hear_tools(&listed);
                true
            });
            let is_result = serde_json::from_value(result).is_ok_and(|result| hear_result(result, length));
            let is_answer = answered(response.result).is_ok_and(|result| hear_result(result, length));
            has_tools | is_result | is_answer
        }
        ServerJsonRpcMessage::Notification(notification) => {
            if let ServerNotification::ProgressNotification(progress) = &notification.notification {
                assert_plain(&words(&progress.params));
            }
            true
        }
        ServerJsonRpcMessage::Error(error) => {
            assert_plain(&plain(&error.error.message, 1000));
            true
        }
        ServerJsonRpcMessage::Request(_) => true,
    }
}

/// A catalogue reads back as it was written, and its schemas can check arguments.
fn hear_tools(listed: &ListToolsResult) {
    let mut tools = Vec::new();
    if take_tools(&mut tools, &listed.tools, &mut CatalogueSize::default()).is_err() {
        return;
    }
    for entry in &tools {
        check(entry);
    }
    let catalogue = Catalogue { tools };
    let written = serde_json::to_vec(&catalogue).expect("BUG: a catalogue cannot be written");
    let read: Catalogue = serde_json::from_slice(&written).expect("BUG: a catalogue cannot be read");
    assert_eq!(read, catalogue);
}

fn check(entry: &Entry) {
    let spec = entry.spec(format!("s/{}", entry.name));
    assert!(spec.description.len() <= 32 << 10);
    let texts = [
        json!({}),
        json!({"text": "a", "a": 1}),
        json!({"a": [[["x"]], {"a": null}], "text": {"text": -1.5}}),
    ];
    for args in texts {
        match check_foreign(&spec.name, &spec.args_schema, &args) {
            Ok(()) => {}
            Err(error) => assert!(matches!(error, ToolError::InvalidArgs { .. })),
        }
    }
}

/// A result is at most a few times larger than its message.
fn hear_result(result: CallToolResult, length: usize) -> bool {
    let said = match result_of("s/t", result, None) {
        Ok(value) => value.to_string(),
        Err(error) => {
            assert_plain(&error.to_string());
            error.result().map(Value::to_string).unwrap_or_default()
        }
    };
    assert!(said.len() <= 4096 + 8 * length, "{} bytes out of {length}", said.len());
    true
}

fn assert_plain(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(text.chars().count() <= 2000, "{text:?}");
}
