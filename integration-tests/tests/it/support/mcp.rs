//! A client of the program's MCP server, on its standard streams.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A server and its only client.
#[derive(Debug)]
pub(crate) struct McpClient {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    requests: u64,
}

impl McpClient {
    /// Starts `server`, and sends the handshake.
    pub(crate) fn start(mut server: Command) -> Self {
        let mut server =
            server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let input = server.stdin.take();
        let output = BufReader::new(server.stdout.take().unwrap());
        let mut client = Self { server, input, output, requests: 0 };
        let info = json!({"name": "harness", "version": "1"});
        client.request(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}),
        );
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    /// Returns the process id of the server.
    pub(crate) fn server_id(&self) -> u32 {
        self.server.id()
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.requests += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.requests {
                return message;
            }
        }
    }

    /// Calls a tool with an unreadable message, and returns the error.
    pub(crate) fn refused(&mut self, tool: &str, arguments: &Value) -> String {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{tool}: {answer}")).to_owned()
    }

    /// Calls a tool, and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        answer.get("result").cloned().unwrap_or_else(|| panic!("{tool} {arguments}: {answer}"))
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        // The end of its input stops the server.
        self.input = None;
        let _ = self.server.wait();
    }
}
