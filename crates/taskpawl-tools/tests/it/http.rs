use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::pin;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::json;
use taskpawl_tools::{CallContext, Registry, call_guarded};
use tokio::time::Instant;

use crate::support::{Project, until};

/// Server for one request, which it records.
struct Server {
    url: String,
    request: Receiver<String>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn new(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::with(move |stream| {
            // The client may close the connection before the end.
            let _ = stream.write_all(&answer);
        })
    }

    /// Sends no response, and notices when the client closes the connection.
    fn silent() -> Self {
        Self::with(|stream| {
            let _ = stream.read(&mut [0]);
        })
    }

    fn with(answer: impl FnOnce(&mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/path?q=1", listener.local_addr().unwrap());
        let (sender, request) = channel();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            sender.send(read_request(&stream)).unwrap();
            answer(&mut stream);
        });
        Self { url, request, thread: Some(thread) }
    }

    fn request(&self) -> String {
        self.request.recv_timeout(Duration::from_secs(10)).unwrap()
    }
}

fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut request).unwrap() > 0, "{request}");
    }
    let length = request.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    request + std::str::from_utf8(&body).unwrap()
}

fn answer(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nx-a: 1\r\nx-a: 2\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn a_request_returns_status_headers_and_body() {
    let project = Project::new();
    let server = Server::new(answer("200 OK", "text/plain", "hello"));
    let result = project.call("http_request", json!({"url": server.url})).await.unwrap();
    let headers = json!({"content-type": "text/plain", "x-a": "1, 2", "content-length": "5"});
    assert_eq!(result, json!({"status": 200, "headers": headers, "body": "hello"}));
    assert!(server.request().starts_with("GET /path?q=1 HTTP/1.1\r\n"));
}

#[tokio::test]
async fn json_is_sent_and_parsed() {
    let mut project = Project::new();
    project.cx.idempotency_key = "key-1".to_owned();
    project.cx.traceparent = "00-1-2-01".to_owned();
    let server = Server::new(answer("201 Created", "application/vnd.x+json; charset=utf-8", "{\"a\": 1}"));
    let args = json!({"url": server.url, "method": "POST", "json": {"b": 2}, "headers": {"X-Own": "yes"}});
    let result = project.call("http_request", args).await.unwrap();
    assert_eq!((&result["status"], &result["json"]), (&json!(201), &json!({"a": 1})));
    let request = server.request();
    assert!(request.ends_with("\r\n\r\n{\"b\":2}"), "{request}");
    for header in
        ["content-type: application/json", "x-own: yes", "idempotency-key: key-1", "traceparent: 00-1-2-01"]
    {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{request}");
    }
}

#[tokio::test]
async fn an_error_status_fails_the_call_and_keeps_the_result() {
    let project = Project::new();
    let server = Server::new(answer("404 Not Found", "text/plain", "gone"));
    let args = json!({"url": server.url, "saveTo": "page"});
    let error = project.call("http_request", args).await.unwrap_err();
    assert_eq!(error.class(), "http_status");
    assert_eq!(error.to_string(), format!("`{}` answered with status 404", server.url));
    assert_eq!(error.result().unwrap()["body"], "gone");
    assert!(!project.path("page").exists());
}

#[tokio::test]
async fn a_body_can_be_saved() {
    let project = Project::new();
    let server = Server::new(answer("200 OK", "application/json", "[1]"));
    let args = json!({"url": server.url, "saveTo": "new/page.json"});
    let result = project.call("http_request", args).await.unwrap();
    assert_eq!((&result["body"], &result["bytes"]), (&json!(""), &json!(3)));
    assert_eq!(project.read("new/page.json"), "[1]");
}

#[tokio::test]
async fn a_body_that_is_no_exact_json_is_refused() {
    let project = Project::new();
    for text in crate::programs::INEXACT_JSON {
        let server = Server::new(answer("200 OK", "application/json", text));
        let error = project.call("http_request", json!({"url": server.url})).await.unwrap_err();
        assert_eq!(error.class(), "invalid_json", "{text}");
    }
}

#[tokio::test]
async fn large_bodies_are_cut_or_refused() {
    let mut project = Project::new();
    project.cx.limits.keep_bytes = 10;
    project.cx.limits.output_bytes = 1000;
    let large = answer("200 OK", "application/json", &"1".repeat(2000));
    let server = Server::new(large.clone());
    let result = project.call("http_request", json!({"url": server.url})).await.unwrap();
    assert_eq!((&result["body"], &result["truncated"]), (&json!("1111111111"), &json!(true)));
    assert!(result.get("json").is_none());

    let server = Server::new(large);
    let error = project.call("http_request", json!({"url": server.url, "saveTo": "page"})).await.unwrap_err();
    assert_eq!(error.class(), "output_limit");
    assert_eq!(std::fs::read_dir(project.path("")).unwrap().count(), 0);
}

/// The effects of a request cannot be undone, so that it is not sent if its response has no valid place to go.
#[tokio::test]
async fn nothing_is_sent_if_the_response_may_not_be_saved() {
    let mut project = Project::new();
    project.cx.closed = crate::closed::closed_at(&project);
    project.write("dir/file", "");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    for (path, class) in [
        ("../page", "outside_root"),
        ("/elsewhere/page", "outside_root"),
        (".taskpawl/page", "protected"),
        (".git/config", "protected"),
        ("new/.git/hooks/page", "protected"),
        ("new/.git", "protected"),
        ("new/.env", "protected"),
        ("dir", "failed"),
        ("dir/file/page", "io"),
    ] {
        let args = json!({"url": url, "method": "POST", "body": "x", "saveTo": path});
        assert_eq!(project.call("http_request", args).await.unwrap_err().class(), class, "{path}");
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "{path}");
        assert!(!project.path("new").exists(), "{path}");
    }
}

#[tokio::test]
async fn an_unreachable_server_has_its_own_error_class() {
    let project = Project::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let error = project.call("http_request", json!({"url": url})).await.unwrap_err();
    assert_eq!(error.class(), "http", "{error}");
}

#[tokio::test]
async fn an_invalid_request_names_its_field() {
    let project = Project::new();
    let errors = [
        project.refusal("http_request", json!({"url": "http://a b/"})).await,
        project.refusal("http_request", json!({"url": "http://127.0.0.1:1/", "headers": {"a b": ""}})).await,
        project
            .refusal("http_request", json!({"url": "http://127.0.0.1:1/", "body": "", "json": null}))
            .await,
    ];
    insta::assert_snapshot!(errors.join("\n"), @r#"
    invalid_args: `http_request` refuses its arguments: `args.url` is not a valid URL: invalid uri character
    invalid_args: `http_request` refuses its arguments: `args.headers["a b"]` is not a valid header
    invalid_args: `http_request` refuses its arguments: `args.body` excludes `args.json`; give one of them
    "#);
}

#[tokio::test]
async fn a_silent_server_times_out() {
    let mut project = Project::new();
    project.cx.deadline = Some(Instant::now() + Duration::from_millis(300));
    let server = Server::silent();
    let error = project.call("http_request", json!({"url": server.url})).await.unwrap_err();
    assert_eq!(error.class(), "timeout", "{error}");
}

#[tokio::test]
async fn a_cancelled_request_closes_the_connection() {
    let project = Project::new();
    let mut server = Server::silent();
    let error = {
        let mut call = pin!(project.call("http_request", json!({"url": server.url})));
        tokio::select! {
            result = &mut call => panic!("ended too soon: {result:?}"),
            () = until("the request arrives", || server.request.try_recv().is_ok()) => {
                project.cx.cancel.cancel();
                call.await.unwrap_err()
            }
        }
    };
    assert_eq!(error.class(), "cancelled");
    let thread = server.thread.take().unwrap();
    until("the server sees the client hang up", || thread.is_finished()).await;
}

#[tokio::test]
async fn without_configuration_loopback_addresses_are_blocked() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    let tool = Registry::builtin().get("http_request").unwrap().clone();
    // The last host is resolved by the machine itself.
    for host in ["127.0.0.1", "0x7f.1", "[::ffff:127.0.0.1]", "localhost"] {
        let cx = CallContext::new(dir.path(), dir.path().join("output"));
        let args = json!({"url": format!("http://{host}:{port}/")});
        let error = call_guarded(tool.clone(), cx, args).await.unwrap_err();
        assert_eq!(error.class(), "blocked_address", "{host}: {error}");
    }
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
