//! The server as its clients see it: over TCP.

mod answers;
mod results;
mod screens;
mod signals;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use taskpawl::model::task::Status;
use taskpawl::{SandboxSettings, Source, Taskpawl};
use taskpawl_http::{Listener, Mount, StoredTokens, plain, token_hash};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::routes::{Access, ROUTES};
use crate::{Ask, Decision, PageOptions, PageServer, Scope, Tokens};

const PLAN: &str = "tasks: [{id: a, call: {fail: {message: broken}}}, {id: b, needs: a, milestone: true}, \
    {id: x, name: '\"><script>alert(1)</script>', description: '</p><b>x', milestone: true, needs: a}, \
    {id: gate, approval: {ask: 'Really <i>now</i>?'}, run: 'true'}]";

struct Site {
    plans: Taskpawl,
    page: PageServer,
    port: u16,
    tokens: Tokens,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

impl Site {
    async fn open(plan: &str, options: PageOptions) -> Self {
        Self::open_with(plan, options, None).await
    }

    async fn open_with(plan: &str, options: PageOptions, stored: Option<StoredTokens<Scope>>) -> Self {
        let plans = Taskpawl::builder(":memory:").sandbox(SandboxSettings::off()).open().unwrap();
        Self::of(plans, plan, options, stored).await
    }

    /// Opens a site with a clock and ids of its own.
    async fn at(plan: &str, options: PageOptions, source: Arc<dyn Source>) -> Self {
        let builder = Taskpawl::builder(":memory:").sandbox(SandboxSettings::off());
        let plans = builder.source(source).actor("tester").open().unwrap();
        Self::of(plans, plan, options, None).await
    }

    async fn of(
        plans: Taskpawl,
        plan: &str,
        options: PageOptions,
        stored: Option<StoredTokens<Scope>>,
    ) -> Self {
        if !plan.is_empty() {
            plans.apply_text(plan, "test").await.unwrap();
        }
        let given = plans.clone();
        let page =
            tokio::task::spawn_blocking(move || PageServer::new(&given, options)).await.unwrap().unwrap();
        let listener = Listener::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), false).await.unwrap();
        let (port, tokens, stop) =
            (listener.address().port(), Tokens::new(false).with_mcp(), CancellationToken::new());
        let tokens = Tokens { stored, ..tokens };
        let (server, known, until) = (page.clone(), tokens.clone(), stop.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move { server.serve(listener, &known, until).await });
        Self { plans, page, port, tokens, stop, serving }
    }

    async fn close(mut self) {
        self.stop.cancel();
        self.serving.join_next().await.unwrap().unwrap();
    }

    fn token(&self, scope: &Scope) -> &str {
        match scope {
            Scope::Read => &self.tokens.read,
            Scope::Act => self.tokens.act.as_deref().unwrap(),
            Scope::Mcp => self.tokens.mcp.as_deref().unwrap(),
            Scope::Signal(_) => "for-the-signal",
        }
    }

    async fn begin(&self, head: &str, body: &str) -> TcpStream {
        let head = head
            .replace("PORT", &self.port.to_string())
            .replace("READ", self.token(&Scope::Read))
            .replace("AGENT", self.token(&Scope::Mcp))
            .replace("TOKEN", self.token(&Scope::Act));
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.unwrap();
        let request = format!("{head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// Returns status, head and body of the answer.
    async fn send(&self, head: &str, body: &str) -> (u16, String, String) {
        let mut answer = Vec::new();
        self.begin(head, body).await.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let (status, _, body) = self.send(&format!("GET {path} HTTP/1.1{HOST}{AUTH}"), "").await;
        (status, body)
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let head = format!("POST {path} HTTP/1.1{HOST}{AUTH}\r\nContent-Type: application/json");
        let (status, _, body) = self.send(&head, &body.to_string()).await;
        (status, serde_json::from_str(&body).unwrap())
    }
}

const HOST: &str = "\r\nHost: 127.0.0.1:PORT";
const AUTH: &str = "\r\nAuthorization: Bearer TOKEN";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_route_needs_its_scope() {
    let mcp = Mount::new(async |_| plain(StatusCode::OK, "the server for agents"));
    let options = PageOptions { mcp: Some(mcp), ..PageOptions::default() };
    let site = Site::open_with(PLAN, options, Some(signals::tokens())).await;
    let holders = [
        ("", None),
        ("READ", Some(Scope::Read)),
        ("TOKEN", Some(Scope::Act)),
        ("AGENT", Some(Scope::Mcp)),
        ("for-the-signal", Some(Scope::Signal("a".to_owned()))),
        ("for-another-signal", Some(Scope::Signal("b".to_owned()))),
    ];
    for route in ROUTES.iter().filter(|route| route.path != "/events") {
        let path = route.path.replace("{}", if route.path.starts_with("/assets") { "app.js" } else { "a" });
        let kind = if route.method == Method::POST { "\r\nContent-Type: application/json" } else { "" };
        for (token, scope) in &holders {
            let auth =
                if token.is_empty() { String::new() } else { format!("\r\nAuthorization: Bearer {token}") };
            let head = format!("{} {path} HTTP/1.1{HOST}{auth}{kind}", route.method);
            let (status, ..) = site.send(&head, "[]").await;
            let expected = match (route.access, scope) {
                (Access::Open, _) => None,
                (Access::Token(_), None) => Some(401),
                (Access::Token(needed), Some(given)) => (!given.allows(needed, "a")).then_some(403),
            };
            match expected {
                Some(refused) => assert_eq!(status, refused, "{path} with {scope:?}"),
                None => assert!(![401, 403, 405, 500].contains(&status), "{status} {path} with {scope:?}"),
            }
        }
    }
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn head_is_get_without_a_body() {
    let site = Site::open_with(PLAN, PageOptions::default(), None).await;
    for path in ["/", "/api/v1/state", "/metrics"] {
        let (status, head, body) = site.send(&format!("HEAD {path} HTTP/1.1{HOST}{AUTH}"), "").await;
        assert_eq!((status, body.as_str()), (200, ""), "{path}");
        assert!(head.to_ascii_lowercase().contains("content-type"), "{head}");
    }
    assert_eq!(site.send(&format!("HEAD /api/v1/state HTTP/1.1{HOST}"), "").await.0, 401);
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_ends_its_stream_too() {
    let valid = Arc::new(AtomicBool::new(true));
    let known = Arc::clone(&valid);
    let stored = StoredTokens(Arc::new(move |hash: &[u8; 32]| {
        (known.load(Ordering::Relaxed) && *hash == token_hash("kept")).then_some(Scope::Read)
    }));
    let site = Site::open_with(PLAN, PageOptions::default(), Some(stored)).await;
    let kept = format!("{HOST}\r\nAuthorization: Bearer kept");
    let state = format!("GET /api/v1/state HTTP/1.1{kept}");
    assert_eq!(site.send(&state, "").await.0, 200);
    let mut stream = site.begin(&format!("GET /events HTTP/1.1{kept}"), "").await;
    message(&mut stream, |_| true).await;
    valid.store(false, Ordering::Relaxed);
    assert_eq!(site.send(&state, "").await.0, 401);
    site.plans.manager().cancel(&["a".to_owned()], None).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(!String::from_utf8_lossy(&rest).contains("\"cells\""), "nothing more is sent");
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_tasks_and_calls_without_ids() {
    let site = Site::open(PLAN, PageOptions::default()).await;
    site.plans.run().await.unwrap();
    let (status, text) = site.get("/metrics").await;
    assert_eq!(status, 200);
    for line in [
        "taskpawl_tasks{status=\"failed\"} 1",
        "taskpawl_tasks{status=\"done\"} 0",
        "taskpawl_questions 1",
        "taskpawl_open_runs 0",
        "taskpawl_calls_total{status=\"failed\"} 1",
        "taskpawl_call_duration_seconds_count 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing: {text}");
    }
    assert!(text.ends_with("# EOF\n") && !text.contains("gate"), "{text}");
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_requests_reach_nothing() {
    let site = Site::open(PLAN, PageOptions::default()).await;
    let paths =
        ["GET /api/v1/state", "GET /fragment/", "GET /events", "POST /api/v1/commands", "GET /nowhere"];
    let faults = [
        format!("{AUTH}\r\nHost: evil.example"),
        format!("{AUTH}\r\nHost: evil.example:PORT"),
        format!("{AUTH}\r\nHost: 127.0.0.1.evil.example:PORT"),
        format!("{HOST}{AUTH}\r\nOrigin: http://evil.example"),
        format!("{HOST}{AUTH}\r\nOrigin: null"),
        format!("{HOST}{AUTH}\r\nOrigin: http://127.0.0.1:1"),
        format!("{HOST}{AUTH}\r\nOrigin: https://127.0.0.1:PORT"),
        format!("{HOST}{AUTH}\r\nSec-Fetch-Site: cross-site"),
        format!("{HOST}{AUTH}\r\nSec-Fetch-Site: same-site"),
        HOST.to_owned(),
        format!("{HOST}\r\nAuthorization: Bearer x"),
        format!("{HOST}\r\nAuthorization: Basic TOKEN"),
        format!("{HOST}\r\nAuthorization: Bearer TOKENx"),
        format!("{HOST}\r\nCookie: token=TOKEN"),
        format!("{HOST}{AUTH}\r\nAuthorization: Bearer x"),
    ];
    for path in paths {
        for fault in &faults {
            let (status, ..) =
                site.send(&format!("{path} HTTP/1.1{fault}\r\nContent-Type: application/json"), "{}").await;
            assert!([401, 403].contains(&status), "{status}: {path}{fault}");
        }
        if path.starts_with("POST") {
            let (status, ..) =
                site.send(&format!("{path} HTTP/1.1{HOST}{AUTH}\r\nContent-Type: text/plain"), "{}").await;
            assert_eq!(status, 403);
        }
    }
    // The shell has no data, but pages of other origins do not get it either.
    for fault in &faults[..9] {
        let (status, ..) = site.send(&format!("GET / HTTP/1.1{fault}"), "").await;
        assert_eq!(status, 403, "{fault}");
    }
    assert_eq!(site.get("/api/v1/state").await.0, 200, "the positive control");
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_forbid_the_browser_everything_else() {
    let site = Site::open(PLAN, PageOptions::default()).await;
    for path in ["/", "/assets/app.js", "/fragment/", "/api/v1/state", "/nowhere"] {
        let (_, head, _) = site.send(&format!("GET {path} HTTP/1.1{HOST}{AUTH}"), "").await;
        let head = head.to_lowercase();
        for part in [
            "default-src 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "cache-control: no-store",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(part), "{path} lacks {part}: {head}");
        }
        assert!(!head.contains("access-control") && !head.contains("set-cookie") && !head.contains("unsafe"));
    }
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_tasks_never_become_markup() {
    let site = Site::open(PLAN, PageOptions::default()).await;
    let paths = [
        "/fragment/",
        "/fragment/tasks",
        "/fragment/task/x",
        "/fragment/questions",
        "/fragment/history",
        "/fragment/graph/a",
        "/fragment/plans",
        "/fragment/runs",
        "/fragment/log/a",
    ];
    for path in paths {
        let (status, body) = site.get(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        for markup in ["<script", "<img", "<b>", "<i>"] {
            assert!(!body.contains(markup), "{path} has {markup}: {body}");
        }
    }
    let (_, body) = site.get("/fragment/task/x").await;
    assert!(body.contains("&lt;script&gt;alert(1)"), "{body}");
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_are_those_of_a_program() {
    let site = Site::open(PLAN, PageOptions::default()).await;
    let (status, started) = site.post("/api/v1/runs", &json!({"only": ["a"]})).await;
    assert_eq!(status, 200, "{started}");
    site.page.wait_for_runs().await;
    assert_eq!(site.plans.get_task("a").await.unwrap().status, Status::Failed);
    let retry = json!({"command": "retry", "ids": ["a"]});
    assert_eq!(site.post("/api/v1/commands", &retry).await, (200, json!({"tasks": ["a"]})));
    assert_eq!(site.plans.get_task("a").await.unwrap().status, Status::Todo);
    let unknown = json!({"command": "retry", "ids": ["zz"]});
    assert_eq!(site.post("/api/v1/commands", &unknown).await.0, 404);
    for wrong in [
        json!({"command": "approve", "ids": ["gate"]}),
        json!({"command": "retry", "ids": ["a"], "x": 1}),
        json!([]),
    ] {
        assert_eq!(site.post("/api/v1/commands", &wrong).await.0, 400, "{wrong}");
    }
    let last = site.plans.manager().history(Some("a"), 0, 0).unwrap().pop().unwrap();
    assert_eq!(
        (last.actor.to_string(), last.actor_kind.to_string()),
        ("page".to_owned(), "program".to_owned())
    );
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_bound_to_the_question_and_to_its_code() {
    let (sender, mut asks) = mpsc::channel::<Ask>(1);
    let site = Site::open(PLAN, PageOptions { approvals: Some(sender), ..PageOptions::default() }).await;
    site.plans.run().await.unwrap();
    let (_, questions) = site.get("/api/v1/questions").await;
    let questions: Value = serde_json::from_str(&questions).unwrap();
    let hash = questions["questions"][0]["hash"].clone();
    let wrong = json!({"questions": [{"task": "gate", "hash": "0"}]});
    assert_eq!(site.post("/api/v1/approvals", &wrong).await.0, 409);
    assert_eq!(site.post("/api/v1/approvals", &json!({"questions": []})).await.0, 400);
    let right = json!({"questions": [{"task": "gate", "hash": hash}]});
    let (status, asked) = site.post("/api/v1/approvals", &right).await;
    assert_eq!(status, 200, "{asked}");
    // The terminal answers one ask at a time.
    assert_eq!(site.post("/api/v1/approvals", &right).await.0, 409);
    let ask = asks.recv().await.unwrap();
    assert_eq!((ask.code.as_str(), ask.questions.len()), (asked["code"].as_str().unwrap(), 1));
    let path = format!("/api/v1/approvals/{}", asked["id"].as_str().unwrap());
    assert!(site.get(&path).await.1.contains("open"));
    ask.decide(Decision::Refused("no".to_owned()));
    assert!(site.get(&path).await.1.contains(r#""reason":"no","state":"refused""#));
    assert_eq!(
        site.plans.get_task("gate").await.unwrap().status,
        Status::Blocked,
        "the page alone approves nothing"
    );
    site.close().await;
}

/// Reads a stream until it has a message that `is_it` accepts.
async fn message(stream: &mut TcpStream, is_it: impl Fn(&Value) -> bool) -> Value {
    let mut text = String::new();
    loop {
        let mut bytes = [0; 4096];
        let count = tokio::time::timeout(std::time::Duration::from_secs(10), stream.read(&mut bytes))
            .await
            .unwrap()
            .unwrap();
        assert!(count > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        let found = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let mut found = found.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        if let Some(found) = found.find(|value| is_it(value)) {
            return found;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_goes_on_at_a_revision() {
    let site = Site::open(PLAN, PageOptions::default()).await;
    let mut stream = site.begin(&format!("GET /events HTTP/1.1{HOST}{AUTH}"), "").await;
    let first = message(&mut stream, |_| true).await;
    assert_eq!(first["reset"], true);
    site.plans.manager().cancel(&["a".to_owned()], None).unwrap();
    let is_cancelled = |value: &Value| value["cells"]["0"] == "c";
    let change = message(&mut stream, is_cancelled).await;
    assert_eq!(change["reset"], false);
    drop(stream);
    // A client that slept gets what it has missed, and one of another server reads everything again.
    let (generation, revision) = (&first["generation"], &first["revision"]);
    let path = format!("/events?generation={generation}&revision={revision}");
    let mut later = site.begin(&format!("GET {path} HTTP/1.1{HOST}{AUTH}"), "").await;
    assert_eq!(message(&mut later, is_cancelled).await["cells"], change["cells"]);
    let mut other =
        site.begin(&format!("GET /events?generation=7&revision={revision} HTTP/1.1{HOST}{AUTH}"), "").await;
    assert_eq!(message(&mut other, |_| true).await["reset"], true);
    site.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_columns_follow_changes_of_the_graph() {
    let site = Site::open(
        "tasks: [{id: a, milestone: true, when: 'false'}, {id: b, needs: a, description: x}]",
        PageOptions::default(),
    )
    .await;
    let columns = |body: String| serde_json::from_str::<Value>(&body).unwrap();
    let before = columns(site.get("/api/v1/overview").await.1);
    assert_eq!((&before["ids"], &before["layers"]), (&json!(["a", "b"]), &json!([0, 1])));
    site.plans
        .apply_text("tasks: [{id: c, milestone: true, needs: other}, {id: other, description: y}]", "more")
        .await
        .unwrap();
    let revision = site.plans.manager().revision().unwrap();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        let now = columns(site.get("/api/v1/overview").await.1);
        if now["revision"].as_u64().unwrap() >= revision {
            assert_eq!(now["ids"].as_array().unwrap().len(), 4);
            assert_ne!(now["generation"], before["generation"]);
            break;
        }
        assert!(std::time::Instant::now() < end, "{now}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    site.close().await;
}
