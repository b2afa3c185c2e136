//! Tests of the commands that read runs: `runs`, `logs`, `graph` and `history`.

use std::fmt::Write;
use std::process::Stdio;

use crate::harness::Cli;

const PLAN: &str = r#"
name: release
tasks:
  - {id: build, name: 'Build "it" <b>', run: 'echo building; echo warning >&2'}
  - id: tests
    needs: build
    subtasks:
      - {id: unit, run: echo unit}
      - {id: docs, call: [{run: echo docs one}, {run: echo docs two}]}
  - {id: sign, name: Sign off, needs: tests}
  - {id: ship, needs: [sign, unit], run: 'false'}
"#;

fn after_a_run() -> Cli {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", PLAN);
    cli.run(&["run-all-ready", "--plan", "plan.yaml", "--jobs", "1", "--quiet"]);
    cli
}

#[test]
fn graphs_are_text_dot_and_mermaid() {
    let cli = after_a_run();
    insta::assert_snapshot!("graph-text", cli.session(&[&["graph"], &["graph", "--only", "tests"]]));
    insta::assert_snapshot!("graph-dot", cli.run(&["graph", "--format", "dot"]));
    insta::assert_snapshot!("graph-mermaid", cli.run(&["graph", "--format", "mermaid"]));
    insta::assert_snapshot!("graph-json", cli.run(&["graph", "--json", "--only", "tests"]));
}

#[test]
fn a_graph_of_10_000_tasks_is_drawn() {
    let cli = Cli::new();
    let mut plan = String::from("tasks:\n- {id: t0}\n");
    for task in 1..10_000 {
        writeln!(plan, "- {{id: t{task}, needs: t{}}}", task - 1).unwrap();
    }
    cli.file("plan.yaml", &plan);
    cli.run(&["apply", "plan.yaml", "--quiet"]).ok();
    let text = cli.run(&["graph"]).ok().stdout;
    assert!(text.ends_with("layer 10000\n  todo         t9999  ← t9998\n"), "{}", &text[text.len() - 200..]);
    for format in ["dot", "mermaid"] {
        assert!(cli.run(&["graph", "--format", format]).ok().stdout.lines().count() > 19_999);
    }
}

#[test]
fn history_has_a_line_for_each_event() {
    let cli = after_a_run();
    cli.run(&["note", "sign", "ask the lawyer"]).ok();
    cli.run(&["update", "sign", "--priority", "high"]).ok();
    cli.run(&["done", "sign", "--note", "fine"]).ok();
    insta::assert_snapshot!("history", cli.run(&["history", "--limit", "0"]));
    insta::assert_snapshot!(
        "history-task",
        cli.session(&[&["history", "sign"], &["history", "sign", "--limit", "1"]])
    );
    insta::assert_snapshot!("history-json", cli.run(&["history", "--since", "8", "--limit", "2", "--json"]));
    assert_eq!(cli.run(&["history", "nobody"]).code, Some(6));
}

#[test]
fn runs_are_listed_the_latest_first() {
    let cli = after_a_run();
    cli.run(&["done", "sign"]).ok();
    cli.run(&["run-all-ready", "--quiet"]);
    insta::assert_snapshot!(
        "runs",
        cli.session(&[&["runs"], &["runs", "--limit", "1"], &["runs", "--json"]])
    );
}

#[test]
fn logs_show_every_start() {
    let cli = after_a_run();
    cli.run(&["reopen", "build", "--cascade"]).ok();
    cli.run(&["run-all-ready", "--quiet"]);
    insta::assert_snapshot!(
        "logs",
        cli.session(&[
            &["logs", "build"],
            &["logs", "build", "--attempt", "1", "--stderr"],
            &["logs", "docs", "--call", "c2"],
            &["logs", "docs", "--call", "c9"],
            &["logs", "sign"],
            &["logs", "docs", "--call", "c1", "--fields", "call,attempt,stream,text"],
        ])
    );
}

#[test]
fn logs_follow_a_task_that_another_process_runs() {
    let cli = Cli::new().with_programs();
    cli.file(
        "plan.yaml",
        "tasks: [{id: slow, run: 'echo begin; until test -e go; do sleep 0.02; done; echo end'}]",
    );
    cli.run(&["apply", "plan.yaml"]).ok();
    let start = |args: &[&str]| {
        let mut command = cli.command(&cli.path("work"), args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut logs = start(&["logs", "slow", "-f", "--quiet"]);
    let run = start(&["run-all-ready"]);
    let mut begin = [0; 6];
    // The call waits for `go`, so these bytes can only come from a call that still runs.
    std::io::Read::read_exact(logs.stdout.as_mut().unwrap(), &mut begin).unwrap();
    assert_eq!(&begin, b"begin\n", "it is shown while the call runs");
    cli.file("go", "");
    assert!(run.wait_with_output().unwrap().status.success());
    let output = logs.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"end\n".as_slice()));
}

#[test]
fn show_says_what_of_a_result_was_cut() {
    let cli = Cli::new().with_programs();
    let lines = "{exec: {argv: [seq, -f, 'line %01000g', '1', '400']}}";
    let file = "{read_file: {path: big.txt}}";
    cli.file("big.txt", &"line\n".repeat(60_000));
    cli.file("plan.yaml", &format!("tasks: [{{id: a, call: {lines}}}, {{id: b, call: {file}}}]"));
    cli.run(&["run-all-ready", "--plan", "plan.yaml", "--quiet"]).ok();
    let line = |id: &str| {
        let shown = cli.run(&["show", id]).ok().stdout;
        shown
            .lines()
            .find(|line| line.contains("cut:"))
            .map(|line| line.trim().to_owned())
            .unwrap_or_default()
    };
    insta::assert_snapshot!(format!("{}\n{}", line("a"), line("b")), @r"
    cut: stdout, 224.0 KiB of 392.9 KiB kept; `keep: 4MiB` on the call keeps more, `| partial` in an expression reads what is kept
    cut: content, 224.0 KiB kept; `keep: 4MiB` on the call keeps more, `| partial` in an expression reads what is kept
    ");
    cli.file("small.yaml", "tasks: [{id: c, call: {exec: {argv: [echo, a]}}}]");
    cli.run(&["run-all-ready", "--plan", "small.yaml", "--quiet"]).ok();
    assert_eq!(line("c"), "");
}
