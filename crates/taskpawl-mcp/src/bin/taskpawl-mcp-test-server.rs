//! An MCP server for tests. It speaks both eras of the protocol, and misbehaves on request.
//!
//! It uses none of this crate's code: its messages are written by hand. An error in the client can therefore not hide
//! behind the same error here.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

fn main() -> ExitCode {
    // The tests start programs through this binary as well.
    taskpawl::child_entry();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mode = args.first().map_or("both", String::as_str);
    if mode == "refuse" {
        say_error("cannot read the database\nno such file: /data");
        return ExitCode::from(3);
    }
    if mode == "blab" {
        say_error(&format!("cannot log in with {}", token()));
        return ExitCode::from(3);
    }
    let mut server = Server {
        mode: mode.to_owned(),
        tools: tools(mode),
        waiting: Vec::new(),
        listener: None,
        is_newer: false,
    };
    note_start();
    if mode == "chatty" {
        print(b"Server is starting\n{\"not\": \"a message\"}\n\n");
    }
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if let Some(code) = server.hear(&message) {
            return code;
        }
    }
    let _ = std::fs::write("ended", "by the end of its input");
    ExitCode::SUCCESS
}

/// Appends a line to `starts` for each start.
fn note_start() {
    let file = std::fs::OpenOptions::new().create(true).append(true).open("starts");
    let _ = file.and_then(|mut file| writeln!(file, "{}", std::process::id()));
}

/// The field of a notification with the id of the subscription.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

struct Server {
    mode: String,
    tools: Vec<Value>,
    /// Calls of `meet` that wait for another one.
    waiting: Vec<Value>,
    /// The id of the request that subscribed to changes.
    listener: Option<Value>,
    /// True if the client uses the newer era.
    is_newer: bool,
}

impl Server {
    /// Handles a message. Returns an exit code when the server should end.
    fn hear(&mut self, message: &Value) -> Option<ExitCode> {
        let (method, id) = (message["method"].as_str().unwrap_or_default(), &message["id"]);
        match method {
            "server/discover" if self.mode == "strict" => return Some(ExitCode::from(9)),
            "server/discover" if self.mode == "silent" => {}
            "server/discover" if matches!(&*self.mode, "new" | "both" | "leaky") => {
                self.is_newer = true;
                answer(id, &discovered());
            }
            "subscriptions/listen" if self.is_newer => self.listen(id, &message["params"]["notifications"]),
            "initialize" if self.mode != "new" => answer(
                id,
                &json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "test", "version": "1"},
                }),
            ),
            "tools/list" => self.list(id, &message["params"]),
            "tools/call" => return self.call(id, &message["params"]),
            "notifications/cancelled" => {
                let _ = std::fs::write("cancelled", message["params"]["requestId"].to_string());
            }
            _ if id.is_null() => {}
            _ => refuse(id, -32601, "method not found"),
        }
        None
    }

    /// Accepts a subscription. Each notification carries the id of its request.
    fn listen(&mut self, id: &Value, wanted: &Value) {
        let wants_tools = wanted["toolsListChanged"] == json!(true);
        let accepted = if wants_tools { json!({"toolsListChanged": true}) } else { json!({}) };
        self.listener = wants_tools.then(|| id.clone());
        let params = json!({"_meta": {SUBSCRIPTION: id}, "notifications": accepted});
        notify("notifications/subscriptions/acknowledged", &params);
    }

    /// Reports that the tools changed; in the newer era only to a subscriber.
    fn say_changed(&self) {
        match (&self.listener, self.is_newer) {
            (Some(id), _) => {
                notify("notifications/tools/list_changed", &json!({"_meta": {SUBSCRIPTION: id}}));
            }
            (None, true) => {}
            (None, false) => notify("notifications/tools/list_changed", &json!({})),
        }
    }

    /// Answers with two pages, so that the client has to ask twice.
    fn list(&self, id: &Value, params: &Value) {
        let (first, second) = self.tools.split_at(2);
        match params["cursor"].as_str() {
            None => answer(id, &json!({"resultType": "complete", "tools": first, "nextCursor": "2"})),
            Some(_) => answer(id, &json!({"resultType": "complete", "tools": second})),
        }
    }

    fn call(&mut self, id: &Value, params: &Value) -> Option<ExitCode> {
        let (args, meta) = (&params["arguments"], &params["_meta"]);
        let text = |text: &str| json!({"type": "text", "text": text});
        match params["name"].as_str().unwrap_or_default() {
            "echo" => {
                let key = &meta["taskpawl/idempotencyKey"];
                let version = &meta["io.modelcontextprotocol/protocolVersion"];
                let trace = &meta["traceparent"];
                let structured = json!({
                    "text": args["text"], "key": key, "traceparent": trace, "version": version,
                    "pid": std::process::id(),
                });
                complete(id, &json!({"content": [text("echo")], "structuredContent": structured}));
            }
            "parts" => {
                let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
                complete(id, &json!({"content": [text("one"), image]}));
            }
            "environment" => {
                let names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                complete(id, &json!({"content": [text(&names.join(" "))]}));
            }
            "fail" => complete(id, &json!({"content": [text("no such thing")], "isError": true})),
            "refuse" => refuse(id, -32602, "unknown thing"),
            "progress" => {
                for done in 1..=3 {
                    notify(
                        "notifications/progress",
                        &json!({"progressToken": meta["progressToken"], "progress": done, "total": 3, "message": "at it"}),
                    );
                    std::thread::sleep(std::time::Duration::from_millis(100));
                }
                complete(id, &json!({"content": [text("done")]}));
            }
            "meet" => self.meet(id),
            "change" => {
                self.tools.push(tool("later", &json!({"type": "object"}), &json!({})));
                self.say_changed();
                complete(id, &json!({"content": [text("changed")]}));
            }
            "unsubscribe" => {
                if let Some(listener) = self.listener.take() {
                    complete(&listener, &json!({"_meta": {SUBSCRIPTION: listener}}));
                }
                complete(id, &json!({"content": [text("ended")]}));
            }
            "reveal" => {
                let variable = args["name"].as_str().unwrap_or_default();
                let value = variable_of(variable);
                let words: Vec<String> = std::env::args().collect();
                say_error(&format!("{variable} is {value}"));
                complete(id, &json!({"content": [text(&format!("{value} {}", words.join(" ")))]}));
            }
            "later" => complete(id, &json!({"content": [text("later")]})),
            "hang" => {}
            "die" => {
                say_error(&format!("starting\npanic: \u{1b}[31mout of cheese\u{1b}[0m {}", token()));
                return Some(ExitCode::from(7));
            }
            "flood" => print(&vec![b'x'; 64 << 20]),
            "values" => {
                let list = vec![0; 200_000];
                complete(id, &json!({"content": [], "structuredContent": list}));
            }
            "noise" => loop {
                print(b"this is no message\n");
            },
            "shout" => loop {
                say_error(&"x".repeat(1 << 20));
            },
            "deaf" => loop {
                std::thread::park();
            },
            _ => refuse(id, -32602, "no such tool"),
        }
        None
    }

    /// Answers two calls as soon as both are waiting.
    fn meet(&mut self, id: &Value) {
        self.waiting.push(id.clone());
        if self.waiting.len() == 2 {
            for id in self.waiting.drain(..) {
                complete(&id, &json!({"content": [{"type": "text", "text": "met"}]}));
            }
        }
    }
}

fn discovered() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "test", "version": "1"},
        "ttlMs": 0, "cacheScope": "private",
    })
}

/// The secret that the tests pass in the environment.
fn token() -> String {
    variable_of("TOKEN")
}

#[expect(clippy::disallowed_methods, reason = "what the tests look at is what it was started with")]
fn variable_of(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn tools(kind: &str) -> Vec<Value> {
    let any = json!({"type": "object"});
    let echo = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": false,
    });
    let odd = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^(?!x)"}, "b": {"$ref": "#/properties/a"}},
        "if": {"required": ["a"]},
        "then": {"required": ["b"]},
        "unevaluatedProperties": false,
    });
    let mut tools = vec![
        tool("echo", &echo, &json!({"readOnlyHint": true, "openWorldHint": false})),
        tool("die", &any, &json!({})),
        tool("parts", &odd, &json!({"idempotentHint": true, "destructiveHint": false})),
        tool("bad name", &any, &json!({})),
    ];
    let others =
        ["environment", "fail", "refuse", "progress", "meet", "change", "hang", "flood", "values", "noise"];
    if kind == "leaky" {
        let schema = json!({"type": "object", "properties": {"t": {"default": token()}}});
        tools.push(
            json!({"name": "leak", "description": format!("Uses {}.", token()), "inputSchema": schema}),
        );
    }
    tools.extend(
        others
            .into_iter()
            .chain(["shout", "deaf", "unsubscribe", "reveal"])
            .map(|name| tool(name, &any, &json!({}))),
    );
    tools
}

fn tool(name: &str, schema: &Value, annotations: &Value) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": schema, "annotations": annotations})
}

fn complete(id: &Value, result: &Value) {
    let mut result = result.clone();
    result["resultType"] = "complete".into();
    answer(id, &result);
}

fn answer(id: &Value, result: &Value) {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn refuse(id: &Value, code: i32, message: &str) {
    say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
}

fn notify(method: &str, params: &Value) {
    say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
}

fn say(message: &Value) {
    print(format!("{message}\n").as_bytes());
}

/// Ignores errors: the client may be gone.
fn print(bytes: &[u8]) {
    let mut output = io::stdout().lock();
    let written = output.write_all(bytes).and_then(|()| output.flush());
    if written.is_err() && bytes.starts_with(b"this") {
        // The `noise` loop would never end.
        std::thread::park();
    }
}

fn say_error(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
