//! Unlimited input during a call does not make the engine grow: endless bodies, floods of progress messages, endless pages of
//! tools, and huge lists of tasks.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::json;

use crate::memory_tools::{MAX_GROWTH_KIB, most_memory, quiet_memory};
use crate::support::{Figures, Home};

/// An MCP server in a few lines of shell that floods its client.
const SERVER: &str = r#"answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
tool='"inputSchema":{"type":"object"}'
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id" ;;
    *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*)
      if [ "$1" = pages ]; then
        text=$(head -c 30000 /dev/zero | tr '\0' x)
        answer "{\"tools\":[{\"name\":\"t$id\",\"description\":\"$text\",$tool}],\"nextCursor\":\"$id\"}"
      else
        answer "{\"tools\":[{\"name\":\"flood\",$tool},{\"name\":\"emit\",$tool}]}"
      fi ;;
    *'"tools/call"'*'"emit"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"tasks":[' "$id"
      yes '{"name":"a task with quite a long name, as they have"},' | head -n 10000 | tr -d '\n'
      printf '{"name":"x"}]}}}\n' ;;
    *'"tools/call"'*)
      token=$(printf '%s' "$line" | sed -n 's/.*"progressToken":\([0-9]*\).*/\1/p')
      text=$(head -c 1000 /dev/zero | tr '\0' x)
      yes "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":${token:-0},\"progress\":1,\"message\":\"$text\"}}" | head -n 100000
      answer '{"content":[{"type":"text","text":"done"}]}' ;;
  esac
done
"#;

#[test]
fn servers_do_not_make_the_engine_grow() {
    let mut figures = Figures::of("servers_do_not_make_the_engine_grow", 0);
    let home = Home::new();
    let url = format!("http://{}", endless());
    let script = home.file("server.sh", SERVER);
    let server = |word: &str| format!("command = \"sh\"\nargs = [{script:?}, \"{word}\"]\n");
    home.user_config(&format!(
        "[tools.http_request]\nhosts = [\"127.0.0.1\"]\n[mcpServers.s]\n{}[mcpServers.pages]\n{}",
        server("calls"),
        server("pages")
    ));
    let quiet = quiet_memory(&home);
    let tasks = "yes '{\"name\": \"a task with a name\"},' | head -n 1000000";
    let emit = |script: &str| json!({"toolName": "shell", "emit": true, "args": {"parse": "json", "command": script}});
    let cases = [
        ("a body without end", json!({"http_request": {"url": format!("{url}/body")}}), "done"),
        (
            "one that is saved",
            json!({"http_request": {"url": format!("{url}/body"), "saveTo": "body"}}),
            "failed",
        ),
        ("headers without end", json!({"http_request": {"url": format!("{url}/headers")}}), "failed"),
        ("100,000 messages about progress", json!({"s/flood": {}}), "done"),
        ("10,000 tasks from a server", json!({"toolName": "s/emit", "emit": true, "args": {}}), "failed"),
        (
            "a million tasks from a program",
            emit(&format!("echo '{{\"tasks\": ['; {tasks}; echo '{{}}]}}'")),
            "failed",
        ),
        ("tools without end", json!({"pages/t1": {}}), "todo"),
    ];
    for (number, (label, call, end)) in cases.into_iter().enumerate() {
        let growth = most_memory(&home, &format!("t{number}"), &call, end).saturating_sub(quiet);
        figures.add(format!("{growth} KiB for {label}"));
        assert!(growth < MAX_GROWTH_KIB, "the engine grew by {growth} KiB for {label}");
    }
    let large = json!({"write_file": {"path": "out", "content": "x".repeat(30_000_000)}});
    let growth = most_memory(&home, "large", &large, "done").saturating_sub(quiet);
    figures.add(format!("control: {growth} KiB for a plan of 30 MB"));
    assert!(growth > MAX_GROWTH_KIB, "the control");
}

/// Serves endless answers until the client hangs up. Returns the address.
fn endless() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || serve(stream.unwrap()));
        }
    });
    address
}

fn serve(mut stream: TcpStream) {
    let mut request = [0; 4096];
    let read = stream.read(&mut request).unwrap_or(0);
    let wants_headers = request[..read].starts_with(b"GET /headers");
    let mut piece = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n".to_vec();
    if !wants_headers {
        piece.extend_from_slice(b"\r\n");
    }
    let more = if wants_headers {
        b"X-More: xxxxxxxxxxxxxxxxxxxxxxxx\r\n".repeat(2000)
    } else {
        vec![b'x'; 64 << 10]
    };
    // The write fails once the client has closed the connection.
    while stream.write_all(&piece).is_ok() {
        piece.clone_from(&more);
    }
}
