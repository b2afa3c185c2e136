//! Tests of `taskpawl mcp` as a process, started like an agent does.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Cli, may_decide};

/// A client of the older protocol versions, which start with `initialize`.
pub(crate) struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
    /// Notifications that arrived while the client waited for a response.
    heard: Vec<Value>,
}

impl Agent {
    pub(crate) fn start(cli: &Cli, directory: &Path, options: &[&str]) -> Self {
        Self::of_version(cli, directory, options, "2025-11-25")
    }

    fn of_version(cli: &Cli, directory: &Path, options: &[&str], version: &str) -> Self {
        Self::of_process(cli.command(directory, &with_mcp(options)), version).0
    }

    /// Starts an agent at another time than the tests have, if `now` is one. Returns also the instructions of the server.
    pub(crate) fn start_at(cli: &Cli, options: &[&str], now: &str) -> (Self, String) {
        let mut command = cli.command(&cli.path("work"), &with_mcp(options));
        if !now.is_empty() {
            command.env("TASKPAWL_TEST_NOW", now);
        }
        Self::of_process(command, "2025-11-25")
    }

    fn of_process(mut command: Command, version: &str) -> (Self, String) {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut agent = Self { child, input, output, asked: 0, heard: Vec::new() };
        let hello = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let welcome = agent.ask("initialize", &hello);
        assert_eq!(welcome["result"]["protocolVersion"], version, "{welcome}");
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let instructions = welcome["result"]["instructions"].as_str().unwrap_or_default().to_owned();
        (agent, instructions)
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.ask_raw(method, &params.to_string())
    }

    /// Sends a request with `params` exactly as written.
    pub(crate) fn ask_raw(&mut self, method: &str, params: &str) -> Value {
        self.asked += 1;
        let id = self.asked;
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it has ended");
            // Standard output must carry nothing but messages: anything else breaks the protocol.
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.asked {
                return message;
            }
            self.heard.push(message);
        }
    }

    /// Waits for a notification.
    pub(crate) fn hear(&mut self, method: &str) -> Value {
        if let Some(heard) = self.heard.iter().position(|message| message["method"] == method) {
            return self.heard.remove(heard);
        }
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"] == method {
                return message;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        answer["result"]["structuredContent"].clone()
    }

    /// Closes the connection, and returns the exit code and the text on standard error.
    pub(crate) fn close(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn with_mcp<'a>(options: &[&'a str]) -> Vec<&'a str> {
    ["mcp"].iter().chain(options).copied().collect()
}

#[test]
fn an_agent_and_a_person_share_the_plan_of_a_project() {
    if !may_decide() {
        return;
    }
    let cli = Cli::without_store().with_clock().with_programs();
    cli.run(&["init"]).ok();
    let elsewhere = cli.path("");
    let mut agent = Agent::start(&cli, &elsewhere, &["--project", "work"]);
    let plan = json!({"tasks": [{"id": "note", "run": "echo hello > note.txt"}, {"id": "after", "needs": ["note"]}]});
    let written = agent.call("plan_write", &json!({"plan": plan, "agent": "ann"}));
    assert_eq!(written["created"], json!(["note", "after"]));
    let run = agent.call("run_ready", &json!({"wait_s": 45}));
    assert_eq!(run["onHold"][0]["id"], "note", "{run}");
    let shown = cli.run(&["show", "note", "--json"]).ok().json();
    assert_eq!(shown["data"]["metadata"]["toolCalls"][0]["origin"], "mcp");
    cli.by_person(&["approve", "note"]).ok();
    cli.run(&["note", "after", "from a person"]).ok();
    assert_eq!(agent.call("task_get", &json!({"id": "after"}))["task"]["notes"][0]["text"], "from a person");
    assert_eq!(agent.close(), (Some(0), String::new()));
}

#[test]
fn agents_and_people_are_told_the_same_of_a_tool_that_is_not_there() {
    let cli = Cli::new().with_clock();
    let args = json!({"name": "n", "id": "n", "call": {"srv/x": {}}});
    let mut agent = Agent::start(&cli, &cli.path("work"), &[]);
    let said = "no tool `srv/x` is known here; no MCP server `srv` is configured";
    let refused = agent.call("task_add", &args);
    assert!(refused.to_string().contains(said), "{refused}");
    cli.run(&["create", "N", "--id", "n", "--tool", "srv/x"]).ok();
    let because = "needs the tool `srv/x`: no MCP server `srv` is configured";
    let list = agent.call("ready_list", &json!({}));
    assert_eq!(list["forNobody"][0]["because"], because, "{list}");
    let shown = agent.call("plan_show", &json!({"status": ["todo"]}));
    assert_eq!(shown["tasks"][0]["because"], because, "{shown}");
    assert_eq!(agent.call("plan_show", &json!({}))["forNobody"][0]["because"], because);
    assert_eq!(agent.close().0, Some(0));

    let created = cli.run(&["create", "M", "--id", "m", "--tool", "srv/x"]).ok();
    assert!(created.stderr.contains(said), "{created}");
    for command in [&["prime"][..], &["explain", "--ready"], &["watch", "--once"], &["explain", "n"]] {
        let run = cli.run(command).ok();
        assert!(run.stdout.contains(because), "{run}");
    }
}

#[test]
fn no_refusal_is_the_bare_name_of_a_method() {
    let cli = Cli::new().with_clock();
    let mut agent = Agent::start(&cli, &cli.path("work"), &[]);
    for method in ["tools/run", "logging/setLevel", "subscriptions/listen"] {
        let params = json!({"level": "info", "notifications": {}});
        let error = agent.ask(method, &params)["error"].clone();
        let said = format!("there is no method `{method}` in this version of the protocol");
        assert_eq!((&error["code"], &error["message"]), (&json!(-32601), &json!(said)), "{error}");
    }
    let wrong = agent.ask("subscriptions/listen", &json!({"notifications": []}))["error"].clone();
    assert!(wrong["message"].as_str().unwrap().contains("argument `notifications`"), "{wrong}");
    agent.asked += 1;
    agent.send(&json!({"jsonrpc": "2.0", "id": agent.asked}));
    let mut line = String::new();
    agent.output.read_line(&mut line).unwrap();
    let error: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(agent.asked), &json!(-32600)), "{error}");
    assert_eq!(agent.close().0, Some(0));
}

#[test]
fn what_runs_is_known_after_the_server_was_killed() {
    let cli = Cli::new().with_clock();
    let mut agent = Agent::start(&cli, &cli.path("work"), &[]);
    let plan = json!({"tasks": [{"id": "slow", "call": {"sleep": {"duration": "10m"}}, "timeout": "20m"}]});
    agent.call("plan_write", &json!({"plan": plan}));
    let run = agent.call("run_ready", &json!({}))["run_id"].clone();
    // The run must have claimed the task before the server is killed.
    while agent.call("task_get", &json!({"id": "slow"}))["task"]["status"] != "in_progress" {}
    agent.kill();
    let mut agent = Agent::start(&cli, &cli.path("work"), &[]);
    let seen = agent.call("run_ready", &json!({"run_id": run, "wait_s": 45}));
    assert_eq!(
        (&seen["state"], &seen["nextActions"][0]),
        (&json!("killed"), &json!({"tool": "run_ready", "arguments": {}})),
        "{seen}"
    );
    assert_eq!(agent.close().0, Some(0));
}

#[test]
fn what_runs_may_end_when_the_client_goes() {
    let cli = Cli::new().with_clock();
    let mut agent = Agent::start(&cli, &cli.path("work"), &[]);
    let plan = json!({"tasks": [{"id": "one", "call": {"sleep": {"duration": "300ms"}}}, {"id": "two", "needs": ["one"], "call": {"log": {"message": "x"}}}]});
    agent.call("plan_write", &json!({"plan": plan}));
    agent.call("run_ready", &json!({}));
    while agent.call("task_get", &json!({"id": "one"}))["task"]["status"] == "todo" {}
    assert_eq!(agent.close().0, Some(0));
    let status = |id: &str| cli.run(&["show", id, "--json"]).ok().json()["data"]["status"].clone();
    assert_eq!((status("one"), status("two")), (json!("done"), json!("todo")));
}

#[test]
fn what_cannot_be_served_is_said_to_people() {
    let cli = Cli::new();
    for (options, said) in [
        (&["mcp", "--project", "none"][..], "which is no directory"),
        (&["mcp", "--read-only", "--allow", "sandboxed"], "cannot be used with"),
        (&["mcp", "--http", "192.0.2.1:80"], "--allow-remote"),
        (&["mcp", "--http", "0.0.0.0:80", "--allow-remote"], "name the one address"),
        (&["mcp", "--http", "port"], "expected a port"),
    ] {
        let refused = cli.run(options);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused}");
        assert!(refused.stderr.contains(said), "{refused}");
    }
    cli.policy("[origins]\nmcp = \"ask\"\n");
    let refused = cli.run(&["mcp", "--allow", "sandboxed"]);
    assert!(refused.code == Some(7) && refused.stderr.contains("mcp = \"ask\""), "{refused}");
}

/// A host starts its servers in any directory, and in git repositories that have nothing to do with taskpawl.
#[test]
fn the_first_writing_tool_makes_the_project_of_a_git_root() {
    let cli = Cli::without_store().with_clock();
    std::fs::create_dir(cli.path("work/.git")).unwrap();
    let (mut first, mut second) =
        (Agent::start(&cli, &cli.path("work"), &[]), Agent::start(&cli, &cli.path("work"), &[]));
    assert_eq!(first.call("plan_show", &json!({}))["error"], json!(null));
    assert!(!cli.path("work/.taskpawl").exists(), "reading makes nothing");
    let added = first.call("task_add", &json!({"id": "a", "name": "a"}));
    let made = added["projectMade"].as_str().unwrap_or_default();
    assert!(made.contains("a taskpawl project: it is the root of a git repository"), "{added}");
    let again = second.call("task_add", &json!({"id": "b", "name": "b"}));
    assert_eq!(again["projectMade"], json!(null), "{again}");
    assert_eq!(second.call("task_get", &json!({"id": "a"}))["task"]["id"], "a");
    assert_eq!(cli.run(&["list", "--fields", "id"]).ok().json()["data"].as_array().unwrap().len(), 2);
}

#[test]
fn a_server_without_a_project_starts_and_its_writing_tools_name_init() {
    let cli = Cli::without_store().with_clock();
    let mut agent = Agent::start(&cli, &cli.path("work"), &[]);
    let tools = agent.ask("tools/list", &json!({}));
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 8, "{tools}");
    assert_eq!(agent.call("plan_show", &json!({}))["error"], json!(null));
    for (tool, arguments) in [
        ("task_add", json!({"id": "a", "name": "a"})),
        ("plan_write", json!({"plan": {"tasks": [{"id": "a"}]}})),
        ("run_ready", json!({})),
    ] {
        let refused = agent.call(tool, &arguments);
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("it is in no git repository; ask the person to run `taskpawl init`"),
            "{refused}"
        );
    }
    assert!(!cli.path("work/.taskpawl").exists());
    cli.run(&["init"]).ok();
    let refused = agent.call("plan_show", &json!({}));
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(
        message.ends_with("is a taskpawl project now; ask the person to restart this MCP server"),
        "{refused}"
    );
    assert_eq!(agent.close().0, Some(0));
}

/// A server that listens for HTTP.
pub(crate) struct HttpServer {
    child: Child,
    host: String,
    token: String,
}

impl HttpServer {
    pub(crate) fn open(cli: &Cli, options: &[&str]) -> Self {
        let args: Vec<&str> = ["mcp", "--http", "--json"].iter().chain(options).copied().collect();
        let mut command = cli.command(&cli.path("work"), &args);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let server: Value = serde_json::from_str(&line).unwrap();
        let text = |name: &str| server["data"][name].as_str().unwrap().to_owned();
        let url = text("url");
        let host = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
        Self { child, host, token: text("token") }
    }

    /// Sends one message on a connection of its own, and returns the raw response.
    fn post(&self, token: &str, message: &Value) -> String {
        let (host, body) = (&self.host, message.to_string());
        let mut stream = TcpStream::connect(host).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Calls a tool, and returns its text and `isError`.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> (String, bool) {
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = self.post(&self.token, &message);
        let body = &answer[answer.find("{\"jsonrpc\"").unwrap_or_else(|| panic!("{answer}"))..];
        let message = serde_json::Deserializer::from_str(body).into_iter::<Value>().next().unwrap().unwrap();
        (said(&message).to_owned(), message["result"]["isError"] == true)
    }

    pub(crate) fn close(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn by_http_only_who_has_the_token_is_served() {
    let cli = Cli::new().with_clock();
    let server = HttpServer::open(&cli, &[]);
    let status = |token: &str| {
        let answer = server.post(token, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let answers = (status(&server.token), status("wrong"));
    server.close();
    assert_eq!(answers, ("200".to_owned(), "401".to_owned()));
}

#[test]
fn agents_that_know_only_earlier_protocols_are_served() {
    let cli = Cli::new().with_clock();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut agent = Agent::of_version(&cli, &cli.path("work"), &[], version);
        let added = agent.ask("tools/call", &json!({"name": "task_add", "arguments": {"name": version}}));
        assert!(said(&added).contains(version), "{added}");
        assert_eq!(agent.close(), (Some(0), String::new()));
    }
}

/// Returns the text of a response.
pub(crate) fn said(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

#[test]
fn dialects_are_served_instead_of_the_plan_or_beside_it() {
    let cli = Cli::without_store().with_clock().with_programs();
    cli.run(&["init"]).ok();
    let work = cli.path("work");
    let mut agent =
        Agent::start(&cli, &work, &["--dialect", "checklist", "--dialect", "queue", "--scope", "talk"]);
    let listed = agent.ask("tools/list", &json!({}));
    let names = |listed: &Value| -> Vec<String> {
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&listed), ["manage_tasks", "task"]);
    let list = json!([{"id": 1, "title": "Look", "status": "completed"}, {"id": 2, "title": "Build", "status": "in-progress"}]);
    let call = |arguments: Value| json!({"name": "manage_tasks", "arguments": arguments});
    let done = agent.ask("tools/call", &call(json!({"taskList": list})));
    assert_eq!(said(&done), r#"{"success":true,"message":"Task list updated: 1/2 completed"}"#);
    let refused = agent.ask("tools/call", &call(json!({"taskList": "no list"})));
    assert_eq!(said(&refused), r#"{"success":false,"error":"Invalid JSON array for taskList"}"#);
    let block = agent.ask("resources/read", &json!({"uri": "taskpawl://checklist"}));
    let block = block["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
    assert!(block.contains("- [in-progress] (2) Build"), "{block}");
    // Another process reads the same list, and the plan is not served.
    assert_eq!(cli.run(&["todo", "prompt", "--scope", "talk"]).ok().stdout.trim_end(), block.trim_end());
    assert!(agent.ask("resources/read", &json!({"uri": "taskpawl://digest"}))["error"].is_object());
    let prompts = agent.ask("prompts/list", &json!({}));
    let prompts = prompts["result"]["prompts"].as_array().unwrap();
    assert_eq!(
        prompts.iter().map(|prompt| &prompt["name"]).collect::<Vec<_>>(),
        ["checklist_guide", "queue_guide"]
    );
    assert_eq!(agent.close(), (Some(0), String::new()));
    assert_eq!(cli.run(&["todo", "prompt", "--scope", "talk"]).ok().stdout, "", "it is over with its server");

    let mut both = Agent::start(&cli, &work, &["--dialect", "session", "--dialect", "core", "--read-only"]);
    let listed = names(&both.ask("tools/list", &json!({})));
    assert!(
        listed.contains(&"plan_show".to_owned()) && listed.contains(&"todoread".to_owned()),
        "{listed:?}"
    );
    let todos = json!([{"content": "a", "status": "pending", "priority": "low"}]);
    let refused = both.ask("tools/call", &json!({"name": "todowrite", "arguments": {"todos": todos}}));
    assert!(said(&refused).contains("read-only"), "{refused}");
    assert_eq!(both.close(), (Some(0), String::new()));
    let unknown = cli.run(&["mcp", "--dialect", "chekclist"]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("did you mean `checklist`?"), "{unknown}");
}
