//! Tests of runs as processes: output, exit codes, and several runs that share the work.

use std::fmt::Write;
use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Cli, Run};

const PLAN: &str = "
name: demo
tasks:
  - {id: a, name: First, run: echo one}
  - {id: b, name: Second, needs: a, run: 'echo two; echo oh no >&2; exit 3'}
  - {id: c, name: Third, needs: b, run: echo three}
  - {id: d, name: By hand}
";

fn with_plan(plan: &str) -> Cli {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", plan);
    cli
}

/// Returns the output with every measured time, such as `12 ms` or `1.5 s`, replaced.
fn stable(run: &Run) -> String {
    let text = run.to_string();
    let words: Vec<&str> = text.split(' ').collect();
    let mut stable = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let unit =
            words.get(at + 1).map(|next| next.lines().next().unwrap_or_default().trim_end_matches(':'));
        let is_time = word.parse::<f64>().is_ok() && unit.is_some_and(|unit| matches!(unit, "ms" | "s"));
        let is_unit = at > 0
            && *stable.last().unwrap() == "0"
            && matches!(word.lines().next(), Some("s" | "ms" | "s:" | "ms:"));
        stable.push(match (is_time, is_unit) {
            (true, _) => "0".to_owned(),
            (_, true) => word.replacen("ms", "s", 1),
            _ => (*word).to_owned(),
        });
    }
    stable.join(" ")
}

#[test]
fn a_run_says_what_ended_and_how_to_go_on() {
    let cli = with_plan(PLAN);
    let run = cli.run(&["run-all-ready", "--plan", "plan.yaml", "--jobs", "1"]);
    assert!(!run.stderr.contains('\u{1b}') && !run.stdout.contains('\u{1b}'), "piped output has no escapes");
    insta::assert_snapshot!(stable(&run));
}

#[test]
fn a_plan_file_runs_where_a_task_is_expected_unless_a_task_has_its_name() {
    let cli = with_plan("{name: p, tasks: [{id: a, run: 'echo x >> ran'}]}");
    let ran = || fs::read_to_string(cli.path("work/ran")).unwrap_or_default().lines().count();
    assert_eq!(cli.run(&["run", "other.yaml"]).code, Some(6), "neither a task nor a file");
    cli.run(&["run", "plan.yaml"]).ok();
    assert_eq!(ran(), 1);
    cli.run(&["run-all-ready", "plan.yaml", "--fresh"]).ok();
    assert_eq!(ran(), 2);
    cli.file("a", "no plan");
    cli.run(&["reopen", "a"]).ok();
    cli.run(&["run", "a"]).ok();
    assert_eq!(ran(), 3, "an id wins");
    let both = cli.run(&["run-all-ready", "plan.yaml", "--plan", "plan.yaml"]);
    assert_eq!(both.code, Some(2), "{both}");
}

#[test]
fn a_summary_is_one_document_and_events_are_many() {
    let cli = with_plan(PLAN);
    cli.run(&["apply", "plan.yaml"]).ok();
    let run = cli.run(&["run-all-ready", "--json", "--quiet", "--jobs", "1"]);
    insta::assert_snapshot!(run);
    cli.run(&["retry", "--failed"]).ok();
    let run = cli.run(&["run-all-ready", "--format", "ndjson", "--only", "b"]);
    let events: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        ["run_started", "call_started", "call_ended", "task_ended", "task_ended", "summary"],
        "{run}"
    );
    assert!(events.iter().all(|event| event["at"] == "2026-01-02T03:04:05Z"), "{run}");
    assert_eq!((run.code, events.last().unwrap()["exit"].as_u64()), (Some(1), Some(1)), "{run}");
    let both = cli.run(&["run-all-ready", "--format", "ndjson", "--json"]);
    assert_eq!(both.code, Some(2), "{both}");
}

#[test]
fn the_exit_code_tells_how_it_stands() {
    let cli = with_plan("tasks: [{id: a, run: 'true'}, {id: b}, {id: c, needs: b, run: 'true'}]");
    let code = |args: &[&str]| cli.run(args).code.unwrap();
    assert_eq!(code(&["run-all-ready", "--plan", "plan.yaml"]), 3, "b waits for somebody");
    assert_eq!(code(&["run", "c"]), 4, "c is blocked until b is finished");
    assert_eq!(code(&["run-all-ready", "--only", "a"]), 0, "a is finished");
    assert_eq!(code(&["run-all-ready", "--only", "nothing"]), 6);
    cli.run(&["done", "b"]).ok();
    assert_eq!(code(&["run", "c"]), 0);
    let broken = Cli::new().with("TASKPAWL_STORE", "/proc/nowhere/tasks.db");
    assert_eq!(broken.run(&["run-all-ready"]).code, Some(8));
}

#[test]
fn a_plan_runs_afresh_and_as_an_instance() {
    let cli = with_plan("{name: count, tasks: [{id: a, run: 'echo x >> ran'}]}");
    let ran = || fs::read_to_string(cli.path("work/ran")).unwrap().lines().count();
    let run = |args: &[&str]| cli.run(&[&["run-all-ready", "--plan", "plan.yaml"], args].concat()).ok();
    run(&[]);
    run(&[]);
    assert_eq!(ran(), 1, "what is done does not run again");
    run(&["--fresh"]);
    assert_eq!(ran(), 2);
    run(&["--as", "other"]);
    assert_eq!(ran(), 3);
    assert_eq!(cli.run(&["show", "other.a", "--fields", "status"]).ok().json()["data"]["status"], "done");
    assert_eq!(cli.run(&["run-all-ready", "--fresh"]).code, Some(2), "only a plan is run afresh");
}

#[test]
fn two_runs_on_one_store_share_the_work() {
    let mut plan = String::from("tasks:\n");
    for task in 0..60 {
        // `mkdir` fails on an existing directory, so a call that is started twice fails its task.
        writeln!(plan, "- {{id: t{task}, run: [mkdir, dir-{task}]}}").unwrap();
    }
    let cli = with_plan(&plan);
    cli.run(&["apply", "plan.yaml"]).ok();
    let start = || {
        let mut command = cli.command(&cli.path("work"), &["run-all-ready", "--format", "ndjson"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let runs = [start(), start()].map(|child| child.wait_with_output().unwrap());
    let mut started = 0;
    for run in runs {
        let text = String::from_utf8(run.stdout).unwrap();
        assert_eq!(run.status.code(), Some(0), "{text}\n{}", String::from_utf8_lossy(&run.stderr));
        started += text.matches("\"type\":\"call_started\"").count();
    }
    assert_eq!(started, 60, "`mkdir` fails where it runs twice, and each call was started once");
    let tasks = cli.run(&["list", "--limit", "0", "--fields", "status,attempt"]).ok().json();
    assert!(
        tasks["data"].as_array().unwrap().iter().all(|task| task["status"] == "done" && task["attempt"] == 1)
    );
}

#[test]
fn a_program_that_prints_without_end_is_killed_and_fails() {
    let cli = with_plan("tasks: [{id: endless, run: ['yes']}]");
    let run = cli.run(&["run-all-ready", "--plan", "plan.yaml", "--quiet"]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stdout.contains("exec: it printed too much: 1 task"), "{run}");
    let shown = cli.run(&["show", "endless", "--json"]).ok();
    assert!(shown.stdout.len() < 2 << 20, "head and tail are kept, not all");
}

#[test]
fn text_from_tools_cannot_move_the_cursor() {
    let plan = r#"
tasks:
  - {id: hostile, name: "\e[2Jhostile", run: 'printf "\033[2J\033]0;title\007out\n"; printf "\033[1Aerr\377\n" >&2; exit 1'}
  - {id: silent, run: 'true'}
  - {id: bytes, run: 'printf "\377\376a\n"'}
"#;
    let cli = with_plan(plan);
    let run = cli.run(&["run-all-ready", "--plan", "plan.yaml"]);
    assert_eq!(run.code, Some(1), "{run}");
    for text in [&run.stdout, &run.stderr] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
    assert!(run.stdout.contains("    hostile\n"), "{run}");
    let json = cli.run(&["logs", "hostile", "--json"]).ok();
    assert!(!json.stdout.contains('\u{1b}'), "{json}");
    assert_eq!(json.json()["data"][0]["text"], "\u{1b}[2J\u{1b}]0;title\u{7}out\n");
    let raw = cli.command(&cli.path("work"), &["logs", "bytes", "--raw"]).output().unwrap();
    assert_eq!(raw.stdout, b"\xff\xfea\n");
    let silent = cli.run(&["logs", "silent"]).ok();
    insta::assert_snapshot!(silent, @r#"
    $ taskpawl logs silent
    ! `silent` printed nothing that was asked for; `taskpawl show silent` has the results of its calls
    "#);
}

#[test]
fn a_budget_ends_a_run_and_says_what_was_spent() {
    let cli = with_plan(
        "tasks: [{id: a, call: {exec: {argv: [echo, '{\"usage\": {\"cost\": 1.5}}'], parse: json}}}, {id: b, needs: a, run: 'true'}, {id: c, needs: b, run: 'true'}]",
    );
    let run = cli.run(&["run-all-ready", "--plan", "plan.yaml", "--budget", "cost=1", "--quiet"]);
    insta::assert_snapshot!(run);
    let wrong = cli.run(&["run-all-ready", "--budget", "money=1"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("`money` is no limit"), "{wrong}");
    let run = cli.run(&["run-all-ready", "--budget", "calls=1", "--json"]);
    let json = run.json();
    assert_eq!(json["data"]["endedEarly"][0]["limit"], "budget.calls", "{run}");
}

#[test]
fn a_task_with_unchanged_inputs_takes_its_last_success() {
    let cli = with_plan("tasks: [{id: a, cache: {inputs: [in.txt]}, run: 'cat in.txt'}]");
    cli.file("in.txt", "1");
    cli.run(&["run-all-ready", "--plan", "plan.yaml"]).ok();
    let run = cli.run(&["run-all-ready", "--plan", "plan.yaml", "--fresh"]).ok();
    assert!(run.stderr.contains("a  cached"), "{run}");
    assert!(run.stdout.contains("1 taken from an earlier success"), "{run}");
    let shown = cli.run(&["show", "a"]).ok();
    assert!(shown.stdout.contains("nothing that it depends on had changed since"), "{shown}");
    let history = cli.run(&["history", "a"]).ok();
    assert!(history.stdout.contains("done, with the result of an earlier success"), "{history}");
    cli.file("in.txt", "2");
    let run = cli.run(&["run-all-ready", "--plan", "plan.yaml", "--fresh", "--json"]).ok();
    assert_eq!(run.json()["data"].get("cached"), None, "{run}");
}

#[test]
fn what_a_restricted_run_leaves_out_is_named_where_something_waits_for_it() {
    let cli = with_plan(
        "tasks: [{id: first, run: 'true'}, {id: second, run: 'true'}, {id: b, needs: [first, second], run: 'true'}, \
         {id: above, needs: first, subtasks: [{id: below, run: 'true'}]}]",
    );
    cli.run(&["apply", "plan.yaml"]).ok();
    let run = cli.run(&["run-all-ready", "--only", "b", "--quiet"]);
    assert_eq!(run.code, Some(4), "{run}");
    assert!(run.stdout.contains("b: waits for `first` and 1 more, which this run does not include"), "{run}");
    let run = cli.run(&["run-all-ready", "--only", "below", "--json"]);
    assert_eq!(
        run.json()["data"]["notRun"][0]["reason"],
        "waits for `first`, which this run does not include",
        "{run}"
    );
    // A full run leaves nothing out, so nothing is reported.
    let run = cli.run(&["run-all-ready", "--json"]).ok();
    assert_eq!(
        run.json()["data"].get("notRun").and_then(|list| list.as_array()).map_or(0, Vec::len),
        0,
        "{run}"
    );
}

#[test]
fn output_is_shown_of_all_failures_and_of_a_run() {
    let cli = with_plan(
        "tasks: [{id: a, run: 'echo from a; test -e go'}, {id: b, run: 'echo from b >&2; exit 3'}, {id: c, run: echo from c}]",
    );
    assert!(cli.run(&["logs", "--failed"]).ok().stderr.contains("no task has failed"));
    cli.run(&["run-all-ready", "--plan", "plan.yaml", "--quiet"]);
    insta::assert_snapshot!(cli.run(&["logs", "--failed"]).ok().stdout, @r"
    == a: c1 shell, start 1, stdout ==
    from a
    == b: c1 shell, start 1, stderr ==
    from b
    ");
    cli.file("go", "");
    cli.run(&["run-all-ready", "--retry-failed", "--quiet"]);
    let runs = cli.run(&["runs", "--json"]).ok().json();
    let id = |at: usize| runs["data"][at]["id"].as_str().unwrap().to_owned();
    let second = cli.run(&["logs", "--run", &id(0)]).ok().stdout;
    assert!(second.contains("== a: c1 shell, start 2, stdout ==\nfrom a\n"), "{second}");
    assert!(!second.contains("from c") && !second.contains("start 1"), "{second}");
    let first = cli.run(&["logs", "c", "--run", &id(1), "--json"]).ok().json();
    assert_eq!(first["data"][0]["text"], "from c\n");
    assert_eq!(cli.run(&["logs", "--run", "nowhere"]).code, Some(6));
    assert_eq!(cli.run(&["logs"]).code, Some(2));
}

#[test]
fn a_run_tells_what_it_did() {
    let cli = with_plan(
        "tasks: [{id: a, run: 'true'}, {id: b, needs: a, run: 'exit 3'}, {id: c, needs: b, run: 'true'}]",
    );
    cli.run(&["run-all-ready", "--plan", "plan.yaml", "--quiet"]);
    let id = cli.run(&["runs", "--json"]).ok().json()["data"][0]["id"].as_str().unwrap().to_owned();
    let run = cli.run(&["runs", &id[..8]]).ok();
    assert!(
        run.stdout.starts_with(&format!("run {id}  exit 1 in 0 ms\n  runs plan:plan, started ")),
        "{run}"
    );
    let lines: Vec<&str> = run.stdout.lines().skip(3).collect();
    assert!(lines.len() == 2 && lines[0].contains("a  done"), "what was not started is not listed: {run}");
    assert!(lines[1].contains("b  failed") && lines[1].contains("exited with code 3"), "{run}");
    assert!(run.stderr.contains("logs --run"), "{run}");
    let json = cli.run(&["runs", &id, "--json"]).ok().json();
    assert_eq!(json["data"]["tasks"][1]["calls"][0]["status"], "failed", "{json}");
    assert_eq!(cli.run(&["runs", "nowhere"]).code, Some(6));
}

#[test]
fn failed_tasks_that_are_gone_from_the_file_are_offered_to_be_skipped() {
    let cli = with_plan("tasks: [{id: bad, run: 'exit 3'}, {id: also, run: 'exit 4'}]");
    let run = || cli.run(&["run-all-ready", "plan.yaml"]);
    run();
    cli.file("plan.yaml", "tasks: [{id: also, run: 'exit 4'}]");
    let one = run().stdout;
    assert!(one.contains("skip bad") && one.contains("--retry-failed"), "`also` can be tried again: {one}");
    cli.file("plan.yaml", "tasks: [{id: also, run: 'true'}]");
    let none = run().stdout;
    assert!(none.contains("skip bad") && !none.contains("--retry-failed"), "{none}");
}

#[test]
fn with_few_descriptors_tasks_wait_for_a_place() {
    let items: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let each = format!("forEach: {{in: [{}]}}", items.join(", "));
    // Each program needs two more descriptors when it prints.
    let cli = with_plan(&format!(
        "tasks:
- {{id: programs, {each}, run: 'sleep 0.1; echo out; echo err >&2; sleep 0.1'}}
- {{id: files, {each}, calls: [{{write_file: {{path: 'made/${{{{ item }}}}', content: x}}}}]}}
- {{id: searches, {each}, calls: [{{grep: {{pattern: task}}}}]}}
"
    ));
    for (limit, store) in [("64", "many.db"), ("40", "few.db")] {
        let run = ["run-all-ready", "plan.yaml", "--jobs", "40", "--store", store];
        let run = cli.command(&cli.path("work"), &run);
        let mut few = std::process::Command::new("/bin/sh");
        few.args(["-c", "ulimit -n \"$0\"; exec \"$@\"", limit]).arg(run.get_program()).args(run.get_args());
        few.current_dir(cli.path("work")).env_clear();
        few.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = few.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        let failed = cli.run(&["list", "--json", "--status", "failed", "--store", store]).ok().json();
        assert_eq!(failed["data"], serde_json::json!([]));
    }
}

#[test]
fn the_calls_of_two_runs_can_be_compared() {
    let cli = Cli::new();
    cli.file("p.yaml", "name: p\ntasks:\n- {id: same, run: echo a}\n- {id: other, run: date +%N}\n");
    let hashes = || {
        cli.run(&["run-all-ready", "p.yaml", "--fresh"]).ok();
        let id = cli.run(&["runs", "--json"]).json()["data"][0]["id"].as_str().unwrap().to_owned();
        let run = cli.run(&["runs", &id, "--json"]).ok().json();
        let of = |task: &str| {
            let tasks = run["data"]["tasks"].as_array().unwrap();
            let call = &tasks.iter().find(|entry| entry["task"] == task).unwrap()["calls"][0];
            assert_eq!(call["argsHash"].as_str().map(str::len), Some(16), "{run}");
            (call["argsHash"].clone(), call["resultHash"].clone())
        };
        (of("same"), of("other"))
    };
    let (first, second) = (hashes(), hashes());
    assert_eq!((&first.0, &first.1.0), (&second.0, &second.1.0));
    assert_ne!(first.1.1, second.1.1, "the results differ");
}

#[test]
fn a_failed_task_that_is_gone_from_the_file_is_offered_an_end() {
    let cli = Cli::new().with_programs();
    cli.file("p.yaml", "tasks: [{id: a, run: exit 1}]");
    assert_eq!(cli.run(&["run-all-ready", "--plan", "p.yaml"]).code, Some(1));
    cli.file("p.yaml", "tasks: [{id: b, run: 'true'}]");
    let run = cli.run(&["run-all-ready", "--plan", "p.yaml", "--retry-failed"]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stdout.contains("\n  taskpawl skip a\n"), "{run}");
    cli.run(&["skip", "a", "--quiet"]).ok();
    cli.run(&["run-all-ready", "--plan", "p.yaml"]).ok();
}
