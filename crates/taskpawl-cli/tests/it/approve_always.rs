//! Tests of `approve --always`: approvals that are remembered for a project.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Cli, Run, may_decide};

const ASKS: &str = "[[rules]]\ndecision = 'ask'\nargv = 'echo'\n[[rules]]\ndecision = 'ask'\nargv = 'sh'\n";

fn cli() -> Cli {
    let cli = Cli::new().with_programs();
    cli.policy(ASKS);
    cli
}

/// Writes a plan with one task of the same name, and runs it again.
fn run(cli: &Cli, name: &str, work: &Value) -> Run {
    let mut task = json!({"id": name});
    task.as_object_mut().unwrap().extend(work.as_object().unwrap().clone());
    cli.file(&format!("{name}.json"), &json!({"name": name, "tasks": [task]}).to_string());
    cli.run(&["run-all-ready", "--plan", &format!("{name}.json"), "--fresh"])
}

fn argv(words: &[&str]) -> Value {
    json!({"calls": [{"exec": {"argv": words}}]})
}

fn listed(cli: &Cli) -> Value {
    cli.run(&["allow", "--list", "--json"]).ok().json()["data"].clone()
}

#[test]
fn an_approval_is_remembered_for_calls_that_do_the_same() {
    if !may_decide() {
        return;
    }
    let cli = cli();
    let (one, two) = (argv(&["echo", "one"]), argv(&["echo", "two"]));
    assert_eq!(run(&cli, "a", &one).code, Some(3));
    cli.by_person(&["approve", "a", "--always"]).ok();
    run(&cli, "a", &one).ok();
    let entry = listed(&cli)[0].clone();
    assert_eq!(
        (&entry["tool"], &entry["call"], &entry["plan"]),
        (&json!("exec"), &json!("echo one"), &json!("a"))
    );
    assert!(entry["lastUsed"].is_string(), "{entry}");
    // Other arguments, another plan and another sandbox request ask.
    assert_eq!(run(&cli, "b", &one).code, Some(3));
    cli.by_person(&["approve", "b", "--always", "--all-plans"]).ok();
    run(&cli, "c", &one).ok();
    assert_eq!(run(&cli, "d", &two).code, Some(3));
    let mut wider = one.clone();
    wider["sandbox"] = json!({"read": ["/usr/share"]});
    assert_eq!(run(&cli, "e", &wider).code, Some(3));
    // A removed approval asks again.
    let hash = entry["approval"].as_str().unwrap();
    assert_eq!(cli.by_person(&["allow", "--remove", "--approval", &hash[..7]]).code, Some(2));
    cli.by_person(&["allow", "--remove", "--approval", &hash[..8]]).ok();
    assert_eq!(listed(&cli), json!([]));
    assert_eq!(run(&cli, "f", &one).code, Some(3));
    let log = cli.run(&["audit", "--json"]).ok().stdout;
    assert!(log.contains("always exec `echo one`, for plan `a`") && log.contains("\"revoke\""), "{log}");
}

#[test]
fn a_changed_program_asks_again() {
    if !may_decide() {
        return;
    }
    let cli = cli();
    cli.file("build.sh", "true\n");
    let build = argv(&["sh", "build.sh"]);
    assert_eq!(run(&cli, "a", &build).code, Some(3));
    cli.by_person(&["approve", "a", "--always", "--all-plans"]).ok();
    run(&cli, "b", &build).ok();
    cli.file("build.sh", "true; true\n");
    let asks = run(&cli, "c", &build);
    assert_eq!(asks.code, Some(3));
    assert!(
        asks.stderr
            .contains("the remembered approval of `sh build.sh` does not count: `build.sh` has changed"),
        "{asks}"
    );
}

#[test]
fn only_a_person_remembers_an_approval() {
    if !may_decide() {
        return;
    }
    let cli = cli();
    run(&cli, "a", &argv(&["echo", "one"]));
    assert_eq!(cli.run(&["approve", "a", "--always"]).code, Some(7));
    assert_eq!(cli.by_person(&["approve", "a", "--always", "--actor", "ann"]).code, Some(7));
    let marked = cli.at_a_terminal().with("CLAUDECODE", "1");
    assert_eq!(marked.run(&["approve", "a", "--always"]).code, Some(7));
    assert_eq!(listed(&marked), json!([]));
}

#[test]
fn some_questions_are_asked_each_time() {
    if !may_decide() {
        return;
    }
    let refused = |cli: &Cli, task: &str, said: &str| {
        let refused = cli.by_person(&["approve", task, "--always"]);
        assert_eq!(refused.code, Some(2), "{task} {refused}");
        let text = format!("{}{}", refused.stdout, refused.stderr);
        assert!(text.contains(said), "{task} {refused}");
        assert_eq!(listed(cli), json!([]));
    };
    let cli = cli();
    let echo = argv(&["echo", "one"]);
    let with = |key: &str, value: Value| {
        let mut work = echo.clone();
        work[key] = value;
        work
    };
    run(&cli, "author", &with("approval", json!({"ask": "Sure?"})));
    refused(&cli, "author", "the author of the plan asks each time");
    run(&cli, "net", &with("sandbox", json!({"net": true})));
    refused(&cli, "net", "it asks for the whole network");
    run(&cli, "list", &with("forEach", json!({"in": [1, 2]})));
    refused(&cli, "list", "it is about a list");
    run(&cli, "plain", &echo);
    fs::write(cli.path(".config/taskpawl/config.toml"), "[sandbox]\nmode = 'off'\n").unwrap();
    refused(&cli, "plain", "the sandbox is off");
    fs::remove_file(cli.path(".config/taskpawl/config.toml")).unwrap();
    for key in ["approvals", "remembered"] {
        cli.policy(&format!("{ASKS}[powers]\n{key} = 'never'\n"));
        let never = cli.by_person(&["approve", "plain", "--always"]);
        assert_eq!(never.code, Some(7), "{never}");
        assert!(never.stderr.contains("forbids it") || never.stdout.contains("forbids it"), "{never}");
    }
    // A policy that forbids it later holds for what is remembered already.
    cli.policy(ASKS);
    run(&cli, "plain", &echo);
    cli.by_person(&["approve", "plain", "--always", "--all-plans"]).ok();
    run(&cli, "next", &echo).ok();
    cli.policy(&format!("{ASKS}[powers]\napprovals = 'never'\n"));
    assert_eq!(run(&cli, "last", &echo).code, Some(3));
}

#[test]
fn calls_of_models_are_approved_only_if_the_approval_says_so() {
    if !may_decide() {
        return;
    }
    let cli = cli();
    let child =
        |id: &str| json!({"tasks": [{"id": id, "calls": [{"exec": {"argv": ["echo", "x"]}}]}]}).to_string();
    let grow = |id: &str| {
        let exec = json!({"parse": "json", "argv": ["printf", "%s", child(id)]});
        json!({"calls": [{"emit": true, "exec": exec}]})
    };
    run(&cli, "a", &grow("first"));
    let refused = cli.by_person(&["approve", "first", "--always"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    cli.by_person(&["approve", "first", "--always", "--agents", "--all-plans"]).ok();
    run(&cli, "b", &grow("second")).ok();
}
