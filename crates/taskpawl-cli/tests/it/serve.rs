//! The page as a process: its output, its answers and its end.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Cli, may_decide};
use crate::terminal::terminal;

/// A running server, which is killed on drop.
struct Page {
    child: Child,
    data: Value,
    /// The other end of the terminal, which stays open.
    _person: Option<File>,
}

impl Page {
    fn open(cli: &Cli, options: &[&str]) -> Self {
        let args: Vec<&str> = ["serve", "--json"].iter().chain(options).copied().collect();
        let mut command = cli.command(&cli.path("work"), &args);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let data = Self::announced(&mut child);
        Self { child, data, _person: None }
    }

    /// Opens the page as a person at a terminal does.
    fn open_at_a_terminal(cli: &Cli) -> Self {
        let (person, program) = terminal();
        let mut command = cli.command(&cli.path("work"), &["serve", "--json"]);
        let mut child = command.stdin(program).stdout(Stdio::piped()).spawn().unwrap();
        let data = Self::announced(&mut child);
        Self { child, data, _person: Some(person) }
    }

    fn announced(child: &mut Child) -> Value {
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let printed: Value = serde_json::from_str(&line).unwrap();
        printed["data"].clone()
    }

    fn text(&self, name: &str) -> &str {
        self.data[name].as_str().unwrap()
    }

    /// Returns the status and the body of the answer.
    fn ask(&self, method: &str, path: &str, token: &str, body: &str) -> (u16, String) {
        let host = self.text("address");
        let mut stream = TcpStream::connect(host).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_reads_plans_that_are_included_by_path_and_by_name() {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", "{name: main, tasks: [{id: x, include: parts/two.yaml}, {id: y, include: ours}]}");
    cli.file("parts/two.yaml", "[{id: z, include: ours}]");
    cli.file(".taskpawl/plans/ours.yaml", "[{id: a, run: echo}]");
    cli.run(&["apply", "plan.yaml"]).ok();
    let page = Page::open(&cli, &["--read-only"]);
    let token = page.text("readUrl").split_once("#token=").unwrap().1.to_owned();
    let (status, shown) = page.ask("GET", "/fragment/plan/main", &token, "");
    assert!(status == 200 && shown.contains("the store is equal to the file"), "{status} {shown}");
    assert!(shown.contains("x.z.a") && shown.contains("y.a"), "{shown}");
    cli.file(".taskpawl/plans/ours.yaml", "[{id: a, run: echo}, {id: b, run: echo}]");
    let (_, shown) = page.ask("GET", "/fragment/plan/main", &token, "");
    assert!(shown.contains("New tasks"), "{shown}");
}

#[test]
fn the_page_answers_holders_of_its_token_and_ends_with_a_signal() {
    let cli = Cli::new().with_clock();
    cli.run(&["create", "Write the tests", "--id", "write-tests"]).ok();
    let mut page = Page::open(&cli, &[]);
    let token = page.text("token").to_owned();
    assert_eq!(page.text("url"), format!("http://{}/#token={token}", page.text("address")));
    assert_eq!(page.ask("GET", "/fragment/", "wrong", "").0, 401);
    let (status, overview) = page.ask("GET", "/fragment/", &token, "");
    assert!(status == 200 && overview.contains("of 1 done"), "{status} {overview}");
    let cancel = r#"{"command": "cancel", "ids": ["write-tests"], "text": "not now"}"#;
    let read = page.text("readUrl").split_once("#token=").unwrap().1.to_owned();
    assert_eq!(page.ask("POST", "/api/v1/commands", &read, cancel).0, 403);
    assert_eq!(page.ask("POST", "/api/v1/commands", &token, cancel).0, 200);
    assert_eq!(
        cli.run(&["show", "write-tests", "--fields", "status"]).ok().json()["data"]["status"],
        "cancelled"
    );
    kill_process(Pid::from_child(&page.child), Signal::TERM).unwrap();
    assert_eq!(page.child.wait().unwrap().code(), Some(143));
}

#[test]
fn a_page_that_only_reads_has_no_token_for_commands() {
    let cli = Cli::new();
    let page = Page::open(&cli, &["--read-only"]);
    let (status, _) = page.ask("POST", "/api/v1/runs", page.text("token"), "{}");
    assert_eq!(status, 403);
}

#[test]
fn addresses_that_others_reach_are_refused_with_another_way() {
    let refused = Cli::new().run(&["serve", "--addr", "192.0.2.1:80"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused}");
    assert!(refused.stderr.contains("ssh -L"), "{refused}");
}

#[test]
fn tokens_that_outlive_a_server_are_valid_for_one_project_until_they_are_revoked() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new();
    let refused = cli.run(&["token", "create", "--scope", "read", "--expires", "2d"]);
    assert_eq!(refused.code, Some(7), "a script creates no token: {refused}");
    let made = cli
        .by_person(&["token", "create", "--scope", "read", "--expires", "2d", "--name", "scraper", "--json"])
        .ok();
    let made = made.json()["data"].clone();
    let (token, id) = (made["token"].as_str().unwrap(), made["id"].as_str().unwrap());
    let stored = std::fs::read_to_string(cli.path(".local/state/taskpawl/tokens.json")).unwrap();
    assert!(!stored.contains(token), "the token itself is not stored");
    let page = Page::open(&cli, &[]);
    let (status, metrics) = page.ask("GET", "/metrics", token, "");
    assert!(status == 200 && metrics.contains("taskpawl_tasks"), "{status} {metrics}");
    assert_eq!(page.ask("POST", "/api/v1/runs", token, "{}").0, 403);
    let other = Cli::new();
    assert_eq!(Page::open(&other, &[]).ask("GET", "/metrics", token, "").0, 401);
    let listed = cli.run(&["token", "list", "--json"]).ok().json()["data"].clone();
    assert_eq!((&listed[0]["id"], &listed[0]["name"]), (&made["id"], &"scraper".into()));
    assert_eq!(cli.run(&["token", "revoke", "unknown"]).code, Some(2));
    cli.run(&["token", "revoke", id]).ok();
    assert_eq!(page.ask("GET", "/metrics", token, "").0, 401, "a server that runs refuses it at once");
    for wrong in ["0s", "400d", "3 weeks"] {
        assert_eq!(
            cli.run(&["token", "create", "--scope", "act", "--expires", wrong]).code,
            Some(2),
            "{wrong}"
        );
    }
}

#[test]
fn agents_use_the_port_of_the_page_with_a_token_of_their_own() {
    let cli = Cli::new();
    let page = Page::open(&cli, &["--mcp"]);
    let list = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}"#;
    let agent = page.text("mcpToken").to_owned();
    assert!(page.text("mcpUrl").ends_with("/mcp"));
    assert_eq!(page.ask("POST", "/mcp", page.text("token"), list).0, 403);
    assert_eq!(page.ask("GET", "/api/v1/state", &agent, "").0, 403);
    let (status, tools) = page.ask("POST", "/mcp", &agent, list);
    assert!(![401, 403, 404].contains(&status), "{status} {tools}");
    let without = Page::open(&Cli::new(), &[]);
    assert!(without.data.get("mcpToken").is_none());
}

#[test]
fn a_policy_keeps_approvals_from_the_page() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_clock().at_a_terminal();
    // Without a question the request is invalid, if there are approvals at all.
    for (policy, expected) in
        [("", 400), ("[powers]\npage = 'ask'\n", 400), ("[powers]\npage = 'never'\n", 409)]
    {
        cli.policy(policy);
        let page = Page::open_at_a_terminal(&cli);
        let (status, body) =
            page.ask("POST", "/api/v1/approvals", page.text("token"), r#"{"questions": []}"#);
        assert_eq!(status, expected, "{policy} {body}");
    }
}

#[test]
fn a_token_for_one_signal_sends_it_and_does_nothing_else() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new();
    let create =
        |scope: &str| ["token", "create", "--scope", scope, "--expires", "2d", "--json"].map(str::to_owned);
    for wrong in ["signal", "signal:", "signal:a b", "write"] {
        let args = create(wrong);
        let refused = cli.run(&args.each_ref().map(String::as_str));
        assert_eq!(refused.code, Some(2), "{wrong}: {refused}");
    }
    let args = create("signal:deployed");
    let made = cli.by_person(&args.each_ref().map(String::as_str)).ok().json()["data"].clone();
    let (token, id) = (made["token"].as_str().unwrap(), made["id"].as_str().unwrap());
    assert_eq!(made["scope"], "signal:deployed");
    let page = Page::open(&cli, &[]);
    let body = r#"{"data": {"build": 7}}"#;
    let (status, sent) = page.ask("POST", "/api/v1/signals/deployed", token, body);
    assert_eq!(status, 200, "{sent}");
    for (method, path) in [
        ("POST", "/api/v1/signals/other"),
        ("POST", "/api/v1/runs"),
        ("GET", "/api/v1/state"),
        ("GET", "/metrics"),
    ] {
        assert_eq!(page.ask(method, path, token, "{}").0, 403, "{path}");
    }
    let kept = cli.run(&["signal", "--list", "--json"]).ok().json()["data"].clone();
    assert_eq!(
        (&kept[0]["data"]["build"], &kept[0]["actor"]),
        (&7.into(), &format!("token:{id}").into()),
        "{kept}"
    );
    let reads = Page::open(&cli, &["--read-only"]);
    assert_eq!(reads.ask("POST", "/api/v1/signals/deployed", token, "").0, 401);
}
