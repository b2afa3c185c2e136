use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl::model::command::NewTask;
use taskpawl::model::task::TaskSpec;
use taskpawl::model::value::TaskId;
use taskpawl::{SandboxSettings, Taskpawl};
use taskpawl_http::{HEAD_TIMEOUT, MAX_PENDING};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::*;
use crate::server::options::ServerOptions;

/// A server over HTTP. Without its guard it shows that the guard is the part that refuses.
struct Site {
    port: u16,
    token: String,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

impl Site {
    async fn open(is_guarded: bool) -> Self {
        let plans = Taskpawl::builder(":memory:").sandbox(SandboxSettings::off()).open().unwrap();
        Self::of(plans, is_guarded).await
    }

    async fn of(plans: Taskpawl, is_guarded: bool) -> Self {
        let server = McpServer::new(plans, ServerOptions::default()).unwrap();
        let listener = HttpListener::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), false).await.unwrap();
        let (port, token, stop) =
            (listener.listener.address().port(), listener.token.clone(), CancellationToken::new());
        let guard =
            is_guarded.then(|| Guard::new(listener.listener.address(), [(listener.token.as_str(), ())]));
        let (listener, until) = (listener.listener, stop.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move { serve(&server, listener, guard, until).await });
        Self { port, token, stop, serving }
    }

    async fn close(mut self) {
        self.stop.cancel();
        self.serving.join_next().await.unwrap().unwrap();
    }

    /// Sends a request after replacing `PORT` and `TOKEN`.
    async fn begin(&self, head: &str, body: &str) -> TcpStream {
        let head = head.replace("PORT", &self.port.to_string()).replace("TOKEN", &self.token);
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.unwrap();
        let request = format!("{head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// Sends a request and returns the answer.
    async fn send(&self, head: &str, body: &str) -> String {
        let mut stream = self.begin(head, body).await;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    }

    async fn status(&self, head: &str) -> u16 {
        let answer = self.send(head, &list(Era::Handshake)).await;
        assert!(!answer.to_lowercase().contains("access-control"), "{answer}");
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

#[derive(Clone, Copy)]
enum Era {
    Handshake,
    Stateless,
}

fn list(era: Era) -> String {
    let meta = match era {
        Era::Handshake => json!({}),
        Era::Stateless => json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }}),
    };
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": meta}).to_string()
}

const POST: &str = "POST /mcp HTTP/1.1";
const HOST: &str = "\r\nHost: 127.0.0.1:PORT";
const AUTH: &str = "\r\nAuthorization: Bearer TOKEN";
const JSON: &str = "\r\nContent-Type: application/json";
const ACCEPT: &str = "\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25";

/// Returns requests with one fault each.
fn wrong() -> Vec<String> {
    let hosts = [
        "",
        "\r\nHost: evil.example",
        "\r\nHost: evil.example:PORT",
        "\r\nHost: 127.0.0.1",
        "\r\nHost: 127.0.0.1:1",
        "\r\nHost: localhost",
        "\r\nHost: 127.0.0.1.evil.example:PORT",
        "\r\nHost: [::1]",
        "\r\nHost: 0.0.0.0:PORT",
        "\r\nHost: 127.1:PORT",
        "\r\nHost: 2130706433:PORT",
        "\r\nHost: 127.0.0.1:PORT\r\nHost: evil.example",
        "\r\nHost: user@127.0.0.1:PORT",
    ];
    let origins = [
        "http://evil.example",
        "https://evil.example:PORT",
        "null",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "https://127.0.0.1:PORT",
        "file://",
        "http://localhost.evil.example:PORT",
        "",
        "http://127.0.0.1:PORT\r\nOrigin: http://evil.example",
        "chrome-extension://abc",
    ];
    let tokens = [
        "",
        "\r\nAuthorization: Bearer",
        "\r\nAuthorization: Bearer x",
        "\r\nAuthorization: TOKEN",
        "\r\nAuthorization: Basic TOKEN",
        "\r\nAuthorization: Bearer TOKENx",
        "\r\nAuthorization: Bearer  TOKEN",
        "\r\nX-Token: TOKEN",
        "\r\nCookie: token=TOKEN",
        "\r\nAuthorization: Bearer TOKEN\r\nAuthorization: Bearer x",
    ];
    let types = [
        "",
        "\r\nContent-Type: text/plain",
        "\r\nContent-Type: application/x-www-form-urlencoded",
        "\r\nContent-Type: multipart/form-data",
        "\r\nContent-Type: application/jsonx",
    ];
    let mut all: Vec<String> = hosts.iter().map(|host| format!("{POST}{host}{AUTH}{JSON}{ACCEPT}")).collect();
    all.extend(origins.iter().map(|origin| format!("{POST}{HOST}{AUTH}{JSON}{ACCEPT}\r\nOrigin: {origin}")));
    all.extend(tokens.iter().map(|token| format!("{POST}{HOST}{token}{JSON}{ACCEPT}")));
    all.extend(types.iter().map(|kind| format!("{POST}{HOST}{AUTH}{kind}{ACCEPT}")));
    all.extend([
        format!("POST http://evil.example/mcp HTTP/1.1{HOST}{AUTH}{JSON}{ACCEPT}"),
        format!("POST /mcp?token=TOKEN HTTP/1.1{HOST}{JSON}{ACCEPT}"),
        format!("OPTIONS /mcp HTTP/1.1{HOST}\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST"),
        format!("GET /mcp HTTP/1.1{HOST}{ACCEPT}"),
        format!("GET / HTTP/1.1{HOST}"),
        format!("{POST}{HOST}{AUTH}{JSON}{ACCEPT}\r\nSec-Fetch-Site: cross-site"),
    ]);
    all
}

#[tokio::test]
async fn only_holders_of_the_token_reach_the_port() {
    let (site, open) = (Site::open(true).await, Site::open(false).await);
    let wrong = wrong();
    assert!(wrong.len() >= 40, "{}", wrong.len());
    let mut let_through = 0;
    for head in &wrong {
        let status = site.status(head).await;
        // HTTP itself refuses a request without `Host`, or with two, before the guard sees it.
        let is_http = head.matches("Host:").count() != 1 && status == 400;
        assert!([401, 403].contains(&status) || is_http, "{status}: {head}");
        let_through += usize::from(![401, 403].contains(&open.status(head).await));
    }
    // The positive controls: all of them get through without the guard, and valid ones get through with it.
    assert_eq!(let_through, wrong.len());
    for host in ["127.0.0.1:PORT", "localhost:PORT", "LOCALHOST:PORT", "[::1]:PORT"] {
        let head = format!("{POST}\r\nHost: {host}{AUTH}{JSON}{ACCEPT}");
        assert_eq!(site.status(&head).await, 200, "{host}");
    }
    let own = format!("{POST}{HOST}{AUTH}{JSON}; charset=utf-8{ACCEPT}\r\nOrigin: http://localhost:PORT");
    assert_eq!(site.status(&own).await, 200);
    assert_eq!(site.status(&own.replace("/mcp", "/other")).await, 404);
    site.close().await;
    open.close().await;
}

#[tokio::test]
async fn both_eras_are_answered_without_a_session() {
    let site = Site::open(true).await;
    for (era, version) in [(Era::Handshake, "2025-11-25"), (Era::Stateless, "2026-07-28")] {
        let accept = ACCEPT.replace("2025-11-25", version);
        let method = "\r\nMcp-Method: tools/list";
        let answer = site.send(&format!("{POST}{HOST}{AUTH}{JSON}{accept}{method}"), &list(era)).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 200") && !head.to_lowercase().contains("mcp-session-id"),
            "{answer}"
        );
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["result"]["tools"].as_array().unwrap().len(), 8, "{body}");
    }
    site.close().await;
}

/// Opens a connection like clients of the older era. Returns the session, if there is one, and the server's
/// capabilities.
async fn initialize(site: &Site) -> (Option<String>, Value) {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
    let answer = site.send(&format!("{POST}{HOST}{AUTH}{JSON}{ACCEPT}"), &body).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ").map(str::to_owned));
    // In a session answers are events, in chunks.
    let said =
        body.lines().map(|line| line.trim_start_matches("data: ")).find(|line| line.starts_with("{\""));
    let said: Value = serde_json::from_str(said.unwrap()).unwrap();
    (session, said["result"]["capabilities"].clone())
}

fn in_session(verb: &str, session: &str) -> String {
    format!("{verb} /mcp HTTP/1.1{HOST}{AUTH}{JSON}{ACCEPT}\r\nMcp-Session-Id: {session}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_the_older_era_hears_of_changes_in_its_session() {
    let plans = Taskpawl::builder(":memory:").sandbox(SandboxSettings::off()).open().unwrap();
    let site = Site::of(plans.clone(), true).await;
    let (session, can) = initialize(&site).await;
    assert_eq!(can["resources"]["subscribe"], true);
    let session = session.unwrap();
    let post = in_session("POST", &session);
    let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    assert!(site.send(&post, &begun).await.starts_with("HTTP/1.1 202"));
    let mut stream = site.begin(&in_session("GET", &session), "").await;
    let subscribe = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": "taskpawl://digest"}});
    let subscribed = site.send(&post, &subscribe.to_string()).await;
    assert!(subscribed.contains(r#""result":{}"#), "{subscribed}");
    let spec = TaskSpec { name: "new".to_owned(), ..TaskSpec::default() };
    plans.manager().create(NewTask { id: TaskId::from("a"), spec, ..NewTask::default() }).unwrap();
    let mut heard = String::new();
    while !heard
        .contains(r#""method":"notifications/resources/updated","params":{"uri":"taskpawl://digest"}"#)
    {
        let mut bytes = [0; 1024];
        let count = stream.read(&mut bytes).await.unwrap();
        assert!(count > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(site.send(&in_session("DELETE", &session), "").await.starts_with("HTTP/1.1 20"));
    // An ended session is unknown, and the same request without a session is answered.
    assert!(site.send(&post, &list(Era::Handshake)).await.starts_with("HTTP/1.1 404"));
    assert_eq!(site.status(&format!("{POST}{HOST}{AUTH}{JSON}{ACCEPT}")).await, 200);
    site.close().await;
}

#[tokio::test]
async fn parameters_that_are_no_object_are_answered_by_the_id_of_their_request() {
    let site = Site::open(true).await;
    let (session, _) = initialize(&site).await;
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": []}).to_string();
    for head in [format!("{POST}{HOST}{AUTH}{JSON}{ACCEPT}"), in_session("POST", &session.unwrap())] {
        let answer = site.send(&head, &body).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/json"), "{answer}");
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!((&body["id"], &body["error"]["code"]), (&json!(9), &json!(-32_602)), "{body}");
    }
    site.close().await;
}

#[tokio::test]
async fn bodies_that_cannot_be_read_exactly_are_refused_by_the_id_of_their_request() {
    let site = Site::open(true).await;
    let (session, _) = initialize(&site).await;
    let session = session.unwrap();
    for arguments in [r#"{"limit": 1, "limit": 2}"#, r#"{"offset": 18446744073709551616}"#] {
        let params = format!(r#"{{"name": "plan_show", "arguments": {arguments}}}"#);
        let body = format!(r#"{{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {params}}}"#);
        for head in [format!("{POST}{HOST}{AUTH}{JSON}{ACCEPT}"), in_session("POST", &session)] {
            let answer = site.send(&head, &body).await;
            let (_, body) = answer.split_once("\r\n\r\n").unwrap();
            let body: Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["id"], 9, "{body}");
            assert!(body["error"]["code"].is_i64() && body["result"].is_null(), "{body}");
        }
    }
    site.close().await;
}

#[tokio::test]
async fn sessions_are_bounded_and_who_comes_then_is_served_without_one() {
    let site = Site::open(true).await;
    let mut sessions = Vec::new();
    loop {
        let (session, can) = initialize(&site).await;
        let Some(session) = session else {
            assert_eq!(can["resources"], json!({"listChanged": true}));
            break;
        };
        sessions.push(session);
        assert!(sessions.len() <= 64);
    }
    let subscribe = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": "taskpawl://digest"}});
    let refused = site.send(&format!("{POST}{HOST}{AUTH}{JSON}{ACCEPT}"), &subscribe.to_string()).await;
    assert!(refused.contains("there is no session"), "{refused}");
    site.send(&in_session("DELETE", &sessions[0]), "").await;
    assert!(initialize(&site).await.0.is_some());
    site.close().await;
}

#[tokio::test]
async fn every_start_has_another_token() {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let (one, other) = (
        HttpListener::open(address, false).await.unwrap(),
        HttpListener::open(address, false).await.unwrap(),
    );
    assert!(one.token().len() >= 32 && one.token() != other.token());
    assert_eq!(one.url(), format!("http://127.0.0.1:{}/mcp", one.listener.address().port()));
}

/// Sends a request with the token, which must be answered within a second.
async fn is_answered_at_once(site: &Site) {
    let head = format!("{POST}{HOST}{AUTH}{JSON}{ACCEPT}");
    let begin = std::time::Instant::now();
    let status = tokio::time::timeout(Duration::from_secs(1), site.status(&head)).await;
    assert_eq!(status, Ok(200), "after {:?}", begin.elapsed());
}

async fn silent(site: &Site, count: usize) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        streams.push(TcpStream::connect((Ipv4Addr::LOCALHOST, site.port)).await.unwrap());
    }
    streams
}

fn open_ones(streams: &[TcpStream]) -> usize {
    let is_open = |stream: &&TcpStream| {
        stream.try_read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    };
    streams.iter().filter(is_open).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_keep_nobody_waiting() {
    let site = Site::open(true).await;
    is_answered_at_once(&site).await;
    let streams = silent(&site, 200).await;
    is_answered_at_once(&site).await;
    assert!(open_ones(&streams) <= MAX_PENDING, "{} are held", open_ones(&streams));
    // They are closed after the time limit, even if no other connection needs their slots.
    let end = std::time::Instant::now() + HEAD_TIMEOUT + Duration::from_secs(2);
    while open_ones(&streams) > 0 {
        assert!(std::time::Instant::now() < end, "{} are still held", open_ones(&streams));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_come_again_and_again_keep_nobody_waiting() {
    let site = Site::open(true).await;
    let (port, mut flood) = (site.port, JoinSet::new());
    flood.spawn(async move {
        let mut streams = std::collections::VecDeque::new();
        // 200 connections a second, each with the beginning of a head, and all kept open by this side.
        let mut turns = tokio::time::interval(Duration::from_millis(5));
        loop {
            turns.tick().await;
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
            // The server may have closed it already.
            let _ = stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: ").await;
            streams.push_back(stream);
            if streams.len() > 400 {
                streams.pop_front();
            }
        }
    });
    for _ in 0..20 {
        is_answered_at_once(&site).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(flood.try_join_next().is_none(), "the flood goes on");
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_of_the_token_keeps_its_connection_for_later_requests() {
    let site = Site::open(true).await;
    let body = list(Era::Handshake);
    let head = format!("{POST}{HOST}{AUTH}{JSON}{ACCEPT}");
    let head = head.replace("PORT", &site.port.to_string()).replace("TOKEN", &site.token);
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, site.port)).await.unwrap();
    for _ in 0..2 {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        while !answer.ends_with('}') {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).await.unwrap();
            assert!(count > 0, "closed after {answer}");
            answer.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        // Meanwhile other connections need slots, and the time limit without the token passes.
        drop(silent(&site, 100).await);
        tokio::time::sleep(HEAD_TIMEOUT + Duration::from_millis(200)).await;
    }
    site.close().await;
}
