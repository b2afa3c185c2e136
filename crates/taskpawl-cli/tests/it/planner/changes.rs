//! Changes of stored plans by planners: repairs and expansions.

use serde_json::{Value, json};

use super::of_server_with;
use super::server::{Server, openai};
use crate::harness::Cli;
use crate::terminal::answered;

const PLAN: &str = "\
name: release
tasks:
- {id: build, run: echo building; echo no compiler >&2; exit 3}
- {id: lint, needs: [build], run: 'true'}
- {id: pack, needs: [lint], call: {write_file: {path: pack.txt, content: x}}}
- {id: review, needs: [build], name: Look at it}
";

fn failed_with(answers: &[Value], output: &str) -> (Server, Cli) {
    let server = Server::start(answers.iter().map(|answer| openai(&answer.to_string())).collect());
    let cli = of_server_with(&server, "openai", output);
    cli.file("release.yaml", PLAN);
    assert_eq!(cli.run(&["run-all-ready", "release.yaml"]).code, Some(1));
    (server, cli)
}

fn patch() -> Value {
    json!({
        "add": [{"id": "tools", "name": "Tools are there", "x-why": "The build has none.", "run": "true"}],
        "replace": [{"id": "build", "needs": ["tools"], "run": "true"}],
        "skip": [{"id": "lint", "reason": "there is no linter"}],
    })
}

#[test]
fn a_repair_adds_replaces_and_skips_and_is_undone_as_a_whole() {
    let (server, cli) = failed_with(&[patch()], "send_output = true");
    let before = cli.run(&["list", "--json"]).json();
    let repaired = cli.run(&["plan", "repair", "--yes", "--json"]).ok().json();
    let lines = repaired["data"]["difference"].to_string();
    assert!(lines.contains("+ tools") && lines.contains("exit 3") && lines.contains("no linter"), "{lines}");
    let prompt = server.received()[0].body.to_string();
    for part in ["no compiler", "Failed task build", "lint (blocked", "{add: [tasks], replace:"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let show = |id: &str| cli.run(&["show", id, "--json"]).ok().json()["data"].clone();
    assert_eq!(show("tools")["metadata"]["toolCalls"][0]["origin"], "agent");
    assert_eq!(show("build")["metadata"]["toolCalls"][0]["origin"], "agent");
    cli.run(&["undo"]).ok();
    let after = cli.run(&["list", "--json"]).json();
    let names = |list: &Value| {
        list["data"].as_array().unwrap().iter().map(|task| task["id"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&after), names(&before));
    cli.run(&["plan", "repair", "--yes"]).ok();
    assert_eq!(cli.run(&["run-all-ready"]).code, Some(3), "calls of a planner ask");
}

#[test]
fn a_repair_is_refused_where_it_may_not_be() {
    let (server, cli) = failed_with(&[patch()], "");
    let silent = cli.run(&["plan", "repair", "--yes"]);
    assert_eq!(silent.code, Some(2), "{silent}");
    assert!(silent.stderr.contains("send_output"), "{silent}");
    cli.run(&["plan", "repair", "--print-prompt"]).ok();
    assert_eq!(server.received().len(), 0);
    let (server, cli) = failed_with(&[patch()], "send_output = true");
    let unasked = cli.run(&["plan", "repair"]);
    assert_eq!(unasked.code, Some(7), "{unasked}");
    cli.run(&["plan", "repair", "--print-prompt"]).ok();
    assert_eq!(server.received().len(), 0);
    let none = cli.run(&["plan", "repair", "other", "--yes"]);
    assert_eq!(none.code, Some(7), "{none}");
}

#[test]
fn a_change_of_what_ran_goes_back_to_the_planner() {
    let wrong = json!({"replace": [{"id": "nothing", "run": "true"}], "add": [{"id": "build", "name": "x", "run": "true"}]});
    let (server, cli) = failed_with(&[wrong, patch()], "send_output = true");
    cli.run(&["plan", "repair", "--yes"]).ok();
    let body = server.received()[1].body.to_string();
    assert!(
        body.contains("no task `nothing` is in the plan") && body.contains("a task `build` exists"),
        "{body}"
    );
}

#[test]
fn the_same_error_is_repaired_once() {
    let again = json!({"replace": [{"id": "build", "run": "echo no compiler >&2; exit 3"}]});
    let (_server, cli) = failed_with(&[again], "send_output = true");
    cli.run(&["plan", "repair", "--yes"]).ok();
    cli.policy("[origins]\nagent = 'allow'\n");
    assert_eq!(cli.run(&["run-all-ready"]).code, Some(1));
    let second = cli.run(&["plan", "repair", "--yes"]);
    assert_eq!(second.code, Some(7), "{second}");
    assert!(second.stderr.contains("for the same error"), "{second}");
}

#[test]
fn a_manual_task_gets_subtasks_and_keeps_its_id() {
    let subtasks = json!({"add": [
        {"id": "read", "name": "It is read", "x-why": "a"},
        {"id": "say", "name": "It is said", "x-why": "b", "needs": ["read"]},
    ]});
    let server = Server::start(vec![openai(&subtasks.to_string())]);
    let cli = of_server_with(&server, "openai", "send_output = true");
    cli.file("work.yaml", "name: work\ntasks:\n- {id: find, run: echo three files}\n- {id: review, needs: [find], name: Look at it}\n");
    assert_eq!(cli.run(&["run-all-ready", "work.yaml"]).code, Some(3));
    let expanded = cli.run(&["plan", "expand", "review", "--yes"]).ok();
    assert!(expanded.stdout.contains("  review\n+   subtasks: "), "{expanded}");
    assert!(!expanded.stdout.contains("find\n"), "a task that stays is no difference: {expanded}");
    assert!(server.received()[0].body.to_string().contains("three files"));
    let show = cli.run(&["show", "review", "--json"]).ok().json();
    assert_eq!(show["data"]["subtasks"], json!(["read", "say"]));
    cli.run(&["undo"]).ok();
    assert_eq!(cli.run(&["show", "review", "--json"]).ok().json()["data"]["subtasks"], json!([]));
    let calls = cli.run(&["plan", "expand", "find", "--yes"]);
    assert_eq!(calls.code, Some(7), "{calls}");
}

#[test]
fn a_failed_run_goes_on_with_the_repair_that_a_person_wants() {
    for (answer, states) in [("y", ["done", "todo"]), ("n", ["failed", "blocked"])] {
        let server = Server::start(vec![openai(&patch().to_string())]);
        let cli = of_server_with(&server, "openai", "send_output = true").at_a_terminal();
        cli.policy("[origins]\nagent = 'allow'\n");
        cli.file("release.yaml", PLAN);
        let shown = answered(&cli, &["run-all-ready", "release.yaml", "--replan"], &[answer]);
        assert!(shown.contains("+ tools") && shown.contains("Change plan `release` so?"), "{shown}");
        let show = |id: &str| cli.run(&["show", id, "--json"]).ok().json()["data"]["status"].clone();
        assert_eq!([show("build"), show("review")], states, "{shown}");
    }
}

#[test]
fn a_run_that_could_not_replan_does_not_start() {
    for (output, code) in [("send_output = true", 7), ("", 2)] {
        let server = Server::start(vec![openai(&patch().to_string())]);
        let cli = of_server_with(&server, "openai", output);
        cli.file("release.yaml", PLAN);
        let refused = cli.run(&["run-all-ready", "release.yaml", "--replan"]);
        assert_eq!(refused.code, Some(code), "{refused}");
        assert_eq!(cli.run(&["runs", "--json"]).json()["data"], json!([]), "{refused}");
    }
}

#[test]
fn an_unusable_repair_leaves_the_run_failed() {
    let server = Server::start(vec![openai("no idea")]);
    let cli = of_server_with(&server, "openai", "send_output = true").at_a_terminal();
    cli.file("release.yaml", PLAN);
    let shown = answered(&cli, &["run-all-ready", "release.yaml", "--replan"], &["y"]);
    assert!(shown.contains("the plan was not repaired"), "{shown}");
}

#[test]
fn a_policy_lets_a_planner_retry_failed_calls_as_they_are_and_nothing_else() {
    let retry = json!({"retry": [{"id": "build", "reason": "the compiler was being installed"}]});
    let plan = "name: release\ntasks:\n- {id: build, run: 'test -e there || { touch there; exit 3; }'}\n";
    let cases = [
        (&retry, "user", Some(0), "done"),
        (&patch(), "user", Some(1), "failed"),
        // The file of a project only narrows, and without a policy a person is asked.
        (&retry, "project", Some(7), "todo"),
    ];
    for (answer, place, code, state) in cases {
        let server = Server::start(vec![openai(&answer.to_string())]);
        let cli = of_server_with(&server, "openai", "send_output = true");
        let policy = "[powers]\nretries = 'allow'\n";
        if place == "user" {
            cli.policy(policy);
        } else {
            cli.file("taskpawl-policy.toml", policy);
        }
        cli.file("release.yaml", plan);
        let run = cli.run(&["run-all-ready", "release.yaml", "--replan"]);
        assert_eq!(run.code, code, "{answer} {place} {run}");
        cli.run(&["apply", "release.yaml"]);
        let shown = cli.run(&["show", "build", "--json"]).json()["data"].clone();
        assert_eq!(shown["status"], state, "{answer} {place} {run}");
        assert_eq!(shown["metadata"]["toolCalls"][0]["origin"], "plan", "{run}");
    }
}

#[test]
fn only_failed_tasks_are_retried() {
    let wrong = json!({"retry": [{"id": "review", "reason": "x"}]});
    let (server, cli) = failed_with(&[wrong, patch()], "send_output = true");
    cli.run(&["plan", "repair", "--yes"]).ok();
    let second = server.received()[1].body.to_string();
    assert!(second.contains("`review` has not failed, but is blocked"), "{second}");
}
