//! Durable waits and signals on the command line: no process belongs to them, and each signal is taken once.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::harness::Cli;

fn with_plan(plan: &str) -> Cli {
    let cli = Cli::new().with_programs().with_clock();
    cli.file("plan.yaml", plan);
    cli.run(&["apply", "plan.yaml", "--quiet"]).ok();
    cli
}

fn task(cli: &Cli, id: &str) -> Value {
    cli.run(&["show", id, "--json"]).ok().json()["data"].clone()
}

fn start(cli: &Cli, args: &[&str]) -> Child {
    let mut command = cli.command(&cli.path("work"), args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

#[test]
fn a_run_whose_scope_only_waits_ends_with_3_and_says_for_what() {
    let cli = with_plan(
        "tasks:
  - {id: soak, call: {wait: {until: '2990-01-01T00:00:00Z'}}}
  - {id: late, notBefore: '2990-02-01T00:00:00Z', run: 'true'}
  - {id: review, call: {wait: {signal: review}}}
  - {id: after, needs: soak, run: 'true'}
",
    );
    let run = cli.run(&["run-all-ready"]);
    assert_eq!(run.code, Some(3), "{run}");
    for text in ["waits until 2990-01-01", "waits until 2990-02-01", "waits for the signal `review`"] {
        assert!(run.stdout.contains(text), "{text}: {run}");
    }
    let soak = task(&cli, "soak");
    assert_eq!(soak["status"], "in_progress");
    assert_eq!(soak["waitingFor"]["time"], "2990-01-01T00:00:00Z");
    assert_eq!(soak["claim"]["run"], Value::Null);
    assert_eq!(task(&cli, "late")["status"], "todo");
    assert_eq!(task(&cli, "late")["waitingFor"]["time"], "2990-02-01T00:00:00Z");
    for args in [&["show", "soak"][..], &["explain", "soak"], &["list"], &["explain", "after"]] {
        let said = cli.run(args).ok();
        assert!(said.stdout.contains("waits until 2990-01-01"), "{said}");
    }
    let status = cli.run(&["status"]).ok();
    assert!(status.stdout.contains("Waits for a time or a signal:"), "{status}");
    // Neither recovery nor another run interrupts it, and no actor ends it by hand.
    assert_eq!(cli.run(&["run-all-ready", "--quiet"]).code, Some(3));
    assert_eq!(task(&cli, "soak")["attempt"], 1);
    assert_eq!(cli.run(&["done", "soak"]).code, Some(7));
    cli.run(&["cancel", "soak", "--quiet"]).ok();
    assert_eq!(task(&cli, "soak").get("waitingFor"), None);
}

#[test]
fn a_run_with_wait_goes_on_after_each_wait() {
    let cli = with_plan(
        "tasks:
  - {id: past, calls: [{wait: {until: '2020-01-01'}}, {wait: {for: 50ms}}, {exec: {argv: ['true']}}]}
  - {id: beside, mode: parallel, calls: [{wait: {for: 60ms}}, {exec: {argv: ['true']}}]}
  - {id: again, repeat: {until: 'context.w == 1', max: 3}, calls: [{id: w, wait: {for: 0ms}}]}
",
    );
    let run = cli.run(&["run-all-ready", "--wait", "--quiet"]);
    for id in ["past", "beside"] {
        assert_eq!(task(&cli, id)["status"], "done", "{run}");
    }
    assert_eq!(
        (&task(&cli, "again")["errorClass"], &task(&cli, "again")["round"]),
        (&json!("rounds"), &json!(3))
    );
}

#[test]
fn a_signal_is_the_result_of_the_call_and_is_taken_once() {
    let plan = "tasks:
  - id: release
    calls:
      - {id: answer, wait: {signal: review}}
      - {id: publish, when: context.answer.ok, exec: {argv: ['true']}}
  - {id: second, call: {wait: {signal: review}}}
";
    let cli = with_plan(plan);
    // One signal comes before any task waits, and one afterwards.
    let early = cli.run(&["signal", "review", "--data", "{\"ok\": false}", "--to", "second", "--json"]).ok();
    assert_eq!(early.json()["data"].get("takenBy"), None);
    let listed = cli.run(&["signal", "--list", "--json"]).ok().json()["data"].clone();
    assert_eq!((&listed[0]["name"], &listed[0]["to"]), (&json!("review"), &json!("second")));
    assert_eq!(cli.run(&["run-all-ready", "--quiet"]).code, Some(3));
    assert_eq!(task(&cli, "second")["result"], json!({"ok": false}));
    let sent = cli.run(&["signal", "review", "--data", "{\"ok\": true}", "--json"]).ok();
    assert_eq!(sent.json()["data"]["takenBy"], "release");
    assert_eq!(cli.run(&["run-all-ready", "--quiet"]).code, Some(0));
    let release = task(&cli, "release");
    assert_eq!(release["metadata"]["toolCalls"][1]["status"], "succeeded", "{release}");
    assert_eq!(cli.run(&["signal", "--list", "--json"]).ok().json()["data"], json!([]));
    // A finished task takes nothing, and wrong names and data are refused.
    assert_eq!(cli.run(&["signal", "review", "--to", "release"]).code, Some(7));
    assert_eq!(cli.run(&["signal", "a b"]).code, Some(7));
    assert_eq!(cli.run(&["signal", "go", "--data", "{"]).code, Some(2));
    cli.run(&["signal", "go", "--quiet"]).ok();
    assert_eq!(cli.run(&["signal", "go", "--drop", "--json"]).ok().json()["data"]["dropped"], 1);
}

#[test]
fn a_wait_for_a_signal_fails_after_its_timeout() {
    let cli = with_plan("tasks: [{id: a, call: {wait: {signal: go, timeout: 20ms}}}]\n");
    let run = cli.run(&["run-all-ready", "--wait", "--quiet"]);
    assert_eq!(run.code, Some(1), "{run}");
    let call = task(&cli, "a")["metadata"]["toolCalls"][0].clone();
    assert_eq!((&call["status"], &call["errorClass"]), (&json!("failed"), &json!("timeout")));
}

#[test]
fn an_agent_signals_only_tasks_that_it_may_report_on() {
    let cli =
        with_plan("tasks: [{id: a, assignee: person, call: {wait: {signal: go}}}]\n").with("CLAUDECODE", "1");
    assert_eq!(cli.run(&["run-all-ready", "--quiet"]).code, Some(3));
    assert_eq!(cli.run(&["signal", "go", "--to", "a"]).code, Some(7));
    // Without a receiver it is kept, and not for this task.
    cli.run(&["signal", "go", "--quiet"]).ok();
    assert_eq!(cli.run(&["run-all-ready", "--quiet"]).code, Some(3));
    assert_eq!(task(&cli, "a")["status"], "in_progress");
}

#[test]
fn a_claim_waits_for_a_task_and_without_one_ends_with_5() {
    let cli = with_plan("tasks: [{id: later, notBefore: '2990-01-01'}]\n");
    assert_eq!(cli.run(&["claim", "--next"]).code, Some(5));
    assert_eq!(cli.run(&["claim", "--next", "--wait=30ms"]).code, Some(5));
    assert_eq!(cli.run(&["claim", "later"]).code, Some(7));
    let mut claim = start(&cli, &["claim", "--next", "--wait"]);
    cli.run(&["create", "now", "--quiet"]).ok();
    assert!(claim.wait().unwrap().success());
    assert_eq!(task(&cli, "now")["status"], "in_progress");
    // The time has come: `claim` itself opens the task.
    cli.run(&["update", "later", "--set", "notBefore=\"2020-01-01\"", "--quiet"]).ok();
    cli.run(&["claim", "--next", "--quiet"]).ok();
    assert_eq!(task(&cli, "later")["status"], "in_progress");
}

#[test]
fn a_server_starts_runs_by_itself_and_goes_on_after_waits() {
    let cli = with_plan(
        "tasks:
  - {id: a, calls: [{wait: {for: 50ms}}, {wait: {signal: go}}, {exec: {argv: ['true']}}]}
  - {id: b, needs: a, approval: {ask: Now?}, run: 'true'}
",
    );
    let mut server = start(&cli, &["serve", "--run", "--quiet"]);
    wait_until(|| task(&cli, "a")["waitingFor"]["signal"] == "go");
    cli.run(&["signal", "go", "--quiet"]).ok();
    wait_until(|| task(&cli, "b")["status"] == "blocked");
    assert_eq!(task(&cli, "a")["status"], "done");
    server.kill().unwrap();
    server.wait().unwrap();
}

/// Two runs wait, one is killed, and signals arrive from several processes meanwhile.
#[test]
fn signals_are_taken_exactly_once_by_several_runs_one_of_which_is_killed() {
    const TASKS: usize = 12;
    let tasks: Vec<String> = (0..TASKS)
        .map(|number| {
            format!(
                "  - {{id: t{number:02}, calls: [{{wait: {{signal: go}}}}, {{exec: {{argv: ['true']}}, idempotent: true}}]}}\n"
            )
        })
        .collect();
    let cli = with_plan(&format!("tasks:\n{}", tasks.concat()));
    let mut runs = [start(&cli, &["run-all-ready", "--wait"]), start(&cli, &["run-all-ready", "--wait"])];
    let waiting = || {
        let counts = cli.run(&["list", "--status", "in_progress", "--json"]).ok().json();
        counts["data"].as_array().unwrap().len()
    };
    wait_until(|| waiting() == TASKS);
    for number in 0..TASKS / 2 {
        cli.run(&["signal", "go", "--data", &number.to_string(), "--quiet"]).ok();
    }
    runs[0].kill().unwrap();
    runs[0].wait().unwrap();
    let senders: Vec<Child> = (TASKS / 2..TASKS)
        .map(|number| start(&cli, &["signal", "go", "--data", &number.to_string(), "--quiet"]))
        .collect();
    for mut sender in senders {
        assert!(sender.wait().unwrap().success());
    }
    assert!(runs[1].wait().unwrap().success());
    let mut taken: Vec<u64> = (0..TASKS)
        .map(|number| {
            let task = task(&cli, &format!("t{number:02}"));
            assert_eq!(task["status"], "done");
            task["metadata"]["toolCalls"][0]["result"].as_u64().unwrap()
        })
        .collect();
    taken.sort_unstable();
    assert_eq!(taken, (0..TASKS as u64).collect::<Vec<_>>());
    assert_eq!(cli.run(&["signal", "--list", "--json"]).ok().json()["data"], json!([]));
}

#[test]
fn a_wait_that_ended_during_a_run_is_a_call_of_its_report() {
    let cli =
        with_plan("tasks: [{id: soak, call: {wait: {for: 30ms}}}, {id: open, call: {wait: {signal: go}}}]\n");
    let mut run = start(&cli, &["run-all-ready", "--wait", "--quiet"]);
    wait_until(|| task(&cli, "soak")["status"] == "done" && task(&cli, "open")["status"] == "in_progress");
    cli.run(&["signal", "go", "--quiet"]).ok();
    assert!(run.wait().unwrap().success());
    let junit = cli.run(&["report", "--junit", "-"]).ok().stdout;
    assert!(junit.contains("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"0\""), "{junit}");
    let trace = cli.run(&["trace", "--json"]).ok().json();
    let spans = trace["data"]["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().len();
    assert_eq!(spans, 5, "a run, two tasks, and a call of each: {trace}");
    let replay = cli.run(&["replay", "--speed", "1000", "--json"]).ok().json();
    assert_eq!(replay["data"]["counts"], json!({"done": 2}));
    let detail = cli.run(&["runs", replay["data"]["run"].as_str().unwrap(), "--json"]).ok().json();
    assert_eq!(detail["data"]["tasks"].as_array().map(Vec::len), Some(2), "{detail}");
}

#[test]
fn the_timeout_of_a_plan_ends_a_run_that_only_waits() {
    let cli = with_plan("timeout: 50ms\ntasks: [{id: a, call: {wait: {signal: never}}}, {id: b}]\n");
    let run = cli.run(&["run-all-ready", "--wait"]);
    assert_eq!(run.code, Some(3), "{run}");
    assert!(run.stdout.contains("`timeout` of 50ms is used up"), "{run}");
    // A plan outside of the scope has no end here.
    cli.file("other.yaml", "name: other\ntasks: [{id: c, call: {wait: {for: 80ms}}}]\n");
    let run = cli.run(&["run-all-ready", "other.yaml", "--wait"]).ok();
    assert!(!run.stdout.contains("used up"), "{run}");
}
