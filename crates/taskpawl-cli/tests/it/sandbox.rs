//! Tests of the restrictions on programs, from flags and files to their effect.

mod home;

use std::fs;

use serde_json::Value;
use taskpawl::tools::OwnListener;

use crate::explain::paste;
use crate::harness::{Cli, Run, may_decide};

/// Runs a command as the only task of a plan, and returns its stored call. The command runs twice, with events and
/// with a store, and must end alike.
fn call(cli: &Cli, command: &str, flags: &[&str]) -> Value {
    let plan = serde_json::json!({"tasks": [{"id": "a", "run": command}]}).to_string();
    cli.file("plan.json", &plan);
    let all = [&["--store", ":memory:", "run-all-ready", "--plan", "plan.json", "--format", "ndjson"], flags]
        .concat();
    let run = cli.run(&all);
    let (second, call) = kept_call(cli, flags);
    assert_eq!(run.code, second.code, "{run}\n{second}");
    call
}

/// Like `call`, but runs the command only once, because a second run would find its changes.
fn call_once(cli: &Cli, command: &str) -> Value {
    cli.file("plan.json", &serde_json::json!({"tasks": [{"id": "a", "run": command}]}).to_string());
    kept_call(cli, &[]).1
}

fn kept_call(cli: &Cli, flags: &[&str]) -> (Run, Value) {
    let store = cli.path("one.db");
    // A fresh store each time: in the old one the task has ended and would not run again.
    for ending in ["", "-wal", "-shm", ".lock"] {
        let _ = fs::remove_file(cli.path(&format!("one.db{ending}")));
    }
    let store = store.to_str().unwrap().to_owned();
    let kept = [&["--store", &store, "run-all-ready", "--plan", "plan.json", "--quiet"], flags].concat();
    let run = cli.run(&kept);
    let shown = cli.run(&["--store", &store, "show", "a", "--json"]).ok().json();
    (run, shown["data"]["metadata"]["toolCalls"][0].clone())
}

fn text<'a>(call: &'a Value, field: &str) -> &'a str {
    call["result"][field].as_str().unwrap_or_else(|| panic!("{call}"))
}

fn error(call: &Value) -> &str {
    call["error"].as_str().unwrap_or_else(|| panic!("it did not fail: {call}"))
}

/// Returns true if hidden and protected files can be covered on this machine. If not, every result reports the gap.
fn has_mounts(call: &Value) -> bool {
    let gaps = call["result"]["sandbox"]["gaps"].to_string();
    let lacks = ["not hidden", "not read-only", "no mount namespace"].iter().any(|gap| gaps.contains(gap));
    if lacks {
        taskpawl_fuzz::skip("mounts", "hidden and protected files", gaps);
    }
    !lacks
}

#[test]
fn programs_write_to_the_project_and_a_directory_of_their_own() {
    let cli = Cli::new().with_programs();
    let outside = cli.path("outside");
    fs::create_dir(&outside).unwrap();
    let command =
        format!("echo x > inside && echo y > $TMPDIR/y && echo $TMPDIR && echo z > {}/z", outside.display());
    let denied = call(&cli, &command, &[]);
    assert!(cli.path("work/inside").exists() && !outside.join("z").exists());
    assert!(error(&denied).contains("`--allow-write [HOME]/outside` makes"), "{denied}");
    assert_eq!(denied["result"]["sandbox"]["level"], "standard");
    let temporary = text(&denied, "stdout").trim();
    assert!(temporary.contains("/taskpawl-") && !fs::exists(temporary).unwrap(), "{temporary}");

    let allowed = call(&cli, &command, &["--allow-write", "../outside"]);
    assert_eq!(allowed["status"], "succeeded", "{allowed}");
    assert!(outside.join("z").exists());
}

/// Runs a plan with one command and returns the command that is suggested for running the failed task again.
fn suggested(cli: &Cli, command: &str) -> String {
    let plan = serde_json::json!({"name": "p", "tasks": [{"id": "a", "run": command}]});
    cli.file("p.json", &plan.to_string());
    let run = cli.run(&["run-all-ready", "p.json", "--json"]);
    assert_eq!(run.code, Some(1), "{run}");
    let json = run.json();
    let actions = json["data"]["nextActions"].as_array().unwrap().clone();
    let digest = cli.run(&["--json"]).ok().json();
    let again =
        |action: &Value| action.as_str().filter(|line| line.contains("--retry-failed")).map(str::to_owned);
    let found = actions.iter().find_map(again).unwrap();
    // The status without a command suggests the same.
    let has_grant = |line: &str| line.contains("--allow");
    assert_eq!(has_grant(&digest["data"]["nextActions"].to_string()), has_grant(&found), "{digest}");
    found
}

#[test]
fn the_suggested_command_grants_what_the_failed_call_needed() {
    let cli = Cli::new().with_programs();
    let outside = cli.path("out side");
    fs::create_dir(&outside).unwrap();
    let command = suggested(&cli, &format!("echo z > '{}/z'", outside.display()));
    assert!(command.contains("--allow-write "), "{command}");
    let again = paste(&cli, &command.replace("[HOME]", cli.path("").to_str().unwrap().trim_end_matches('/')));
    assert_eq!(again.code, Some(0), "{command}: {again}");
    assert!(outside.join("z").exists());

    // Secrets are opened by a person who types the path, never by a suggested command.
    let cli = Cli::new().with_programs();
    fs::create_dir(cli.path(".ssh")).unwrap();
    fs::write(cli.path(".ssh/id"), "key").unwrap();
    let command = suggested(&cli, "cat ~/.ssh/id");
    assert!(!command.contains("--allow"), "{command}");

    // One command has the grants of all failed tasks, also in the status.
    let cli = Cli::new().with_programs();
    for name in ["one", "two"] {
        fs::create_dir(cli.path(name)).unwrap();
    }
    let run = |name: &str| serde_json::json!({"id": name, "run": format!("echo x > ~/{name}/f")});
    cli.file("p.json", &serde_json::json!({"name": "p", "tasks": [run("one"), run("two")]}).to_string());
    let ended = cli.run(&["run-all-ready", "p.json", "--json"]).json();
    let both = "--allow-write [HOME]/one --allow-write [HOME]/two";
    assert!(ended["data"]["nextActions"].to_string().contains(both), "{ended}");
    let status = cli.run(&["--json"]).ok().json();
    assert!(status["data"]["nextActions"].to_string().contains(both), "{status}");

    // An agent is not led to widen its own sandbox.
    let ended = cli.run(&["run-all-ready", "p.json", "--retry-failed", "--actor", "model", "--json"]).json();
    let next = ended["data"]["nextActions"].to_string();
    assert!(next.contains("--retry-failed") && !next.contains("--allow"), "{ended}");
    let status = cli.run(&["--actor", "model", "--json"]).ok().json();
    assert!(!status["data"]["nextActions"].to_string().contains("--allow"), "{status}");
}

#[test]
fn secrets_are_not_read_unless_they_are_named() {
    let cli = Cli::new().with_programs();
    fs::create_dir(cli.path(".ssh")).unwrap();
    fs::write(cli.path(".ssh/id"), "key").unwrap();
    let key = cli.path(".ssh/id");
    let denied = call(&cli, "cat ~/.ssh/id", &[]);
    assert!(error(&denied).contains("is hidden in the sandbox; `--allow-read"), "{denied}");
    let shown = call(&cli, "cat ~/.ssh/id", &["--allow-read", key.to_str().unwrap()]);
    assert_eq!(text(&shown, "stdout"), "key");

    cli.file(".env", "TOKEN=1");
    let hidden = call(&cli, "cat .env || exit 3", &[]);
    if !has_mounts(&hidden) {
        return;
    }
    assert!(!text(&hidden, "stdout").contains("TOKEN"), "{hidden}");
    assert_eq!(hidden["result"]["sandbox"]["hidden"], serde_json::json!([".env"]));
    let run = ["--store", ":memory:", "run-all-ready", "--plan", "plan.json", "--format", "ndjson"];
    assert!(cli.run(&run).stdout.contains("`.env` is hidden in the sandbox"));
    assert_eq!(text(&call(&cli, "cat .env", &["--allow-read", ".env"]), "stdout"), "TOKEN=1");
}

#[test]
fn the_store_is_not_read_whatever_is_allowed() {
    let cli = Cli::new().with_programs();
    cli.run(&["create", "a"]).ok();
    let (home, store) = (cli.path(""), cli.path("one.db"));
    let command = format!("set +e; head -c 6 {}; cat {}/one.db-wal; true", store.display(), home.display());
    for flags in [&[][..], &["--allow-read", home.to_str().unwrap()]] {
        let tried = call(&cli, &command, flags);
        assert_eq!(text(&tried, "stdout"), "", "{flags:?}: {tried}");
    }
}

/// Output may contain secrets until the program has ended. A program may still reopen its own output through
/// `/dev/stdout`.
#[test]
fn what_a_call_prints_is_open_to_no_other_one() {
    let cli = Cli::new().with_programs();
    let (home, output) = (cli.path(""), cli.path("tasks.db.files/output"));
    result_of(&cli, &serde_json::json!({"id": "first", "run": "echo canary"}), &[]);
    let printed = || -> Vec<String> {
        let entries = fs::read_dir(&output).unwrap().map(|entry| entry.unwrap().path());
        let first = entries.filter(|path| path.to_str().unwrap().contains("first@"));
        first.map(|path| fs::read_to_string(path).unwrap()).collect()
    };
    assert_eq!(printed(), ["canary\n"]);
    let command = format!(
        "set +e; readlink /proc/self/fd/2; for f in {0}/*; do cat \"$f\"; echo poison >> \"$f\"; done; \
         echo own >> /dev/stdout; true",
        output.display()
    );
    let home = home.to_str().unwrap();
    let all: [&[&str]; 4] =
        [&[], &["--allow-read", home], &["--allow-write", home], &["--sandbox", "strict"]];
    for (number, flags) in all.into_iter().enumerate() {
        let task = serde_json::json!({"id": format!("second-{number}"), "run": command});
        let result = result_of(&cli, &task, flags);
        if result.is_null() {
            assert_eq!(flags.first(), Some(&"--sandbox"), "it takes `bwrap`, which may not be here");
        } else if has_mounts(&serde_json::json!({"result": result})) {
            let stdout = result["stdout"].as_str().unwrap();
            let is_kept = !stdout.contains("canary") && stdout.contains("own");
            // Standard error is a pipe, so its link names no directory of output files.
            assert!(is_kept && stdout.starts_with("pipe:["), "{flags:?}: {result}");
            assert_eq!(printed(), ["canary\n"], "{flags:?}");
        }
    }
}

/// The notify program runs beside the calls and after the last one.
#[test]
fn what_the_program_makes_that_a_plan_tells_is_named() {
    let cli = Cli::new().with_programs();
    let plan =
        "notify: [sh, -c, 'cat > /dev/null; echo x > .envrc']\ntasks: [{id: a, call: {log: {message: x}}}]";
    cli.file("plan.yaml", plan);
    let run = cli.run(&["run-all-ready", "--plan", "plan.yaml"]).ok();
    assert!(cli.path("work/.envrc").exists());
    assert!(
        run.stderr.contains("`sh`, which was told what happens: `.envrc`: created during the call"),
        "{run}"
    );
}

#[test]
fn what_others_obey_is_not_written() {
    let cli = Cli::new().with_programs();
    cli.file(".git/hooks/pre-commit", "old");
    cli.file(".git/HEAD", "ref: refs/heads/main");
    let denied = call(&cli, "echo new > .git/HEAD; echo new > .git/hooks/pre-commit", &[]);
    assert_eq!(fs::read_to_string(cli.path("work/.git/HEAD")).unwrap(), "new\n");
    if has_mounts(&denied) {
        assert_eq!(fs::read_to_string(cli.path("work/.git/hooks/pre-commit")).unwrap(), "old");
        assert!(error(&denied).contains("because other programs run or load it"), "{denied}");
    }
    call(&cli, "echo new > .git/hooks/pre-commit", &["--allow-write", ".git/hooks"]);
    assert_eq!(fs::read_to_string(cli.path("work/.git/hooks/pre-commit")).unwrap(), "new\n");
}

#[test]
fn programs_see_variables_of_a_list() {
    let cli = Cli::new().with_programs().with("LANG", "C").with("DEPLOY_KEY", "secret").with("STAGE", "test");
    let seen = |cli: &Cli, flags: &[&str]| {
        let listed = call(cli, "env", flags);
        let names = text(&listed, "stdout")
            .lines()
            .filter_map(|line| line.split_once('=').map(|(name, _)| name.to_owned()));
        names.collect::<Vec<_>>()
    };
    let usual = seen(&cli, &[]);
    assert!(
        usual.contains(&"LANG".to_owned())
            && !usual.iter().any(|name| name.contains("DEPLOY") || name == "STAGE")
    );
    assert!(seen(&cli, &["--sandbox", "off"]).contains(&"DEPLOY_KEY".to_owned()));
    fs::create_dir_all(cli.path(".config/taskpawl")).unwrap();
    fs::write(cli.path(".config/taskpawl/config.toml"), "[sandbox]\nenv = [\"STAGE\"]\n").unwrap();
    let named = seen(&cli, &[]);
    assert!(named.contains(&"STAGE".to_owned()) && !named.contains(&"DEPLOY_KEY".to_owned()));
}

#[test]
fn servers_of_a_call_are_reached_and_those_of_others_are_not() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let cli = Cli::new().with_programs();
    let command = format!("bash -c 'echo > /dev/tcp/127.0.0.1/{port}'");
    assert_eq!(call(&cli, &command, &[])["status"], "failed");
    assert_eq!(call(&cli, &command, &["--allow-net"])["status"], "succeeded");
}

/// Returns true if programs have a network namespace here, which grants of hosts and ports need.
fn has_own_network(call: &Value) -> bool {
    let network = &call["result"]["sandbox"]["network"];
    let has = network == "loopback";
    if !has {
        taskpawl_fuzz::skip("namespaces", "granted hosts and ports", network);
    }
    has
}

#[test]
fn a_granted_port_leads_to_the_server_outside() {
    if !may_decide() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let cli = Cli::new().with_programs();
    let command = format!("bash -c 'echo > /dev/tcp/127.0.0.1/{port}'");
    if has_own_network(&call(&cli, &command, &[])) {
        listener.set_nonblocking(true).unwrap();
        listener.accept().unwrap_err();
        let refused = call(&cli, &command, &[]);
        let recorded = serde_json::json!([{"kind": "port", "port": port.parse::<u16>().unwrap()}]);
        assert_eq!(refused["result"]["sandbox"]["refused"], recorded, "{refused}");
        if std::net::TcpListener::bind("[::1]:0").is_ok() {
            let over_ipv6 = call(&cli, &format!("bash -c 'echo > /dev/tcp/::1/{port}'"), &[]);
            assert_eq!(over_ipv6["result"]["sandbox"]["refused"], recorded, "{over_ipv6}");
        }
        assert!(error(&refused).contains(&format!("`--allow-port {port}`")), "{refused}");
        // A program that waits for a server of its own is refused nothing.
        let own = format!(
            "python3 -c 'import socket, threading\nfrom time import sleep\ndef serve():\n sleep(.1)\n s = socket.create_server((\"127.0.0.1\", {port}))\n s.accept()\nthreading.Thread(target=serve).start()\nwhile socket.socket().connect_ex((\"127.0.0.1\", {port})):\n sleep(.01)'"
        );
        assert_eq!(call(&cli, &own, &[])["result"]["sandbox"].get("refused"), None);
        let granted = call(&cli, &command, &["--allow-port", &port]);
        assert_eq!(granted["status"], "succeeded");
        assert_eq!(granted["result"]["sandbox"]["granted"], serde_json::json!([format!("port:{port}")]));
        listener.accept().unwrap();
    }
}

#[test]
fn a_refused_name_is_recorded_and_leads_to_its_flag() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs();
    let command = "getent hosts registry.test";
    let refused = call(&cli, command, &[]);
    if !has_own_network(&refused) {
        return;
    }
    assert_eq!(
        refused["result"]["sandbox"]["refused"],
        serde_json::json!([{"kind": "host", "name": "registry.test"}])
    );
    assert!(error(&refused).contains("`--allow-host registry.test`"), "{refused}");
    let granted = call(&cli, command, &["--allow-host", "registry.test"]);
    assert_eq!(text(&granted, "stdout").split_whitespace().next(), Some("127.64.0.1"), "{granted}");
    assert_eq!(granted["result"]["sandbox"].get("refused"), None);
}

/// The flags that widen the sandbox, each with the grant that lets agents give it.
const WIDENING: [([&str; 2], &str); 6] = [
    (["--sandbox", "off"], "off"),
    (["--allow-net", "--quiet"], "net"),
    (["--allow-host", "registry.test"], "host:*.test"),
    (["--allow-port", "5432"], "port:5432"),
    (["--allow-write", "/usr/share"], "write:/usr"),
    (["--allow-read", "/usr/share"], "read:/usr"),
];

#[test]
fn agents_widen_the_sandbox_only_as_the_policy_says() {
    let cli = Cli::new().with("CLAUDECODE", "1");
    for (flags, _) in WIDENING {
        let refused = cli.run(&[&["run-all-ready"], &flags[..]].concat());
        assert_eq!(refused.code, Some(7), "{refused}");
        assert!(refused.stderr.contains("is for a person, and a coding agent"), "{refused}");
        assert!(refused.stderr.contains("`agents_may = ["), "{refused}");
    }
    for (flags, grant) in WIDENING.into_iter().filter(|(_, grant)| *grant != "host:*.test") {
        cli.policy(&format!("agents_may = ['{grant}']\n"));
        cli.run(&[&["run-all-ready"], &flags[..]].concat()).ok();
    }
    cli.policy("agents_may = ['host:registry.test:443', 'port:5433']\n");
    for flags in [["--allow-host", "registry.test"], ["--allow-port", "5432"]] {
        assert_eq!(cli.run(&[&["run-all-ready"], &flags[..]].concat()).code, Some(7));
    }
    cli.run(&["run-all-ready", "--allow-host", "registry.test:443"]).ok();
}

#[test]
fn the_port_of_a_server_of_taskpawl_is_not_granted() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let _announced = OwnListener::announce(port).unwrap();
    let refused = Cli::new().run(&["run-all-ready", "--allow-port", &port.to_string()]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("a server of taskpawl listens at port"), "{refused}");
}

#[test]
fn what_is_as_good_as_no_sandbox_is_not_granted() {
    let cli = Cli::new();
    for (flag, said) in [
        ("--allow-host=*.github.io", "names beneath `github.io`"),
        ("--allow-host=*.co.uk", "names beneath `co.uk`"),
        ("--allow-host=*.org", "covers a whole top-level domain"),
        ("--allow-host=169.254.169.254", "only names can be granted"),
        ("--allow-host=localhost", "`--allow-port` lets programs use one of its ports"),
        ("--allow-port=2375", "port 2375 is that of the container engine"),
        ("--allow-port=9229", "port 9229 is that of the debugger of Node.js"),
        ("--allow-port=0", "a port is a number from 1 to 65535"),
    ] {
        let refused = cli.run(&["run-all-ready", flag]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(said), "{refused}");
    }
}

#[test]
fn what_cannot_be_enforced_is_not_started() {
    let cli = Cli::new().with("PATH", "/nowhere");
    let refused = call(&cli, "/bin/true", &["--sandbox", "strict"]);
    insta::assert_snapshot!(error(&refused), @"the sandbox of the program cannot be enforced: `bwrap` is not in PATH; install it (package `bubblewrap`), or use the sandbox without `strict`, or run programs with all your permissions with `--sandbox=off`");
}

#[test]
fn the_user_decides_and_the_project_narrows() {
    let cli = Cli::new().with_programs();
    fs::create_dir_all(cli.path(".config/taskpawl")).unwrap();
    let user = |text: &str| fs::write(cli.path(".config/taskpawl/config.toml"), text).unwrap();
    let mode = |cli: &Cli| cli.run(&["config", "get", "sandbox.mode"]).stdout;
    user("[sandbox]\nmode = \"off\"\nnet = true\nwrite = [\"~/.cache\"]\n");
    assert_eq!(mode(&cli), "off\n");
    assert_eq!(call(&cli, "true", &[])["result"]["sandbox"]["level"], "off");
    cli.file("taskpawl.toml", "[sandbox]\nmode = \"on\"\nnet = false\n");
    assert_eq!(mode(&cli), "on\n");
    assert_eq!(call(&cli, "true", &[])["result"]["sandbox"]["level"], "standard");
    insta::assert_snapshot!(cli.run(&["config", "get", "sandbox.net"]).stdout, @"false");

    for line in ["mode = \"off\"", "net = true", "write = [\"/\"]", "read = [\"/\"]", "env = [\"A\"]"] {
        cli.file("taskpawl.toml", &format!("[sandbox]\n{line}\n"));
        let refused = cli.run(&["create", "x"]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(
            refused.stderr.contains("the file of a project cannot give programs more by `sandbox."),
            "{refused}"
        );
    }
    let cli = Cli::new().with("TASKPAWL_SANDBOX", "off");
    let refused = cli.run(&["list"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("`--sandbox off` and the file of the user turn it off"), "{refused}");
}

#[test]
fn a_flag_that_says_nothing_is_refused() {
    let cli = Cli::new();
    for (flags, said) in [
        (["--sandbox", "off", "--allow-net"], "without a sandbox programs have the network anyway"),
        (["--sandbox", "on", "--allow-write=nowhere"], "which does not exist"),
    ] {
        let refused = cli.run(&[&["run-all-ready"], &flags[..]].concat());
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(said), "{refused}");
    }
}

#[test]
fn file_tools_are_held_to_the_same_with_and_without_a_sandbox() {
    let cli = Cli::new().with_programs();
    cli.file(".env", "a secret");
    let tools = |flags: &[&str]| {
        let plan = serde_json::json!({"tasks": [
            {"id": "read", "call": {"read_file": {"path": "sub/../.env"}}},
            {"id": "write", "call": {"write_file": {"path": ".mcp.json", "content": "{}"}}},
        ]});
        fs::create_dir_all(cli.path("work/sub")).unwrap();
        cli.file("tools.json", &plan.to_string());
        let run =
            [&["--store", ":memory:", "run-all-ready", "--plan", "tools.json", "--format", "ndjson"], flags];
        cli.run(&run.concat()).stdout
    };
    for mode in [&["--sandbox", "on"][..], &["--sandbox", "off"]] {
        let said = tools(mode);
        assert!(
            said.contains("`sub/../.env` is hidden, because it may contain secrets; `--allow-read "),
            "{said}"
        );
        assert!(
            said.contains("`.mcp.json` is protected, because other programs run or load it; create it first"),
            "{said}"
        );
        assert!(!cli.path("work/.mcp.json").exists());
        let opened = tools(&[mode, &["--allow-read", ".env"]].concat());
        assert!(!opened.contains("is hidden") && opened.contains("is protected"), "{opened}");
    }
    cli.file(".mcp.json", "{ }");
    tools(&["--sandbox", "off", "--allow-write", ".mcp.json"]);
    assert_eq!(fs::read_to_string(cli.path("work/.mcp.json")).unwrap(), "{}");
}

#[test]
fn who_is_told_of_a_run_runs_as_who_named_it() {
    let cli = Cli::new().with_programs();
    let tell =
        |name: &str| format!("[run]\nnotify = [\"sh\", \"-c\", \"echo $TASKPAWL_EVENT > ~/{name}\"]\n");
    cli.file("taskpawl.toml", &tell("by-project"));
    call(&cli, "true", &[]);
    assert!(!cli.path("by-project").exists(), "the project may not write to the home");
    fs::create_dir_all(cli.path(".config/taskpawl")).unwrap();
    fs::write(cli.path(".config/taskpawl/config.toml"), tell("by-user")).unwrap();
    call(&cli, "true", &[]);
    assert_eq!(fs::read_to_string(cli.path("by-user")).unwrap(), "finished\n");
}

/// Shells do not expand `~` after a `=`.
#[test]
fn a_flag_may_name_the_home_as_people_do() {
    let cli = Cli::new().with_programs();
    fs::create_dir(cli.path("data")).unwrap();
    let written = call(&cli, "touch ../data/new", &["--allow-write=~/data"]);
    assert_eq!(written["status"], "succeeded", "{written}");
    let refused = cli.run(&["run-all-ready", "--allow-read=~/nothing"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("/nothing, which does not exist"), "{refused}");
    assert!(!refused.stderr.contains('~'), "{refused}");
}

#[test]
fn a_link_in_the_project_opens_nothing_outside_of_it() {
    let cli = Cli::new().with_programs();
    fs::create_dir(cli.path("bin")).unwrap();
    std::os::unix::fs::symlink(cli.path("bin"), cli.path("work/cache")).unwrap();
    let led = call(&cli, "touch cache/planted", &["--allow-write", "cache"]);
    assert_eq!(led["status"], "failed", "{led}");
    assert!(!cli.path("bin/planted").exists());
    let run = ["--store", ":memory:", "run-all-ready", "--plan", "plan.json", "--allow-write", "cache"];
    let said = cli.run(&run).stderr;
    let ignored = "/work/cache` stays closed to programs: ";
    assert_eq!(said.matches(ignored).count(), 1, "whoever starts the run is told once: {said}");
    let named = call(&cli, "touch cache/planted", &["--allow-write", "../bin"]);
    assert_eq!(named["status"], "succeeded", "{named}");
}

/// Users keep settings in a repository of their own and link to them.
#[test]
fn a_configuration_that_is_a_link_is_kept_where_it_leads() {
    let cli = Cli::new().with_programs();
    fs::create_dir_all(cli.path(".config/taskpawl")).unwrap();
    fs::create_dir(cli.path("work/dot")).unwrap();
    for name in ["config.toml", "policy.toml"] {
        fs::write(cli.path("work/dot").join(name), "# mine\n").unwrap();
        let (target, link) = (cli.path("work/dot").join(name), cli.path(".config/taskpawl").join(name));
        std::os::unix::fs::symlink(target, link).unwrap();
    }
    let off = "printf '[sandbox]\\nmode = \"off\"\\n'";
    for command in [
        format!("{off} > dot/config.toml"),
        "rm dot/policy.toml".to_owned(),
        format!("mv dot d; mkdir dot && {off} > dot/config.toml"),
    ] {
        let tried = call(&cli, &command, &[]);
        assert_eq!(tried["status"], "failed", "{tried}");
    }
    let args = r#"{"path": "dot/config.toml", "content": "x"}"#;
    let written = cli.run(&["tools", "call", "write_file", "--args", args]);
    assert_ne!(written.code, Some(0), "{written}");
    for name in ["config.toml", "policy.toml"] {
        assert_eq!(fs::read_to_string(cli.path(".config/taskpawl").join(name)).unwrap(), "# mine\n");
    }
}

/// A link with `..` in it resolves through the directory that stands there, so replacing that directory
/// redirects the link.
#[test]
fn a_configuration_is_kept_by_every_way_that_leads_to_it() {
    let cli = Cli::new().with_programs();
    fs::create_dir_all(cli.path(".config/taskpawl")).unwrap();
    for directory in ["work/a/b", "work/dot", "other"] {
        fs::create_dir_all(cli.path(directory)).unwrap();
    }
    fs::write(cli.path("work/dot/config.toml"), "# mine\n").unwrap();
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, cli.path(name)).unwrap();
    link("../../other/config.toml", ".config/taskpawl/config.toml");
    link("../work/a/b/../../middle", "other/config.toml");
    link("dot/config.toml", "work/middle");
    let off = "printf '[sandbox]\\nmode = \"off\"\\n'";
    for command in [
        format!("mkdir -p e/x/y && mv a z; ln -s e/x/y a/b; ln -s e/x a && {off} > e/middle"),
        format!("mv a/b a/c; mkdir -p e/f && ln -s ../e/f a/b && {off} > middle"),
        format!("ln -sfn x middle && {off} > x"),
        format!("ln dot/config.toml hard && {off} > hard"),
        format!("{off} > new && mv new middle"),
        format!("{off} > new && mv new dot/config.toml"),
    ] {
        let tried = call_once(&cli, &command);
        assert_eq!(
            fs::read_to_string(cli.path(".config/taskpawl/config.toml")).unwrap(),
            "# mine\n",
            "{tried}"
        );
    }
}

/// A program that creates the journal of an SQLite store controls its content: the next reader would roll it
/// back into the store.
#[test]
fn no_program_makes_the_journal_of_a_store_in_the_project() {
    let cli = Cli::new().with_programs();
    if !has_mounts(&call(&cli, "true", &[])) {
        return;
    }
    cli.file("plan.yaml", "tasks: [{id: a, call: {shell: {command: 'echo x > tasks.db-journal'}}}]");
    let store = ["--store", "tasks.db"];
    let run = cli.run(&[&store[..], &["run-all-ready", "--plan", "plan.yaml"]].concat());
    assert_ne!(run.code, Some(0), "{run}");
    assert_eq!(fs::read(cli.path("work/tasks.db-journal")).unwrap(), b"");
    assert_eq!(
        cli.run(&[&store[..], &["list", "--fields", "id"]].concat()).ok().json()["data"][0]["id"],
        "a"
    );
}

/// Each change of a JSON store replaces the file, so a mount over the old file would protect nothing.
#[test]
fn a_store_that_is_a_readable_file_is_not_run_where_programs_write() {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", "tasks: [{id: a, run: 'true'}]");
    let run = |store: &str, flags: &[&str]| {
        cli.run(&[&["--store", store, "run-all-ready", "--plan", "plan.yaml"], flags].concat())
    };
    let refused = run("json:tasks.json", &[]);
    assert!(
        refused.code == Some(7) && refused.stderr.contains("`--store json:.taskpawl/tasks.json`"),
        "{refused}"
    );
    assert!(!cli.path("work/tasks.json").exists(), "nothing was applied");
    for flags in [&["--dry-run"][..], &["--sandbox=off"]] {
        run("json:tasks.json", flags).ok();
    }
    let elsewhere = cli.path("elsewhere.json");
    run(&format!("json:{}", elsewhere.display()), &[]).ok();
    let directory = cli.path("elsewhere");
    fs::create_dir(&directory).unwrap();
    let named = format!("json:{}", directory.join("tasks.json").display());
    assert_eq!(run(&named, &["--allow-write", directory.to_str().unwrap()]).code, Some(7));
    let served = cli.run(&["--store", "json:tasks.json", "mcp"]);
    assert!(served.code == Some(7) && served.stderr.contains("lies where programs write"), "{served}");
}

/// A hard link must not bypass the protection, even one that was made before the file became a protected one.
#[test]
fn files_are_protected_by_all_their_names() {
    let cli = Cli::new().with_programs();
    fs::create_dir_all(cli.path(".config/taskpawl")).unwrap();
    fs::write(cli.path(".config/taskpawl/config.toml"), "# mine\n").unwrap();
    fs::hard_link(cli.path(".config/taskpawl/config.toml"), cli.path("work/dot")).unwrap();
    let made = call_once(&cli, "git init -q fresh && mkdir -p a && ln fresh/.git/config a/h");
    assert_eq!(made["status"], "succeeded", "{made}");
    let args = r#"{"path": "a/h", "content": "x"}"#;
    let written = cli.run(&["tools", "call", "write_file", "--args", args]);
    assert_ne!(written.code, Some(0), "{written}");
    if !has_mounts(&made) {
        assert!(made.to_string().contains("not read-only"), "{made}");
        return;
    }
    for name in ["a/h", "dot"] {
        let tried = call(&cli, &format!("echo '[core] fsmonitor = x' >> {name}"), &[]);
        assert_eq!(tried["status"], "failed", "{tried}");
    }
}

/// A program that replaces a link controls the content that is read through it.
#[test]
fn links_to_what_is_kept_are_not_replaced() {
    let cli = Cli::new().with_programs();
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, cli.path(name)).unwrap();
    let home = cli.path("");
    let home = home.to_str().unwrap();
    link("dots/config", ".config");
    let plan = "rm ~/.config; mkdir -p ~/.config/taskpawl && echo x > ~/.config/taskpawl/policy.toml";
    let refused = cli.run(&["run-all-ready"]);
    assert!(
        refused.code == Some(2)
            && refused.stderr.contains("is a link to `dots/config`, which does not exist"),
        "{refused}"
    );
    fs::create_dir_all(cli.path("dots/config")).unwrap();
    let tried = call(&cli, plan, &["--allow-write", home]);
    assert_eq!(tried["status"], "failed", "{tried}");
    assert!(cli.path(".config").is_symlink() && !cli.path(".config/taskpawl/policy.toml").exists());

    cli.file("m.json", "{}");
    link("m.json", "work/.mcp.json");
    let tried = call(&cli, "rm .mcp.json && echo x > .mcp.json", &[]);
    if has_mounts(&tried) {
        assert_eq!(tried["status"], "failed", "{tried}");
        assert!(cli.path("work/.mcp.json").is_symlink());
    }
}

#[test]
fn a_socket_that_nobody_listens_at_is_removed_as_other_files_are() {
    let cli = Cli::new().with_programs();
    let bind = |name: &str| std::os::unix::net::UnixListener::bind(cli.path(name)).unwrap();
    let _listener = bind("work/s");
    drop(bind("work/left"));
    let removed = call(&cli, "rm -f left s", &[]);
    assert!(!cli.path("work/left").exists(), "{removed}");
    if has_mounts(&removed) {
        assert!(cli.path("work/s").exists(), "{removed}");
    }
}

#[test]
fn hooks_that_lie_elsewhere_are_not_written() {
    let cli = Cli::new().with_programs();
    for directory in ["work/.git", "work/.githooks"] {
        fs::create_dir(cli.path(directory)).unwrap();
    }
    fs::write(cli.path("work/.git/config"), "[core]\n\thooksPath = .githooks\n").unwrap();
    let written = call(&cli, "touch .githooks/pre-commit", &[]);
    // Without mounts, no file inside the project can be protected, and each result reports that.
    let text = written.to_string();
    assert!(written["status"] == "failed" || text.contains("not read-only"), "{text}");
    assert_eq!(
        call(&cli, "touch .githooks/pre-commit", &["--allow-write", ".githooks"])["status"],
        "succeeded"
    );
}

#[test]
fn a_worktree_is_committed_in() {
    let cli = Cli::new().with_programs();
    let git = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main";
    let made = std::process::Command::new("sh")
        .current_dir(cli.path(""))
        .env("HOME", cli.path(""))
        .args(["-c", &format!("{git} init -q main && cd main && {git} commit -q --allow-empty -m x && {git} worktree add -q ../tree")])
        .status()
        .unwrap();
    assert!(made.success());
    // Commands of `Cli` run in `work`, so the worktree moves there, and git has to learn the new path.
    fs::remove_dir(cli.path("work")).unwrap();
    fs::rename(cli.path("tree"), cli.path("work")).unwrap();
    let repaired = std::process::Command::new("git")
        .current_dir(cli.path("main"))
        .args(["worktree", "repair", "../work"])
        .output();
    assert!(repaired.unwrap().status.success());
    let committed =
        call(&cli, &format!("{git} commit -q --allow-empty -m y && {git} log --oneline | wc -l"), &[]);
    assert_eq!(text(&committed, "stdout").trim(), "3", "the first, and one of each run: {committed}");
    let hooked = call(&cli, "echo new > ../main/.git/hooks/pre-commit", &[]);
    if has_mounts(&hooked) {
        assert_eq!(hooked["status"], "failed", "{hooked}");
    }
}

/// Git may continue after a failed write of its settings, as `git submodule add` does.
#[test]
fn what_git_could_not_write_is_told_also_when_it_ends_well() {
    let cli = Cli::new().with_programs();
    let made = std::process::Command::new("git")
        .current_dir(cli.path("work"))
        .env("HOME", cli.path(""))
        .args(["init", "-q", "."])
        .status();
    assert!(made.unwrap().success());
    fs::create_dir(cli.path("work/sub")).unwrap();
    if !has_mounts(&call(&cli, "true", &[])) {
        return;
    }
    let failed = call(&cli, "cd sub && git remote add x y", &[]);
    let hint = "`[HOME]/work/.git/config` is protected in the sandbox, because other programs run or load it; `--allow-write [HOME]/work/.git/config` makes it writable";
    assert!(error(&failed).contains(hint), "{failed}");
    let passed = call(&cli, "git config a.b c || true", &[]);
    assert_eq!(passed["result"]["sandbox"]["protected"], serde_json::json!(["[HOME]/work/.git/config"]));
    let allowed = call(&cli, "git config a.b c", &["--allow-write", ".git/config"]);
    assert_eq!(
        (&allowed["status"], &allowed["result"]["sandbox"]["created"]),
        (&"succeeded".into(), &Value::Null)
    );
}

/// A missing file cannot be covered by a mount, so its creation is reported afterwards.
#[test]
fn protected_files_that_a_program_makes_are_named() {
    let cli = Cli::new().with_programs();
    assert_eq!(
        created(&cli, "made", "touch .envrc .ripgreprc plain", &[]),
        serde_json::json!([".envrc", ".ripgreprc"])
    );
    assert_eq!(created(&cli, "again", "rm plain", &[]), Value::Null);
    assert_eq!(created(&cli, "failed", "touch .gitconfig; false", &[]), serde_json::json!([".gitconfig"]));
}

/// A directory cannot be covered if a missing file in it is opened: that file could then not be created.
#[test]
fn what_comes_beside_a_named_file_of_a_protected_directory_is_named() {
    let cli = Cli::new().with_programs();
    fs::create_dir_all(cli.path(".config/taskpawl")).unwrap();
    let config = "[sandbox]\nwrite = [\".vscode/settings.json\"]\n";
    fs::write(cli.path(".config/taskpawl/config.toml"), config).unwrap();
    let command = "mkdir -p .vscode && touch .vscode/settings.json";
    assert_eq!(created(&cli, "named", command, &[]), Value::Null);
    let beside = created(&cli, "beside", "touch .vscode/tasks.json .vscode/settings.json", &[]);
    assert_eq!(beside, serde_json::json!([".vscode/tasks.json"]));
}

/// Creating repositories is normal work. Files in them that git executes later are reported.
#[test]
fn what_git_obeys_in_new_repositories_is_named() {
    let cli = Cli::new().with_programs();
    let plain = "git init -q a && git init -q --bare b && git clone -q a c 2>&1";
    assert_eq!(created(&cli, "plain", plain, &[]), Value::Null);
    let active = "git init -q fresh && git clone -q fresh copy 2>&1 && cp /bin/true fresh/.git/hooks/post-merge && \
                  git -C copy config core.pager x && touch copy/.envrc";
    let made = created(&cli, "active", active, &[]);
    assert_eq!(
        made,
        serde_json::json!(["copy/.envrc", "copy/.git/config (core.pager)", "fresh/.git/hooks/post-merge"])
    );
}

/// Every writable location is checked, for flags and for requests of tasks.
#[test]
fn protected_files_that_a_program_makes_elsewhere_are_named() {
    let cli = Cli::new().with_programs();
    fs::create_dir_all(cli.path("other/.git")).unwrap();
    fs::create_dir_all(cli.path("other/.vscode")).unwrap();
    let (other, vscode) = (cli.path("other"), cli.path("other/.vscode"));
    let (other, vscode) = (other.to_str().unwrap(), vscode.to_str().unwrap());
    let command = "touch ../other/.mcp.json ../other/plain .envrc";
    let there = |name: &str| format!("[HOME]/other/{name}");
    let made = created(&cli, "made", command, &["--allow-write", other]);
    assert_eq!(made, serde_json::json!([there(".mcp.json"), ".envrc"]));
    // A path that the user opened by name is not reported.
    let command = "mkdir -p ../other/.git/hooks; cp /bin/true ../other/.git/hooks/post-merge; rmdir ../other/.vscode; mkdir ../other/.vscode";
    let made = created(&cli, "named", command, &["--allow-write", other, "--allow-write", vscode]);
    assert_eq!(made, serde_json::json!([there(".git/hooks/post-merge")]));
    // The same location, opened by the `sandbox` field of a task.
    cli.policy("[[rules]]\ndecision = \"allow\"\nargv = [\"touch\"]\nsandbox = { write = [\"/\"] }\n");
    let task =
        serde_json::json!({"id": "asks", "run": ["touch", "../other/.envrc"], "sandbox": {"write": [other]}});
    assert_eq!(created_by(&cli, &task, &[]), serde_json::json!([there(".envrc")]));
}

/// Runs a command once, and returns the reported protected files that it created.
fn created(cli: &Cli, id: &str, command: &str, flags: &[&str]) -> Value {
    created_by(cli, &serde_json::json!({"id": id, "run": command}), flags)
}

fn created_by(cli: &Cli, task: &Value, flags: &[&str]) -> Value {
    result_of(cli, task, flags)["sandbox"]["created"].clone()
}

fn result_of(cli: &Cli, task: &Value, flags: &[&str]) -> Value {
    let id = task["id"].as_str().unwrap();
    let file = format!("{id}.json");
    cli.file(&file, &serde_json::json!({"tasks": [task]}).to_string());
    cli.run(&[&["run-all-ready", "--plan", &file, "--quiet"][..], flags].concat());
    let task = cli.run(&["show", id, "--json"]).ok().json();
    task["data"]["metadata"]["toolCalls"][0]["result"].clone()
}
