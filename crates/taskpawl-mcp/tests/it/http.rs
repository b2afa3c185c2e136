use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use taskpawl::tools::ToolError;

use crate::support::Bench;

/// A server over HTTP with given answers.
struct Web {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

/// Status, content type, body and further headers of an answer.
type Answer = (u16, &'static str, String, &'static str);

impl Web {
    /// Serves until the process ends. Each connection has one request.
    fn serve(answer: impl Fn(&Value) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                std::thread::spawn(move || serve_one(stream.unwrap(), &seen, &*answer));
            }
        });
        Self { url, requests }
    }

    fn bench(&self) -> Bench {
        Bench::of(
            json!({"type": "http", "url": self.url, "headers": {"X-Token": "${SECRET}", "X-Key": "${secret:KEY}"}}),
        )
    }
}

fn serve_one(mut stream: TcpStream, seen: &Mutex<Vec<String>>, answer: &dyn Fn(&Value) -> Answer) {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    let (head, body) = loop {
        let read = stream.read(&mut buffer).unwrap_or(0);
        if read == 0 {
            return;
        }
        text.extend_from_slice(&buffer[..read]);
        let whole = String::from_utf8_lossy(&text).into_owned();
        if let Some((head, body)) = whole.split_once("\r\n\r\n") {
            let length = head
                .to_lowercase()
                .split("content-length: ")
                .nth(1)
                .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
            if body.len() >= length {
                break (head.to_owned(), body.to_owned());
            }
        }
    };
    seen.lock().unwrap().push(head.clone());
    let message = serde_json::from_str(&body).unwrap_or(json!({"method": head.split(' ').next()}));
    let (status, kind, body, more) = answer(&message);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n"
    );
    // The client may be gone.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

fn json_of(message: &Value, result: &Value) -> Answer {
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    (200, "application/json", body.to_string(), "")
}

fn events_of(message: &Value, result: &Value) -> Answer {
    let progress = json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": message["params"]["_meta"]["progressToken"], "progress": 1},
    });
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    (200, "text/event-stream", format!("data: {progress}\n\nevent: message\ndata: {body}\n\n"), "")
}

/// Returns the answers of a server of the older or the newer era; `call` answers its calls.
fn server(is_new: bool, call: impl Fn(&Value) -> Answer) -> impl Fn(&Value) -> Answer {
    move |message| match message["method"].as_str().unwrap() {
        "server/discover" if is_new => json_of(
            message,
            &json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "web", "version": "1"}, "ttlMs": 0, "cacheScope": "private",
            }),
        ),
        "server/discover" => (400, "text/plain", "Bad Request: no session".to_owned(), ""),
        "initialize" => {
            let info = json!({"name": "web", "version": "1"});
            let result =
                json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info});
            let (status, kind, body, _) = json_of(message, &result);
            (status, kind, body, "Mcp-Session-Id: abc\r\n")
        }
        "tools/list" => {
            let tool = json!({"name": "echo", "inputSchema": {"type": "object"}});
            json_of(message, &json!({"resultType": "complete", "tools": [tool]}))
        }
        "tools/call" => call(message),
        "GET" => (405, "text/plain", String::new(), ""),
        _ => (202, "text/plain", String::new(), ""),
    }
}

fn text(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

#[tokio::test]
async fn servers_by_http_of_both_eras_are_called() {
    for is_new in [true, false] {
        let web = Web::serve(server(is_new, |message| events_of(message, &text("hello"))));
        let bench = web.bench();
        assert_eq!(bench.learn().await, None, "{is_new}");
        assert_eq!(bench.call("echo", json!({})).await.unwrap(), "hello");
        let requests = web.requests.lock().unwrap();
        let last = requests.iter().rfind(|head| head.starts_with("POST")).unwrap().to_lowercase();
        assert!(last.contains("x-token: hidden"), "{last}");
        assert!(last.contains("x-key: canary-of-the-secret"), "{last}");
        assert_eq!(last.contains("mcp-session-id: abc"), !is_new, "{last}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Web::serve(|_| (200, "text/plain", String::new(), ""));
    let location: &'static str = format!("Location: {}\r\n", elsewhere.url).leak();
    let web = Web::serve(move |_| (307, "text/plain", String::new(), location));
    let problem = web.bench().learn().await.unwrap().replace(&elsewhere.url, "[elsewhere]");
    insta::assert_snapshot!(problem, @"MCP server `s` could not be started: the server redirects to `[elsewhere]`, which is not followed; if that is where it is, write so");
    assert!(elsewhere.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_no_server_says_what_it_is() {
    let unauthorized = Web::serve(|_| (401, "text/plain", String::new(), ""));
    let broken = Web::serve(|_| (503, "text/plain", "try \u{1b}[31mlater".to_owned(), ""));
    let page = Web::serve(|_| (200, "text/html", "<html>".to_owned(), ""));
    let (page_url, token) = (page.url.clone(), format!("{}?token=canary", page.url));
    let page = Bench::of(json!({"url": token}));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let closed = Bench::of(json!({"url": format!("http://{closed}/")}));
    let mut problems = Vec::new();
    for bench in [unauthorized.bench(), broken.bench(), page, closed] {
        problems.push(bench.learn().await.unwrap().replace(&page_url, "[page]"));
    }
    insta::assert_snapshot!(problems.join("\n"), @r###"
MCP server `s` could not be started: the server wants a token: add an `Authorization` header to its `headers` (status 401)
MCP server `s` could not be started: the server answered with status 503: try later
MCP server `s` could not be started: `[page]` answered with `text/html`, which is no JSON and no event stream; look whether an MCP server is there, and whether it wants a login
MCP server `s` could not be started: no connection to the server: client error (Connect): tcp connect error: Connection refused (os error 111)
"###);
}

#[tokio::test]
async fn what_a_server_sends_by_http_is_bounded() {
    let long = || "x".repeat(9 << 20);
    let values = || json!({"resultType": "complete", "content": [], "structuredContent": vec![0; 200_000]});
    let answers: [fn(&Value, String, Value) -> Answer; 3] = [
        |message, long, _| json_of(message, &text(&long)),
        |message, long, _| events_of(message, &text(&long)),
        |message, _, values| events_of(message, &values),
    ];
    let mut refusals = Vec::new();
    for answer in answers {
        let web = Web::serve(server(true, move |message| answer(message, long(), values())));
        let bench = web.bench();
        bench.learn().await;
        let error = bench.call("echo", json!({})).await.unwrap_err();
        assert!(matches!(error, ToolError::Lost { .. }), "{error}");
        refusals.push(error.to_string());
    }
    insta::assert_snapshot!(refusals.join("\n"), @r###"
MCP server `s` was lost during the call, and the progress of the call is unknown: it sent a message of more than 8 MiB
MCP server `s` was lost during the call, and the progress of the call is unknown: it sent a message of more than 8 MiB
MCP server `s` was lost during the call, and the progress of the call is unknown: it sent a message of more than 25000 values
"###);
}

#[tokio::test]
async fn a_call_that_did_not_arrive_has_failed_and_one_that_may_have_is_lost() {
    let web = Web::serve(server(true, |_| (500, "text/plain", "oops".to_owned(), "")));
    let bench = web.bench();
    bench.learn().await;
    insta::assert_snapshot!(bench.refusal("echo", json!({})).await, @"server: MCP server `s` did not take the call: the server answered with status 500: oops");
}

/// HTML is the page of a login or of another program, so no MCP server has seen the call. Any other type may be the
/// answer of a server.
#[tokio::test]
async fn a_page_in_place_of_an_answer_is_a_call_that_failed() {
    let web = Web::serve(server(true, |message| match message["params"]["arguments"]["kind"].as_str() {
        Some("page") => (200, "text/html; charset=utf-8", "<html>Log in</html>".to_owned(), ""),
        _ => (200, "text/plain", "done".to_owned(), ""),
    }));
    let bench = web.bench();
    bench.learn().await;
    let refusal = |refusal: String| refusal.replace(&web.url, "[page]");
    insta::assert_snapshot!(
        refusal(bench.refusal("echo", json!({"kind": "page"})).await),
        @"server: MCP server `s` did not take the call: `[page]` answered with `text/html; charset=utf-8`, which is no JSON and no event stream; look whether an MCP server is there, and whether it wants a login"
    );
    let error = bench.call("echo", json!({"kind": "text"})).await.unwrap_err();
    assert!(matches!(error, ToolError::Lost { .. }), "{error}");
}

#[tokio::test]
async fn an_error_by_http_is_that_of_one_call_alone() {
    let web = Web::serve(server(true, |message| {
        let location = "Location: http://127.0.0.1:1/\r\n";
        match message["params"]["arguments"]["how"].as_str() {
            Some("fails") => (500, "text/plain", "oops".to_owned(), ""),
            Some("token") => (401, "text/plain", String::new(), ""),
            Some("moved") => (307, "text/plain", String::new(), location),
            Some("page") => (200, "text/html", "<html>".to_owned(), ""),
            _ => json_of(message, &text("hello")),
        }
    }));
    let bench = web.bench();
    assert_eq!(bench.learn().await, None);
    for how in ["fails", "token", "moved", "page"].into_iter().cycle().take(12) {
        let refusal = bench.refusal("echo", json!({"how": how})).await;
        assert!(!refusal.contains("in a row"), "{refusal}");
    }
    assert_eq!(bench.call("echo", json!({})).await.unwrap(), "hello");
}

#[tokio::test]
async fn a_result_that_breaks_its_schema_says_so() {
    let structured =
        |n: Value| json!({"resultType": "complete", "content": [], "structuredContent": {"n": n}});
    let inner = server(true, move |message| {
        json_of(message, &structured(message["params"]["arguments"]["n"].clone()))
    });
    let web = Web::serve(move |message| {
        if message["method"] != "tools/list" {
            return inner(message);
        }
        let output = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let tool = json!({"name": "echo", "inputSchema": {"type": "object"}, "outputSchema": output});
        json_of(message, &json!({"resultType": "complete", "tools": [tool]}))
    });
    let bench = web.bench();
    assert_eq!(bench.learn().await, None);
    assert_eq!(bench.call("echo", json!({"n": 1})).await.unwrap(), json!({"n": 1}));
    let wrong = bench.call("echo", json!({"n": "one"})).await.unwrap();
    assert_eq!(wrong["n"], "one");
    let warning = wrong["_warning"].as_str().unwrap();
    assert!(warning.starts_with("it does not fit the `outputSchema` of its tool: `result.n`"), "{warning}");
}
