//! JSON values that cannot be stored exactly are refused, through every entry point.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};

use crate::harness::{Cli, Run};
use crate::mcp_server::Agent;

/// Values that can be stored exactly.
const KEPT: [&str; 5] =
    ["1e2", "0.1", "18446744073709551615", "-9223372036854775808", r#"{"a":1,"b":{"a":2}}"#];

/// Values that cannot be stored exactly, each with a part of the expected error.
fn refused() -> [(String, &'static str); 6] {
    let (number, key) = ("cannot be kept exactly", "is already given at");
    [
        ("18446744073709551616".to_owned(), number),
        ("-9223372036854775809".to_owned(), number),
        (format!("1{}", "0".repeat(400)), number),
        ("1e400".to_owned(), number),
        (r#"{"a":1,"a":2}"#.to_owned(), key),
        (r#"[{"b":{"a":1,"\u0061":2}}]"#.to_owned(), key),
    ]
}

/// Asserts that an entry point accepts every exact value and refuses the others. `give` returns the error, if there
/// is one.
fn assert_strict(way: &str, mut give: impl FnMut(&Cli, &str, &str) -> Option<String>) {
    let cli = Cli::new().with_clock().with_programs();
    let mut number = 0;
    let mut given = |text: &str| {
        number += 1;
        give(&cli, &format!("t{number}"), text)
    };
    for text in KEPT {
        assert_eq!(given(text), None, "{way}: {text}");
    }
    for (text, said) in refused() {
        let error = given(&text).unwrap_or_else(|| panic!("{way} takes {text}"));
        assert!(error.contains(said), "{way}: {text}: {error}");
        assert!(error.len() < 4_000, "{way}: {error}");
    }
}

fn error_of(run: &Run) -> Option<String> {
    (run.code != Some(0)).then(|| format!("{}{}", run.stdout, run.stderr))
}

/// Runs the only call of a new task and returns its error.
fn error_of_call(cli: &Cli, id: &str, call: &Value) -> Option<String> {
    let file = format!("{id}.json");
    cli.file(&file, &json!({"name": id, "tasks": [{"id": id, "call": call}]}).to_string());
    let run = cli.run(&["run-all-ready", "--plan", &file, "--sandbox=off"]);
    let task = cli.run(&["show", id, "--json"]).ok().json();
    if task["data"]["status"] == "done" {
        return None;
    }
    let call = &task["data"]["metadata"]["toolCalls"][0];
    assert_ne!(call["status"], "done", "{run}");
    Some(call["error"].to_string())
}

#[test]
fn options_of_commands_are_read_strictly() {
    assert_strict("done --result", |cli, id, text| {
        cli.run(&["create", id, "--id", id]).ok();
        error_of(&cli.run(&["done", id, &format!("--result={text}")]))
    });
    assert_strict("create --context", |cli, id, text| {
        error_of(&cli.run(&["create", id, "--id", id, "--context", &format!("k={text}")]))
    });
    assert_strict("create --args", |cli, id, text| {
        let args = format!(r#"{{"url":"http://h.example/","method":"POST","json":{text}}}"#);
        let run = cli.run(&["create", id, "--id", id, "--tool", "http_request", "--args", &args]);
        error_of(&run)
    });
    assert_strict("create --set", |cli, id, text| {
        let run = cli.run(&["create", id, "--id", id, "--set", &format!("metadata={{\"k\":{text}}}")]);
        error_of(&run)
    });
}

#[test]
fn parameters_are_read_strictly_and_given_once() {
    assert_strict("--param", |cli, id, text| {
        let plan = json!({"name": id, "params": {"p": {"type": "array"}}, "tasks": [{"id": id, "context": {"p": "${{ params.p }}"}}]});
        cli.file("plan.json", &plan.to_string());
        error_of(&cli.run(&["plan", "check", "plan.json", "--param", &format!("p=[{text}]")]))
    });
    let cli = Cli::new();
    cli.file("plan.json", r#"{"params": {"p": {"type": "integer"}}, "tasks": [{"id": "a"}]}"#);
    for command in ["apply", "plan check", "run-all-ready --plan"] {
        let words: Vec<&str> =
            command.split(' ').chain(["plan.json", "--param", "p=1", "--param", "p=2"]).collect();
        let run = cli.run(&words);
        assert!(run.code != Some(0) && run.stderr.contains("parameter `p` is given twice"), "{run}");
    }
}

#[test]
fn names_of_options_are_given_once() {
    let cli = Cli::new();
    for (words, said) in [
        ("create x --context k=1 --context k=2", "context value `k` is given twice"),
        ("create x --metadata k=1 --metadata {\"k\":2}", "metadata value `k` is given twice"),
        ("create x --set priority=\"low\" --priority high", "field `priority` is given twice"),
        ("add-tool-call x --tool log --set retry=1 --set retry=2", "field `retry` is given twice"),
    ] {
        let run = cli.run(&words.split(' ').collect::<Vec<_>>());
        assert!(run.code == Some(2) && run.stderr.contains(said), "{run}");
    }
}

#[test]
fn output_of_programs_is_read_strictly() {
    assert_strict("exec with parse: json", |cli, id, text| {
        cli.file("out", text);
        error_of_call(cli, id, &json!({"exec": {"argv": ["cat", "out"], "parse": "json"}}))
    });
    assert_strict("a tool of the configuration", |cli, id, text| {
        cli.file("out", text);
        let directory = cli.path(".config/taskpawl");
        std::fs::create_dir_all(&directory).unwrap();
        let tool = "[tools.shows]\ndescription = \"x\"\nargv = [\"cat\", \"out\"]\nparse = \"json\"\n";
        std::fs::write(directory.join("config.toml"), tool).unwrap();
        error_of_call(cli, id, &json!({"shows": {}}))
    });
    assert_strict("tasks that a call emits", |cli, id, text| {
        cli.file("out", &format!(r#"{{"tasks":[{{"id":"{id}-new","context":{{"k":{text}}}}}]}}"#));
        let args = json!({"argv": ["cat", "out"], "parse": "json"});
        error_of_call(cli, id, &json!({"toolName": "exec", "emit": true, "args": args}))
    });
    assert_strict("fromjson", |cli, id, text| {
        let args = json!({"message": "${{ context.text | fromjson | tojson }}"});
        let plan =
            json!({"name": id, "tasks": [{"id": id, "context": {"text": text}, "call": {"log": args}}]});
        let file = format!("{id}.json");
        cli.file(&file, &plan.to_string());
        let run = cli.run(&["run-all-ready", "--plan", &file]);
        error_of(&run)
    });
}

#[test]
fn bodies_of_answers_are_read_strictly() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let bodies: Vec<String> =
        KEPT.iter().map(|text| (*text).to_owned()).chain(refused().map(|(text, _)| text)).collect();
    let server = thread::spawn(move || {
        for body in bodies {
            let mut connection = listener.accept().unwrap().0;
            let lines = BufReader::new(&connection).lines().map(Result::unwrap);
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let length = body.len();
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
            write!(connection, "{head} {length}\r\n\r\n{body}").unwrap();
        }
    });
    assert_strict("http_request", |cli, id, _| {
        let directory = cli.path(".config/taskpawl");
        std::fs::create_dir_all(&directory).unwrap();
        let hosts = "[tools.http_request]\nhosts = [\"127.0.0.1\"]\n";
        std::fs::write(directory.join("config.toml"), hosts).unwrap();
        error_of_call(cli, id, &json!({"http_request": {"url": url}}))
    });
    server.join().unwrap();
}

/// An MCP server with one tool, which returns the content of the file `out`.
const SERVER: &str = r#"answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id" ;;
    *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) answer '{"tools":[{"name":"show","description":"Shows.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
    *'"tools/call"'*) answer "{\"content\":[],\"structuredContent\":{\"k\":$(cat out)}}" ;;
  esac
done
"#;

#[test]
fn results_of_mcp_servers_are_read_strictly() {
    assert_strict("a result over MCP", |cli, id, text| {
        let script = cli.file("server.sh", SERVER);
        cli.file("out", text);
        let directory = cli.path(".config/taskpawl");
        std::fs::create_dir_all(&directory).unwrap();
        let server = format!("[mcpServers.s]\ncommand = \"sh\"\nargs = [{script:?}]\n");
        std::fs::write(directory.join("config.toml"), server).unwrap();
        error_of_call(cli, id, &json!({"s/show": {}}))
    });
}

#[test]
fn arguments_over_mcp_are_read_strictly() {
    let mut agent: Option<Agent> = None;
    assert_strict("an argument over MCP", |cli, id, text| {
        let agent = agent.get_or_insert_with(|| Agent::start(cli, &cli.path("work"), &[]));
        let plan = format!(r#"{{"tasks":[{{"id":"{id}","context":{{"k":{text}}}}}]}}"#);
        let answer =
            agent.ask_raw("tools/call", &format!(r#"{{"name":"plan_write","arguments":{{"plan":{plan}}}}}"#));
        if let Some(error) = answer.get("error") {
            assert_eq!(error["code"], -32602, "{answer}");
            return Some(error["message"].to_string());
        }
        assert_eq!(answer["result"]["structuredContent"]["created"], json!([id]), "{answer}");
        None
    });
}

#[test]
fn a_store_that_was_edited_is_read_strictly() {
    assert_strict("an edit of a JSON store", |cli, id, text| {
        let path = cli.path(&format!("{id}.json"));
        let store = format!("json:{}", path.to_str().unwrap());
        cli.run(&["create", id, "--id", id, "--context", "k=\"EDIT\"", "--store", &store]).ok();
        let before = std::fs::read_to_string(&path).unwrap();
        assert!(before.contains("\"EDIT\""), "{before}");
        let after = before.replacen("\"EDIT\"", text, 1);
        std::fs::write(&path, &after).unwrap();
        let error = error_of(&cli.run(&["list", "--store", &store]));
        // The refused file is unchanged.
        assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
        error
    });
}
