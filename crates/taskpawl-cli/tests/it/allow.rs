//! Tests of remembered grants.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use serde_json::{Value, json};

use crate::harness::{Cli, may_decide};

/// Makes a plan whose only task runs a command.
fn plan(cli: &Cli, name: &str, command: &str) {
    let plan = json!({"name": name, "tasks": [{"id": name, "run": command}]});
    cli.file(&format!("{name}.json"), &plan.to_string());
}

/// Runs a plan anew, and returns the call of its task.
fn call_of(cli: &Cli, name: &str) -> Value {
    cli.run(&["run-all-ready", "--plan", &format!("{name}.json"), "--fresh", "--quiet"]);
    let shown = cli.run(&["show", name, "--json"]).ok().json();
    shown["data"]["metadata"]["toolCalls"][0].clone()
}

/// Returns the remembered grants as texts.
fn listed(cli: &Cli) -> Vec<String> {
    let data = cli.run(&["allow", "--list", "--json"]).ok().json()["data"].clone();
    let text = |entry: &Value| entry["grant"].as_str().unwrap().to_owned();
    data.as_array().unwrap().iter().map(text).collect()
}

fn has_own_network(call: &Value) -> bool {
    let has = call["result"]["sandbox"]["network"] == "loopback";
    if !has {
        taskpawl_fuzz::skip("network namespaces", "remembered grants", call["result"]["sandbox"].to_string());
    }
    has
}

#[test]
fn only_a_person_at_a_terminal_grants() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new();
    let refused = cli.run(&["allow", "--port", "5432"]);
    assert_eq!(refused.code, Some(7), "{refused}");
    assert!(refused.stderr.contains("`allow` is for a person at a terminal"), "{refused}");
    let by_agent = Cli::new().at_a_terminal().with("CLAUDECODE", "1");
    assert_eq!(by_agent.run(&["allow", "--port", "5432"]).code, Some(7));
    cli.by_person(&["allow", "--host", "registry.test", "--port", "5432", "--env", "STAGE", "--all-plans"])
        .ok();
    assert_eq!(listed(&cli), ["host:registry.test", "port:5432", "env:STAGE"]);
    let file = cli.path(".local/state/taskpawl/grants.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    cli.by_person(&["allow", "--remove", "--port", "5432"]).ok();
    assert_eq!(listed(&cli), ["host:registry.test", "env:STAGE"]);
    for (words, said) in [
        (["allow", "--port", "2375"], "whose clients can do everything"),
        (["allow", "--host", "*.org"], "a whole top-level domain"),
        (["allow", "--env", "A=B"], "is not the name of a variable"),
    ] {
        let refused = cli.by_person(&words);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stdout.contains(said) || refused.stderr.contains(said), "{refused}");
    }
}

#[test]
fn a_grant_holds_for_the_plan_that_it_was_learned_from() {
    if !may_decide() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let cli = Cli::new().with_programs();
    let command = format!("bash -c 'echo > /dev/tcp/127.0.0.1/{port}'");
    plan(&cli, "other", &command);
    plan(&cli, "first", &command);
    call_of(&cli, "other");
    let refused = call_of(&cli, "first");
    if !has_own_network(&refused) {
        return;
    }
    assert_eq!(refused["result"]["sandbox"]["refused"], json!([{"kind": "port", "port": port}]));
    let asked = cli.run(&["allow", "--json"]).ok().json()["data"]["asked"].clone();
    assert_eq!(asked[0]["grant"], format!("port:{port}"), "{asked}");
    assert_eq!((&asked[0]["tasks"], &asked[0]["plans"]), (&json!(["first"]), &json!(["first"])));

    cli.by_person(&["allow", "--port", &port.to_string()]).ok();
    let granted = call_of(&cli, "first");
    assert_eq!(granted["status"], "succeeded", "{granted}");
    assert_eq!(granted["result"]["sandbox"]["granted"], json!([format!("port:{port}")]));
    assert_eq!(call_of(&cli, "other")["status"], "failed");
    let used = cli.run(&["allow", "--list", "--json"]).ok().json()["data"][0].clone();
    assert!(used["plan"] == "first" && used["lastUsed"].is_string(), "{used}");

    cli.by_person(&["allow", "--port", &port.to_string(), "--all-plans"]).ok();
    assert_eq!(call_of(&cli, "other")["status"], "succeeded");
    cli.by_person(&["allow", "--remove", "--port", &port.to_string()]).ok();
    assert_eq!(call_of(&cli, "first")["status"], "failed");
}

#[test]
fn no_advice_repeats_a_remembered_grant() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs();
    plan(&cli, "first", "getent hosts registry.test");
    if !has_own_network(&call_of(&cli, "first")) {
        return;
    }
    let outputs = || {
        let prime = cli.run(&["prime"]).ok().stdout;
        [prime, cli.run(&["status"]).ok().stdout, cli.run(&["run-all-ready"]).stdout]
    };
    // The error of the failed call keeps its hint: it tells what that call lacked.
    let is_suggested = |text: &String| {
        text.lines()
            .any(|line| line.contains("--retry-failed") && line.contains("--allow-host registry.test"))
    };
    let before = outputs();
    assert!(before.iter().all(is_suggested), "{before:?}");
    cli.by_person(&["allow", "--host", "registry.test"]).ok();
    let after = outputs();
    assert!(!after.iter().any(is_suggested), "{after:?}");
}

#[test]
fn calls_of_models_have_a_grant_only_if_it_says_so() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs().with("STAGE", "test");
    cli.policy("[origins]\nagent = 'sandboxed'\n");
    let child = r#"{"tasks": [{"id": "child", "run": "echo got-$STAGE"}]}"#;
    let exec = json!({"parse": "json", "argv": ["echo", child]});
    let plan = json!({"name": "p", "tasks": [
        {"id": "p", "run": "echo got-$STAGE"},
        {"id": "grow", "calls": [{"emit": true, "exec": exec}]},
    ]});
    cli.file("p.json", &plan.to_string());
    cli.by_person(&["allow", "--env", "STAGE", "--all-plans"]).ok();
    let output = |task: &str| {
        let shown = cli.run(&["show", task, "--json"]).ok().json();
        shown["data"]["metadata"]["toolCalls"][0]["result"]["stdout"].clone()
    };
    cli.run(&["run-all-ready", "--plan", "p.json", "--quiet"]).ok();
    assert_eq!((output("p"), output("child")), (json!("got-test\n"), json!("got-\n")));
    cli.by_person(&["allow", "--env", "STAGE", "--all-plans", "--agents"]).ok();
    cli.run(&["reopen", "child"]).ok();
    cli.run(&["run-all-ready", "--quiet"]).ok();
    assert_eq!(output("child"), "got-test\n");
}

#[test]
fn the_facts_of_the_project_come_first_and_all_else_is_typed_out() {
    if !may_decide() {
        return;
    }
    // The real clock, because the times of files are real.
    let cli = Cli::new().with_programs().at_a_terminal().with("TASKPAWL_TEST_NOW", "");
    cli.file("yarn.lock", "resolved \"https://packages.test/a.tgz\"\n");
    plan(&cli, "install", "getent hosts packages.test || getent hosts evil.test");
    // The times of files have whole seconds here.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    if !has_own_network(&call_of(&cli, "install")) {
        return;
    }
    let shown = cli.run_with(&["allow"], "\n\n").ok();
    let text = format!("{}{}", shown.stdout, shown.stderr);
    assert!(text.contains("1  host:packages.test  in yarn.lock line 1; task `install`"), "{text}");
    assert!(text.contains("asked for by a program alone:\n     host:evil.test  task `install`"), "{text}");
    assert_eq!(listed(&cli), [""; 0]);
    cli.run_with(&["allow"], "1\nall 2 *\n").ok();
    assert_eq!(listed(&cli), ["host:packages.test"]);
    cli.run_with(&["allow"], "evil.test\n").ok();
    assert_eq!(listed(&cli), ["host:packages.test", "host:evil.test"]);
}

#[test]
fn a_project_proposes_and_opens_nothing() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs().at_a_terminal();
    cli.file("taskpawl.toml", "[sandbox]\nwants = [\"host:packages.test\", \"port:5432\"]\n");
    plan(&cli, "install", "true");
    let run = cli.run(&["run-all-ready", "--plan", "install.json"]).ok();
    assert!(run.stderr.contains("`taskpawl allow --proposed` asks about it"), "{run}");
    assert_eq!(call_of(&cli, "install")["result"]["sandbox"].get("granted"), None);
    cli.run_with(&["allow", "--proposed"], "n\nyes\n").ok();
    assert_eq!(listed(&cli), ["port:5432"]);
    for want in ["net", "off", "host:*.test", "port:2375", "read:/etc"] {
        cli.file("taskpawl.toml", &format!("[sandbox]\nwants = [\"{want}\"]\n"));
        assert_eq!(cli.run(&["create", "x"]).code, Some(2), "{want}");
    }
}

#[test]
fn a_policy_keeps_remembered_grants_from_runs() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs();
    plan(&cli, "a", "true");
    cli.by_person(&["allow", "--port", "5432", "--all-plans"]).ok();
    let run = |policy: &str| {
        cli.policy(policy);
        cli.run(&["run-all-ready", "--plan", "a.json"])
    };
    assert!(run("").ok().stderr.contains("remembered grants: port:5432 (all plans)"));
    let socket = cli.path("agent.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    cli.policy("[powers]\nsockets = 'never'\n");
    let never = cli.by_person(&["allow", "--socket", socket.to_str().unwrap(), "--all-plans"]);
    assert_eq!(never.code, Some(7), "{never}");
    for policy in ["[powers]\nremembered = 'never'\n", "[powers]\nports = 'never'\n"] {
        assert!(!run(policy).ok().stderr.contains("remembered grants"));
        assert_eq!(cli.by_person(&["allow", "--port", "5433", "--all-plans"]).code, Some(7));
    }
    assert_eq!(run("[powers]\nremembered = 'ask'\n").code, Some(7));
}

#[test]
fn sockets_variables_and_addresses_are_learned_from_a_failed_call() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs().with("DEPLOY_STAGE", "test");
    let socket = cli.path("agent.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    let connect = "import os, socket, sys\np = sys.argv[1]\ntry:\n  socket.socket(socket.AF_UNIX).connect(p)\n\
                   except OSError as e: sys.exit(f'dial unix {p}: {e}')\n";
    cli.file("connect.py", connect);
    plan(&cli, "socket", &format!("python3 connect.py {}", socket.display()));
    plan(&cli, "variable", "set -u; echo $DEPLOY_STAGE");
    plan(
        &cli,
        "address",
        "echo 'connect to 203.0.113.5 port 443 failed: Network is unreachable' >&2; exit 1",
    );
    let asked = |name: &str| {
        let refused = call_of(&cli, name)["result"]["sandbox"]["refused"].clone();
        (refused, cli.run(&["allow", "--json"]).ok().json()["data"].clone())
    };
    let (refused, shown) = asked("variable");
    assert_eq!(refused, json!([{"kind": "variable", "name": "DEPLOY_STAGE"}]));
    assert_eq!(
        (&shown["asked"][0]["grant"], &shown["asked"][0]["calls"]),
        (&json!("env:DEPLOY_STAGE"), &json!(1))
    );
    let (refused, shown) = asked("address");
    assert_eq!(refused, json!([{"kind": "address", "address": "203.0.113.5", "port": 443}]));
    assert_eq!((&shown["asked"], &shown["addresses"][0]["address"]), (&json!([]), &json!("203.0.113.5:443")));
    let (refused, shown) = asked("socket");
    if call_of(&cli, "socket")["result"]["sandbox"]["isolation"].is_string() {
        return taskpawl_fuzz::skip("mount namespaces", "granted sockets", "level B or lower".to_owned());
    }
    assert_eq!(refused, json!([{"kind": "socket", "path": "[HOME]/agent.sock"}]));
    assert_eq!(shown["asked"][0]["grant"], "socket:[HOME]/agent.sock");
    // Granted places are reached.
    cli.by_person(&["allow", "--socket", socket.to_str().unwrap(), "--env", "DEPLOY_STAGE", "--all-plans"])
        .ok();
    assert_eq!(call_of(&cli, "socket")["status"], "succeeded");
    assert_eq!(call_of(&cli, "variable")["status"], "succeeded");
    let file = cli.by_person(&["allow", "--socket", "connect.py"]);
    assert_eq!(file.code, Some(2), "{file}");
}
