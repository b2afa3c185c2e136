//! MCP servers in the configuration.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::harness::{Cli, may_decide};

/// A minimal MCP server in shell. It has one tool, `greet`, and appends a line to `starts` at each start.
const SERVER: &str = r#"echo start >> starts
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id" ;;
    *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) answer '{"tools":[{"name":"greet","description":"Greets.","inputSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"annotations":{"readOnlyHint":true}}]}' ;;
    *'"tools/call"'*) answer '{"content":[{"type":"text","text":"hello"}]}' ;;
  esac
done
"#;

/// Writes the server script, and registers it in the user's own configuration.
fn with_server() -> Cli {
    let cli = Cli::new().with_programs();
    let script = cli.file("server.sh", SERVER);
    let server = json!({"mcpServers": {"hi": {"command": "sh", "args": [script]}}});
    fs::write(cli.path("others.json"), server.to_string()).unwrap();
    user_file(&cli, "[mcp]\nconfigs = [\"~/others.json\"]\n");
    cli
}

fn user_file(cli: &Cli, content: &str) {
    let directory = cli.path(".config/taskpawl");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("config.toml"), content).unwrap();
}

fn starts(cli: &Cli) -> usize {
    fs::read_to_string(cli.path("work/starts")).unwrap_or_default().lines().count()
}

#[test]
fn a_plan_calls_a_server_which_is_known_from_then_on() {
    let cli = with_server();
    cli.file(
        "plan.yaml",
        "tasks:\n  - {id: a, call: {hi/greet: {name: x}}}\n  - {id: b, call: {hi/greet: {name: y}}}\n",
    );
    let before = cli.run(&["plan", "check", "plan.yaml"]).ok();
    assert!(before.stderr.contains("are not known before it has run once"), "{before}");
    assert_eq!(starts(&cli), 0);
    cli.run(&["run-all-ready", "--plan", "plan.yaml"]).ok();
    // One start: the server that lists its tools also answers the call.
    assert_eq!(starts(&cli), 1);
    assert_eq!(cli.run(&["show", "a", "--json"]).ok().json()["data"]["result"], "hello");
    let after = cli.run(&["plan", "check", "plan.yaml"]).ok();
    assert_eq!(after.stderr, "");
    let wrong = cli.run_with(&["plan", "check", "-"], "tasks: [{id: a, call: {hi/greet: {nam: x}}}]");
    assert_eq!(wrong.code, Some(7), "{wrong}");
    let misspelt = cli.run_with(&["plan", "check", "-"], "tasks: [{id: c, call: {hi/gret: {}}}]").ok();
    assert!(misspelt.stderr.contains("did you mean `hi/greet`?"), "{misspelt}");
    assert_eq!(starts(&cli), 1);
}

#[test]
fn tools_are_listed_shown_and_tried() {
    let cli = with_server();
    let unknown = cli.run(&["tools", "show", "hi/greet"]);
    assert_eq!(unknown.code, Some(2), "{unknown}");
    let listed = cli.run(&["tools", "list", "--connect", "--json"]).ok().json();
    let tool =
        listed["data"].as_array().unwrap().iter().find(|tool| tool["name"] == "hi/greet").unwrap().clone();
    assert_eq!((&tool["source"]["type"], &tool["source"]["server"]), (&json!("server"), &json!("hi")));
    assert_eq!((&tool["hints"]["readOnly"], &tool["usable"]), (&json!(true), &json!(true)));
    let called = cli.run(&["tools", "call", "hi/greet", "--args", "{\"name\": \"x\"}"]).ok();
    assert_eq!(called.stdout, "hello\n");
    let nowhere = cli.run(&["tools", "call", "ho/greet"]);
    assert!(nowhere.stderr.contains("no MCP server `ho` is configured; did you mean `hi`?"), "{nowhere}");
}

#[test]
fn a_server_of_which_nothing_is_known_is_started_once() {
    let cli = with_server();
    let called = cli.run(&["tools", "call", "hi/greet", "--args", "{\"name\": \"x\"}"]).ok();
    assert_eq!((called.stdout.as_str(), starts(&cli)), ("hello\n", 1));

    let cli = with_server();
    cli.run(&["create", "greet", "--id", "a"]).ok();
    cli.run(&["add-tool-call", "a", "--tool", "hi/greet", "--args", "{\"name\": \"x\"}"]).ok();
    cli.run(&["run", "a"]).ok();
    assert_eq!(cli.run(&["show", "a", "--json"]).ok().json()["data"]["result"], "hello");
    assert_eq!(starts(&cli), 1);

    let cli = with_server();
    let misspelt = cli.run(&["tools", "call", "hi/gret"]);
    assert_eq!((misspelt.code, starts(&cli)), (Some(2), 1), "{misspelt}");
    assert!(
        misspelt.stderr.contains("MCP server `hi` has no such tool; did you mean `hi/greet`?"),
        "{misspelt}"
    );

    let cli = with_server();
    let wrong = cli.run(&["tools", "call", "hi/greet", "--args", "{\"nam\": \"x\"}"]);
    assert_eq!((wrong.code, starts(&cli)), (Some(1), 1), "{wrong}");
    assert!(wrong.stderr.contains("nam"), "{wrong}");

    let cli = Cli::new().with_programs();
    user_file(
        &cli,
        "[mcpServers.broken]\ncommand = \"sh\"\nargs = [\"-c\", \"echo no database >&2; exit 3\"]\n",
    );
    let broken = cli.run(&["tools", "call", "broken/a"]);
    assert_eq!(broken.code, Some(2), "{broken}");
    assert!(broken.stderr.contains("could not be started when it was tried last: it ended with exit code 3; its last words: no database"), "{broken}");
}

#[test]
fn a_place_that_is_not_there_is_named_when_a_server_cannot_be_started() {
    let cli = Cli::new().with_programs();
    let config = "[mcpServers.s]\ncommand = \"sh\"\nargs = [\"-c\", \"mkdir ~/cache\"]\nsandbox = { write = [\"~/cache\"] }\n";
    user_file(&cli, config);
    let failed = cli.run(&["tools", "list", "--connect"]);
    assert!(
        failed.stderr.contains("its `sandbox` names `[HOME]/cache`, not there yet: make it first"),
        "{failed}"
    );
}

#[test]
fn servers_of_the_project_are_held_until_it_is_trusted() {
    let cli = Cli::new().with_programs();
    let script = cli.file("server.sh", SERVER);
    cli.file(".mcp.json", &json!({"mcpServers": {"hi": {"command": "sh", "args": [script]}}}).to_string());
    let refused = cli.run(&["tools", "call", "hi/greet"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("not trusted"), "{refused}");
    assert_eq!(starts(&cli), 0);
}

#[test]
fn what_is_wrong_with_a_server_is_said() {
    for (content, words) in [
        ("[mcpServers.x]\n", "neither `command` nor `url`"),
        ("[mcpServers.x]\ncommand = \"a\"\nsandbox = { net = true }\n", "only your own file"),
        ("[mcp]\nconfigs = \"a\"\n", "expected a list such as"),
    ] {
        let cli = Cli::new();
        cli.file("taskpawl.toml", content);
        let refused = cli.run(&["tools", "list"]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(words), "{refused}");
    }
}

#[test]
fn what_programs_can_break_costs_the_servers_of_that_file_alone() {
    let cli = with_server();
    for content in ["{", "", "\u{0}", "[1", "{\"mcpServers\": {\"x\": {\"command\": \"sh\"}}"] {
        cli.file(".mcp.json", content);
        for args in [&["tools", "list"][..], &["run-all-ready"], &["apply", "-"]] {
            let run = cli.run_with(args, "tasks: [{id: a, call: {log: {message: hi}}}]").ok();
            assert!(run.stderr.contains("warning: `[HOME]/work/.mcp.json` is no JSON: "), "{run}");
            assert!(run.stderr.contains("; its servers are left out\n"), "{run}");
        }
    }
    fs::remove_file(cli.path("work/.mcp.json")).unwrap();
    for make in ["mkfifo", "mkdir"] {
        std::process::Command::new(make).arg(cli.path("work/.mcp.json")).status().unwrap();
        let run = cli.run(&["tools", "list"]).ok();
        let what = if make == "mkdir" { "a directory" } else { "a pipe" };
        let said = format!(
            "`[HOME]/work/.mcp.json`: it is {what}, not a file; replace it with a file, or remove it; its servers are left out"
        );
        assert!(run.stderr.contains(&said), "{run}");
        std::process::Command::new("rm").arg("-r").arg(cli.path("work/.mcp.json")).status().unwrap();
    }
}

#[test]
fn a_file_of_the_user_that_cannot_be_read_is_an_error() {
    let cli = with_server();
    fs::write(cli.path("others.json"), "{").unwrap();
    let refused = cli.run(&["tools", "list"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("`[HOME]/others.json` is no JSON"), "{refused}");
}

/// Programs of a plan may write to the project, so a link to a file in it is not trusted like the user's own file.
#[test]
fn a_file_of_the_user_that_leads_into_the_project_needs_trust() {
    let cli = with_server();
    fs::rename(cli.path("others.json"), cli.path("work/servers.json")).unwrap();
    std::os::unix::fs::symlink("work/servers.json", cli.path("others.json")).unwrap();
    let refused = cli.run(&["tools", "call", "hi/greet", "--args", "{\"name\": \"x\"}"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("not trusted"), "{refused}");
    assert_eq!(starts(&cli), 0);
}

#[test]
fn a_trusted_project_has_its_servers_until_a_file_changes() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs().at_a_terminal();
    let script = cli.file("server.sh", SERVER);
    let server = json!({"mcpServers": {"hi": {"command": "sh", "args": [&script]}}}).to_string();
    cli.file(".mcp.json", &server);
    let config = format!("[mcpServers.ho]\ncommand = \"sh\"\nargs = [{script:?}]\n");
    cli.file("taskpawl.toml", &config);
    cli.file(
        "plan.yaml",
        "tasks:\n  - {id: a, call: {hi/greet: {name: x}}}\n  - {id: b, call: {ho/greet: {name: y}}}\n",
    );
    let held = cli.run(&["tools", "list", "--connect"]);
    assert!(!held.stdout.contains("/greet"), "{held}");
    assert_eq!(starts(&cli), 0);
    let asked = cli.run_with(&["trust"], "yes\n").ok();
    assert!(asked.stderr.contains("mcpServers.ho") && asked.stderr.contains("\"hi\""), "{asked}");
    cli.run(&["run-all-ready", "--plan", "plan.yaml", "--quiet"]).ok();
    for task in ["a", "b"] {
        assert_eq!(cli.run(&["show", task, "--json"]).ok().json()["data"]["result"], "hello", "{task}");
    }
    let began = starts(&cli);
    // Only `.mcp.json` changed, so the other file stays trusted.
    cli.file(".mcp.json", &format!("{server}\n"));
    let refused = cli.run(&["tools", "call", "hi/greet", "--args", "{\"name\": \"x\"}"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("not trusted"), "{refused}");
    assert_eq!(starts(&cli), began);
    let called = cli.run(&["tools", "call", "ho/greet", "--args", "{\"name\": \"x\"}"]).ok();
    assert_eq!(called.stdout, "hello\n");
    cli.run(&["trust", "--remove"]).ok();
    assert_eq!(cli.run(&["tools", "call", "ho/greet"]).code, Some(2));
}

#[test]
fn each_reason_why_a_tool_of_a_server_is_not_there_has_its_own_sentence() {
    let cli = with_server();
    let servers = json!({"mcpServers": {
        "hi": {"command": "sh", "args": [cli.path("work/server.sh")], "excludeTools": ["shout"]},
        "broken": {"command": "sh", "args": ["-c", "echo no database >&2; exit 3"]},
        "late": {"command": "sh", "args": [cli.path("work/server.sh")]},
    }});
    fs::write(cli.path("others.json"), servers.to_string()).unwrap();
    cli.file(".mcp.json", &json!({"mcpServers": {"own": {"command": "sh"}}}).to_string());
    user_file(&cli, "[mcp]\nconfigs = [\"~/others.json\"]\n");
    let tools = ["ho/greet", "broken/a", "hi/gret", "hi/shout", "own/a", "late/greet"];
    for (number, tool) in tools.into_iter().enumerate() {
        cli.run(&["create", tool, "--id", &format!("t{number}")]).ok();
        cli.run(&["add-tool-call", &format!("t{number}"), "--tool", tool, "--args", "{\"name\": \"x\"}"])
            .ok();
    }
    // The error of a server is known only from its last start.
    for tool in ["hi/greet", "broken/a"] {
        cli.run(&["tools", "call", tool, "--args", "{\"name\": \"x\"}"]);
    }
    insta::assert_snapshot!(cli.session(&[
        &["explain", "t0"],
        &["explain", "t1"],
        &["explain", "t2"],
        &["explain", "t3"],
        &["explain", "t4"],
        &["explain", "t5"],
        &["explain", "t2", "--json"],
    ]));
    let ready = cli.run(&["explain", "--ready"]).ok().stdout;
    assert!(ready.contains("needs the tool `hi/gret`: MCP server `hi` has no such tool"), "{ready}");
}

#[test]
fn a_server_that_downloads_itself_says_how_to_go_on() {
    let cli = Cli::new().with_programs();
    let npx =
        cli.file("npx", "#!/bin/sh\necho \"no registry, offline is $npm_config_offline\" >&2\nexit 1\n");
    fs::set_permissions(&npx, fs::Permissions::from_mode(0o755)).unwrap();
    user_file(
        &cli,
        &format!("[mcpServers.every]\ncommand = {npx:?}\nargs = [\"-y\", \"@example/server\"]\n"),
    );
    let refused = cli.run(&["tools", "call", "every/echo"]);
    assert_ne!(refused.code, Some(0), "{refused}");
    for words in
        ["no registry, offline is true", "`npm install --prefix DIRECTORY @example/server`", "net = true"]
    {
        assert!(refused.stderr.contains(words), "{refused}");
    }
}

#[test]
fn a_server_is_in_the_sandbox_also_when_it_is_only_asked_for_its_tools() {
    let cli = Cli::new().with_programs();
    // The script writes to `outside`, which programs must not write to, and to `starts`, which they may.
    let script = cli.file("server.sh", &format!("echo x > {:?}\n{SERVER}", cli.path("outside")));
    user_file(&cli, &format!("[mcpServers.hi]\ncommand = \"sh\"\nargs = [{script:?}]\n"));
    cli.run(&["tools", "list", "--connect"]).ok();
    assert_eq!(starts(&cli), 1);
    assert!(!cli.path("outside").exists());
    // Positive control: without the sandbox it can write there.
    cli.run(&["tools", "call", "hi/greet", "--args", "{\"name\": \"x\"}", "--sandbox", "off"]).ok();
    assert!(cli.path("outside").exists());
}

/// The same server with tools that fail in several ways. `config` follows its entry in the configuration.
fn with_bad_server(config: &str) -> Cli {
    let cli = Cli::new().with_programs().with("KEY_VALUE", "canary-of-the-key");
    let names = ["die", "flood", "deny", "mute", "hang"];
    let tools =
        names.map(|name| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}},"#)).concat();
    let greet = r#"*'"tools/call"'*) answer '{"content":[{"type":"text","text":"hello"}]}' ;;"#;
    let calls = r#"*'"tools/call"'*) case $line in
        *'"name":"die"'*) echo "starting" >&2; echo "cannot go on with $TOKEN" >&2; exit 7 ;;
        *'"name":"flood"'*) head -c 9000000 /dev/zero | tr '\0' x; echo ;;
        *'"name":"deny"'*) text=$( { echo x > "$HOME/outside"; } 2>&1 ); answer "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"$text\"}]}" ;;
        *'"name":"mute"'*) { echo x > "$HOME/outside"; }; answer '{"isError":true,"content":[{"type":"text","text":"it did not work"}]}' ;;
        *'"name":"hang"'*) ;;
        *) answer '{"content":[{"type":"text","text":"hello"}]}' ;;
      esac ;;"#;
    assert!(SERVER.contains(greet));
    let script = SERVER.replace(greet, calls).replace("{\"tools\":[", &format!("{{\"tools\":[{tools}"));
    let script = cli.file("server.sh", &script);
    let secret = "[secrets.KEY]\nenv = \"KEY_VALUE\"\n";
    let server = format!(
        "[mcpServers.hi]\ncommand = \"sh\"\nargs = [\"{}\"]\nenv = {{ TOKEN = \"${{secret:KEY}}\" }}\n",
        script.display()
    );
    user_file(&cli, &format!("{secret}{server}{config}"));
    cli
}

/// Creates a task that calls a tool without arguments, and runs it.
fn run_call(cli: &Cli, tool: &str) -> crate::harness::Run {
    cli.run(&["create", tool, "--id", tool]).ok();
    cli.run(&["add-tool-call", tool, "--tool", &format!("hi/{tool}")]).ok();
    cli.run(&["run", tool])
}

#[test]
fn what_a_server_said_last_before_it_died_is_kept_and_told() {
    let cli = with_bad_server("");
    let words = "MCP server `hi` was lost during the call, and the progress of the call is unknown: it ended with exit code 7; \
                 its last words: starting | cannot go on with [redacted:KEY]";
    let run = run_call(&cli, "die");
    assert_eq!(run.code, Some(3), "{run}");
    assert!(format!("{run}").contains(words), "{run}");
    let shown = cli.run(&["show", "die", "--json"]).ok().json()["data"].clone();
    let call = &shown["metadata"]["toolCalls"][0];
    assert_eq!((&call["status"], &call["error"]), (&json!("interrupted"), &json!(words)), "{shown}");
    assert_eq!(shown["blockedReason"]["type"], "interrupted", "{shown}");
    for args in [&["show", "die"][..], &["history", "die", "--json"], &["explain", "die"]] {
        let told = cli.run(args).ok();
        assert!(told.stdout.contains(words), "{told}");
    }
}

#[test]
fn an_answer_that_is_too_long_is_why_its_call_is_lost() {
    let cli = with_bad_server("");
    let run = run_call(&cli, "flood");
    assert_eq!(run.code, Some(3), "{run}");
    let shown = cli.run(&["show", "flood", "--json"]).ok().json()["data"].clone();
    let error = shown["metadata"]["toolCalls"][0]["error"].as_str().unwrap();
    assert!(error.ends_with("it sent a message of more than 8 MiB"), "{error}");
    assert!(format!("{run}").contains("it sent a message of more than 8 MiB"), "{run}");
}

#[test]
fn a_call_that_failed_by_the_sandbox_of_its_server_says_so() {
    let cli = with_bad_server("");
    for tool in ["deny", "mute"] {
        run_call(&cli, tool);
        let shown = cli.run(&["show", tool, "--json"]).ok().json()["data"].clone();
        let error = shown["metadata"]["toolCalls"][0]["error"].as_str().unwrap();
        for words in [
            "`--allow-write ",
            "for this server alone `sandbox` in `[mcpServers.hi]` of your own `config.toml` does it",
        ] {
            assert!(error.contains(words), "{tool}: {error}");
        }
    }
    assert!(!cli.path("outside").exists());
    // Positive control: without the sandbox, the failure is not attributed to it.
    let off = cli.run(&["tools", "call", "hi/mute", "--sandbox", "off"]);
    assert!(off.stderr.contains("it did not work") && !off.stderr.contains("--allow-write"), "{off}");
}

/// Like a program of a call, a server could create files that other programs obey later.
#[test]
fn protected_files_that_a_server_makes_are_named() {
    let cli = Cli::new().with_programs();
    let answer = r#"mkdir -p .vscode plain; answer '{"content":[],"structuredContent":{"n":1}}'"#;
    let server = SERVER.replace(r#"answer '{"content":[{"type":"text","text":"hello"}]}'"#, answer);
    assert!(server.contains("mkdir -p .vscode"));
    let script = cli.file("server.sh", &server);
    user_file(&cli, &format!("[mcpServers.hi]\ncommand = \"sh\"\nargs = [{script:?}]\n"));
    let plan = json!({"tasks": [
        {"id": "a", "call": {"hi/greet": {"name": "x"}}},
        {"id": "b", "call": {"hi/greet": {"name": "x"}}, "needs": ["a"]},
    ]});
    cli.file("plan.json", &plan.to_string());
    let run = cli.run(&["run-all-ready", "--plan", "plan.json", "--format", "ndjson"]).ok();
    assert!(run.stdout.contains("`.vscode`: created during the call"), "{run}");
    let result = |task: &str| {
        let shown = cli.run(&["show", task, "--json"]).ok().json();
        shown["data"]["metadata"]["toolCalls"][0]["result"].clone()
    };
    assert_eq!(result("a"), json!({"n": 1, "sandbox": {"created": [".vscode"]}}));
    assert_eq!(result("b"), json!({"n": 1}), "it is told once");
}

#[test]
fn a_program_that_the_sandbox_hides_is_said_to_be_hidden() {
    let cli = Cli::new().with_programs();
    fs::create_dir_all(cli.path(".ssh")).unwrap();
    let program = cli.path(".ssh/server");
    fs::write(&program, format!("#!/bin/sh\n{SERVER}")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    user_file(&cli, &format!("[mcpServers.hi]\ncommand = {program:?}\n"));
    let failed = cli.run(&["tools", "list", "--connect"]);
    for words in ["is hidden in the sandbox", "--allow-read", "`[mcpServers.hi]`"] {
        assert!(failed.stderr.contains(words), "{failed}");
    }
    user_file(&cli, &format!("[mcpServers.hi]\ncommand = \"sh\"\nargs = [{program:?}]\n"));
    let failed = cli.run(&["tools", "list", "--connect"]);
    assert!(failed.stderr.contains("is hidden in the sandbox"), "{failed}");
}

#[test]
fn a_call_that_is_over_says_that_it_was_the_timeout_of_the_server() {
    let cli = with_bad_server("timeout = 400\n");
    let failed = cli.run(&["tools", "call", "hi/hang"]);
    assert_eq!(failed.code, Some(1), "{failed}");
    assert!(failed.stderr.contains("the `timeout` of MCP server `hi` is 400ms"), "{failed}");
}

#[test]
fn a_server_of_a_run_has_no_access_to_the_plan_of_one_call() {
    let cli = with_server();
    cli.run(&["tools", "list", "--connect"]).ok();
    let plan = |call: &str| format!("tasks: [{{id: a, calls: [{{{call}, planAccess: read}}]}}]");
    for call in [
        "toolName: hi/greet, args: {name: x}",
        "toolName: read_file, args: {path: x}",
        "toolName: log, args: {message: x}",
    ] {
        let refused = cli.run_with(&["apply", "-"], &plan(call));
        assert_eq!(refused.code, Some(7), "{refused}");
        assert!(
            refused.stderr.contains("planAccess") && refused.stderr.contains("`shell`, `exec`"),
            "{refused}"
        );
    }
    cli.run_with(&["apply", "-"], &plan("toolName: exec, args: {argv: [date]}")).ok();
}

#[test]
fn a_server_that_is_switched_off_is_said_to_be() {
    let cli = with_bad_server("disabled = true\n");
    cli.run(&["create", "a", "--id", "a"]).ok();
    let added = cli.run(&["add-tool-call", "a", "--tool", "hi/greet", "--args", "{\"name\": \"x\"}"]).ok();
    let words = "config.toml` switches MCP server `hi` off";
    assert!(added.stderr.contains(words), "{added}");
    let explained = cli.run(&["explain", "a"]).ok();
    assert!(explained.stdout.contains(words), "{explained}");
}

#[test]
fn a_server_that_lets_wait_is_named_while_it_does() {
    let cli = Cli::new().with_programs();
    // A server that exits without an answer is restarted once, so only the first start waits.
    let script = "[ -e begun ] || { touch begun; sleep 6; }";
    user_file(&cli, &format!("[mcpServers.slow]\ncommand = \"sh\"\nargs = [\"-c\", \"{script}\"]\n"));
    let run = cli.run(&["tools", "list", "--connect"]);
    let said = "waiting for MCP servers (`slow`): each has 2 minutes until it is ready\n";
    assert!(run.stderr.starts_with(said), "{run}");
}
