//! Tests of the policy: which calls ask, which are denied, by which rule, and how to inspect that.

use std::process::{Command, Stdio};

use crate::harness::{Cli, Run, may_decide, unhashed};

const USER: &str = r#"[[rules]]
decision = "ask"
argv = "git push"
reason = "others see it"

[[rules]]
decision = "deny"
argv = "rm"
"#;

const PROJECT: &str =
    "[[rules]]\ndecision = \"ask\"\nargv = \"make\"\norigins = [\"plan\"]\n\n[origins]\ncli = \"ask\"\n";

#[test]
fn what_is_decided_is_explained() {
    let cli = Cli::new();
    cli.policy(USER);
    cli.file("taskpawl-policy.toml", PROJECT);
    insta::assert_snapshot!(cli.session(&[
        &["policy", "check", "cargo test"],
        &["policy", "check", "cargo test && git push"],
        &["policy", "check", "sudo rm -rf $HOME"],
        &["policy", "check", "make", "all"],
        &["policy", "check", "--origin", "mcp", "--tool", "read_file", "--args", "{\"path\": \"a\"}"],
        &["policy", "check", "--origin", "cli", "--net", "cargo fetch"],
        &["policy", "check", "rm x", "--json", "--fields", "decision,commands"],
        &["policy", "list"],
    ]));
}

#[test]
fn a_policy_that_is_wrong_stops_everything_that_would_go_by_it() {
    let cli = Cli::new();
    cli.policy("[[rules]]\ndecision = \"allow\"\nargv = \"cargo test\"\nmatch = [\"cargo test > log\"]\n");
    insta::assert_snapshot!(cli.session(&[&["list"], &["policy", "check", "ls"], &["where"]]));
}

#[test]
fn calls_ask_or_fail_by_the_rules_and_say_which() {
    let cli = Cli::new().with_programs();
    cli.policy(USER);
    let plan =
        "tasks: [{id: push, run: git push --dry-run}, {id: clean, run: rm -rf out}, {id: fine, run: 'true'}]";
    cli.file("plan.yaml", plan);
    insta::assert_snapshot!(unhashed(&cli.session(&[
        &["run-all-ready", "--plan", "plan.yaml", "--dry-run"],
        &["run-all-ready", "--plan", "plan.yaml", "--quiet"],
        &["explain", "push"],
        &["show", "push"],
        &["show", "clean"],
    ])));
    let json = cli.run(&["show", "push", "--json"]).ok().json();
    let why = json["data"]["blockedReason"]["why"].as_str().unwrap();
    assert!(why.ends_with("policy.toml` line 1 asks about `git push`: others see it"), "{why}");
    // Without the rule, the same task runs without an approval.
    cli.policy("");
    cli.file("git", "");
    let run = cli.run(&["run-all-ready", "--only", "push", "--quiet"]);
    assert_ne!(run.code, Some(3), "{run}");
}

#[test]
fn what_a_call_returns_asks_unless_the_user_lets_models_run() {
    if !may_decide() {
        return;
    }
    let plan = r#"tasks: [{id: grow, calls: [{emit: true, exec: {parse: json, argv: [echo, '{"tasks": [{"id": "new", "run": "echo grown"}, {"id": "look", "call": {"list_dir": {"path": "."}}}]}']}}]}]"#;
    let run = |policy: &str| {
        let cli = Cli::new().with_programs();
        cli.policy(policy);
        cli.file("plan.yaml", plan);
        let run = cli.run(&["run-all-ready", "--plan", "plan.yaml", "--quiet"]);
        let states = cli.run(&["list", "--fields", "id,status"]).ok().json()["data"].to_string();
        (cli, run.code, states)
    };
    let (cli, code, states) = run("");
    assert_eq!(code, Some(3), "{states}");
    assert!(
        states.contains(r#"{"id":"new","status":"blocked"}"#)
            && states.contains(r#"{"id":"look","status":"done"}"#)
    );
    cli.by_person(&["approve", "new"]).ok();
    assert_eq!(cli.run(&["run-all-ready", "--quiet"]).code, Some(0));
    assert_eq!(run("[origins]\nagent = \"sandboxed\"\n").1, Some(0));
    let (cli, code, _) = run("[origins]\nagent = \"deny\"\n");
    assert_eq!(code, Some(1));
    let failed = cli.run(&["show", "look", "--json"]).ok().json()["data"].clone();
    assert_eq!(failed["metadata"]["toolCalls"][0]["errorClass"], "denied");
}

#[test]
fn a_policy_keeps_the_sandbox_as_it_is() {
    let cli = Cli::new().with_programs();
    cli.policy("[sandbox]\noff = \"deny\"\nnet = \"deny\"\n");
    cli.file("plan.yaml", "tasks: [{id: a, run: 'true'}, {id: b, sandbox: {net: true}, run: 'true'}]");
    for flags in [&["--sandbox", "off"][..], &["--allow-net"]] {
        let run = cli.run(&[&["run-all-ready", "--plan", "plan.yaml"], flags].concat());
        assert_eq!(run.code, Some(7), "{run}");
        assert!(run.stderr.contains("policy.toml` line") && run.stderr.contains("forbids it"), "{run}");
    }
    cli.run(&["run-all-ready", "--plan", "plan.yaml", "--quiet"]);
    let denied = cli.run(&["show", "b", "--json"]).ok().json()["data"]["metadata"]["toolCalls"][0].clone();
    assert_eq!(denied["errorClass"], "denied", "{denied}");
}

#[test]
fn what_is_in_force_is_shown_with_its_place() {
    let cli = Cli::new();
    cli.policy(
        "agents_may = ['port:5432']\nleast_level = 'B'\n[powers]\nnet = 'ask'\n[origins]\nmcp = 'deny'\n",
    );
    cli.file("taskpawl-policy.toml", "[powers]\nnet = 'never'\n");
    insta::assert_snapshot!(cli.session(&[
        &["policy", "effective"],
        &["policy", "effective", "--fields", "least_level,leastLevel,agentsMay"]
    ]));
}

#[test]
fn a_run_with_less_isolation_than_the_policy_demands_is_refused() {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", "tasks: [{id: a, run: 'true'}]");
    cli.policy("least_level = 'A'\n");
    let refused = cli.run(&["run-all-ready", "--plan", "plan.yaml", "--sandbox", "off"]);
    assert_eq!(refused.code, Some(7), "{refused}");
    assert!(refused.stderr.contains("demands level A, and this system has: no sandbox"), "{refused}");
    cli.policy("least_level = 'D'\n");
    cli.run(&["run-all-ready", "--plan", "plan.yaml"]).ok();
    cli.policy("least_level = 'E'\n");
    assert!(cli.run(&["list"]).stderr.contains("expected one of `A`, `B`, `C`, `D`"));
}

#[test]
fn what_a_flag_grants_is_not_asked_about() {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", "tasks: [{id: a, sandbox: {net: true}, run: 'true'}]");
    let foreseen = |flags: &[&str]| {
        let run = cli.run(&[&["run-all-ready", "--dry-run", "--json"], flags].concat());
        run.stdout.contains("more than the sandbox allows")
    };
    assert!(foreseen(&["--plan", "plan.yaml"]));
    assert!(!foreseen(&["--plan", "plan.yaml", "--allow-net"]));
    assert_eq!(cli.run(&["run-all-ready", "--plan", "plan.yaml", "--quiet"]).code, Some(3));
    assert!(foreseen(&[]) && !foreseen(&["--allow-net"]));
    assert_eq!(cli.run(&["run-all-ready", "--allow-net", "--quiet"]).code, Some(0));
}

/// The path `/etc/taskpawl` is fixed, so the test mounts another directory over `/etc`.
#[test]
fn the_ceiling_of_the_machine_is_above_every_file() {
    let cli = Cli::new().with_programs();
    cli.policy("[[rules]]\ndecision = \"allow\"\nargv = \"make\"\n[origins]\nagent = \"allow\"\n");
    let etc = cli.path("etc");
    std::fs::create_dir_all(etc.join("taskpawl")).unwrap();
    std::fs::write(etc.join("taskpawl/policy.toml"), "[[rules]]\ndecision = \"deny\"\nargv = \"make\"\n")
        .unwrap();
    let script = "mount --bind \"$1\" /etc && shift && exec \"$@\"";
    let unshare = |program: &str, args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(&etc).arg(program).args(args);
        command.current_dir(cli.path("work")).env("HOME", cli.path("")).stdin(Stdio::null());
        command.output()
    };
    // A mount needs privileges that the machine may not grant.
    if !unshare("true", &[]).is_ok_and(|output| output.status.success()) {
        taskpawl_fuzz::skip("mounts", "the ceiling of the machine", "a file system cannot be mounted here");
        return;
    }
    let checked =
        unshare(env!("CARGO_BIN_EXE_taskpawl"), &["policy", "check", "make", "--origin", "agent"]).unwrap();
    let run = Run::of("policy check make --origin agent", checked);
    assert_eq!(run.code, Some(7), "{run}");
    assert!(run.stdout.contains("`/etc/taskpawl/policy.toml` line 1 denies `make`"), "{run}");
}

/// Rules on commands apply to the program that a tool starts, not only to its name.
#[test]
fn rules_about_commands_hold_for_what_described_tools_run() {
    let cli = Cli::new().with_programs();
    cli.policy(&format!("{USER}\n[[rules]]\ndecision = \"allow\"\nargv = \"echo\"\n"));
    let tools = r#"
[tools.clean]
description = "Cleans."
argv = ["rm", "-rf", "{path}"]
[tools.clean.params.path]
description = "What."
[tools.within]
description = "Cleans within a shell."
argv = ["sh", "-c", "rm -rf \"$1\"", "sh", "{path}"]
[tools.within.params.path]
description = "What."
[tools.typed]
description = "Tells a shell what to do."
argv = ["sh"]
stdin = "{script}"
[tools.typed.params.script]
description = "What."
[tools.say]
description = "Says."
argv = ["echo", "{what}"]
[tools.say.params.what]
description = "What."
[tools.aside]
description = "Says it with a variable."
argv = ["echo", "x"]
[tools.aside.env]
LANG = "C"
"#;
    std::fs::write(cli.path(".config/taskpawl/config.toml"), tools).unwrap();
    insta::assert_snapshot!(cli.session(&[
        &["policy", "check", "--tool", "clean", "--args", "{\"path\": \"out\"}"],
        &["policy", "check", "--tool", "within", "--args", "{\"path\": \"out\"}"],
        &["policy", "check", "--tool", "typed", "--args", "{\"script\": \"true; rm x\"}"],
        &["policy", "check", "--origin", "agent", "--tool", "say", "--args", "{\"what\": \"x\"}"],
        &["policy", "check", "--origin", "agent", "--tool", "aside"],
    ]));
    cli.file("plan.yaml", "tasks: [{id: a, call: {clean: {path: out}}}]");
    let run = cli.run(&["run-all-ready", "--plan", "plan.yaml", "--quiet"]);
    assert_eq!(run.code, Some(1), "{run}");
    let shown = cli.run(&["show", "a", "--json"]).ok().json();
    let error = shown["data"]["metadata"]["toolCalls"][0]["error"].as_str().unwrap();
    assert!(error.contains("denies `rm`"), "{error}");
}

#[test]
fn what_stands_behind_sudo_is_suspected_of_nothing_else() {
    let cli = Cli::new();
    cli.policy(USER);
    let run = cli.run(&["policy", "check", "sudo cat $X"]).ok();
    assert!(!run.stdout.contains("`rm`"), "{run}");
    assert_eq!(cli.run(&["policy", "check", "sudo $X"]).code, Some(7));
}

#[test]
fn a_check_decides_as_a_run_does() {
    let cli = Cli::new();
    cli.policy(
        "[[rules]]\ndecision = \"allow\"\ntool = \"http_request\"\n\n[[rules]]\ndecision = \"allow\"\nargv = \"echo\"\n",
    );
    let args = "{\"url\": \"https://x.y\", \"headers\": {\"A\": \"${secret:S1}\"}}";
    let with = |origin: &str| {
        cli.run(&["policy", "check", "--origin", origin, "--tool", "http_request", "--args", args])
    };
    let run = with("mcp");
    assert_eq!(run.code, Some(3), "{run}");
    assert!(run.stdout.starts_with("ask\n"), "{run}");
    assert!(run.stdout.contains("a model wrote it, and it uses secrets"), "{run}");
    assert_eq!(with("plan").code, Some(0));
    let run = cli.run(&["policy", "check", "--json", "--origin", "agent", "echo", "${secret:S1}"]);
    assert_eq!(run.code, Some(3), "{run}");
    assert_eq!(run.json()["data"]["decision"], "ask", "{run}");
    assert_eq!(run.json()["data"]["byItself"], "a model wrote it, and it uses secrets", "{run}");
    let run = cli.run(&["policy", "check", "echo ${{ params.a | raw }}"]);
    assert_eq!(run.code, Some(3), "{run}");
    let run = cli.run(&["policy", "check", "--tool", "nosuch"]);
    assert_eq!(run.code, Some(2), "{run}");
    assert!(run.stderr.contains("no tool `nosuch` is known here"), "{run}");
}

/// A policy whose rule matches the command, but lacks keys for its options.
const NEAR: &str = "[origins]\nplan = \"ask\"\n\n[[rules]]\ndecision = \"allow\"\nargv = \"cat\"\n";

#[test]
fn a_check_names_the_key_that_a_rule_lacks() {
    let cli = Cli::new();
    cli.policy(NEAR);
    let check = |args: &[&str]| cli.run(&[&["policy", "check"][..], args].concat());
    assert_eq!(check(&["cat a"]).code, Some(0));
    for (args, said) in [
        (&["cat a", "--stdin", "x"][..], "line 4 lacks `stdin = \"any\"`"),
        (&["cat", "a", "--cwd", "crates/a"], "line 4 lacks `cwd = [\".\", \"crates/a\"]`"),
        (&["cat a", "--env", "B=1", "--env", "A=C=1"], "line 4 lacks `env = [\"A\", \"B\"]`"),
        (&["cat a", "--cwd", ".."], "does not cover it: it may run outside the project"),
        (&["cd crates && cat a"], "line 4 lacks `cwd = [\".\", \"crates\"]`"),
    ] {
        let run = check(args);
        assert_eq!(run.code, Some(3), "{run}");
        assert!(run.stdout.contains("the rule `cat` in ") && run.stdout.contains(said), "{run}");
    }
    let json = check(&["cat a | cat", "--json"]).json();
    assert_eq!(json["data"]["steps"][0]["near"][0]["add"], serde_json::json!(["stdin = \"any\""]));
    assert_eq!(check(&["cat a", "--env", "LANG"]).code, Some(2));
    assert_eq!(check(&["--tool", "log", "--stdin", "x"]).code, Some(2));
}

#[test]
fn doctor_lists_the_rules_that_lately_lacked_a_key() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs();
    cli.policy(NEAR);
    let plan = "tasks:\n- {id: one, call: {exec: {argv: [cat], stdin: x}}}\n\
                - {id: two, call: {exec: {argv: [cat, a], env: {A: x}}}}\n\
                - {id: three, run: 'cd crates && cat a'}\n\
                - {id: outside, call: {exec: {argv: [cat, a], cwd: ..}}}\n\
                - {id: other, run: tac a}\n";
    cli.file("plan.yaml", plan);
    assert_eq!(cli.run(&["run-all-ready", "--plan", "plan.yaml", "--quiet"]).code, Some(3));
    let found = || {
        let all = cli.run(&["doctor", "--json"]).ok().json()["data"].clone();
        let all = all.as_array().unwrap().iter().filter(|diagnostic| diagnostic["check"] == "rules");
        let text =
            |diagnostic: &serde_json::Value, field: &str| diagnostic[field].as_str().unwrap().to_owned();
        all.map(|diagnostic| format!("{} / {}", text(diagnostic, "message"), text(diagnostic, "remedy")))
            .collect::<Vec<_>>()
    };
    let [said] = &found()[..] else { panic!("one rule lacks keys: {:?}", found()) };
    let expected = "the rule on `cat` did not allow what asked for an approval in `one`, `three`, `two` / with \
                    `stdin = \"any\"` and `cwd = [\".\", \"crates\"]` and `env = [\"A\"]` in the rule it allows that";
    assert_eq!(said, expected);
    // An answered question still counts, until the rule covers the call.
    cli.by_person(&["reject", "one", "two"]).ok();
    assert_eq!(found(), std::slice::from_ref(said));
    cli.policy(&format!("{NEAR}stdin = \"any\"\ncwd = [\".\", \"crates\"]\nenv = [\"A\"]\n"));
    assert_eq!(found(), Vec::<String>::new());
}
