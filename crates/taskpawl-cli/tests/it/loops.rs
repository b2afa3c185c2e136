//! Plans with loops, pauses, retries and dynamic tasks, run by the real program.

use std::process::Stdio;

use crate::harness::Cli;

/// Pauses need a real clock: under the fixed clock they never end.
fn cli_with_a_clock() -> Cli {
    Cli::new().with_programs().with("TASKPAWL_TEST_NOW", "")
}

const PLAN: &str = r#"
version: 1
tasks:
  - id: list
    call: {exec: {argv: [sh, -c, 'printf ''["a b", "c"]'''], parse: json}}
  - id: each
    needs: [list]
    forEach: {in: '${{ tasks.list.result.json }}'}
    calls: [{id: say, shell: {command: 'echo ${{ item }} ${{ index }}'}}]
  - id: poll
    repeat: {until: context.look.json >= 3, max: 5, delay: 10ms}
    calls: [{id: look, shell: {command: 'echo x >> rounds; wc -l < rounds', parse: json}}]
  - id: flaky
    retry: {attempts: 3, delay: 10ms, retryOn: [75]}
    run: 'echo x >> tries; [ $(wc -l < tries) -ge 3 ] || exit 75'
  - id: grow
    calls: [{id: emit, emit: true, exec: {argv: [echo, '{"tasks": [{"id": "grown", "run": "echo grown", "neededBy": "end"}]}'], parse: json}}]
  - id: no
    when: tasks.list.result.json | length > 2
    needs: [list]
    run: 'echo never'
  - id: end
    needs: [each, poll, flaky, grow, no]
    call: {log: {message: '${{ tasks.each.results | length }} items, no: ${{ tasks.no.status }}'}}
"#;

#[test]
fn a_plan_with_every_loop_runs_to_its_end() {
    let cli = cli_with_a_clock();
    cli.policy("[origins]\nagent = \"sandboxed\"\n");
    cli.file("plan.yaml", PLAN);
    cli.run(&["apply", "plan.yaml"]).ok();
    let run = cli.run(&["run-all-ready", "--quiet"]);
    assert_eq!(run.code, Some(0), "{run}");
    let list = cli.run(&["list", "--json", "--fields", "id,status"]).ok().json()["data"].clone();
    let mut states: Vec<String> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|task| format!("{}={}", task["id"].as_str().unwrap(), task["status"].as_str().unwrap()))
        .collect();
    states.sort();
    assert_eq!(
        states.join(" "),
        "each.0=done each.1=done each=done end=done flaky=done grow=done grown=done list=done no=skipped poll=done"
    );
    let show = |id: &str| cli.run(&["show", id, "--json"]).ok().json()["data"].clone();
    assert_eq!(show("each.0")["metadata"]["toolCalls"][0]["result"]["stdout"], "a b 0\n");
    assert_eq!((show("poll")["round"].as_u64(), show("poll")["attempt"].as_u64()), (Some(3), Some(1)));
    assert_eq!(show("flaky")["metadata"]["toolCalls"][0]["attempts"], 3);
    assert_eq!(show("end")["metadata"]["toolCalls"][0]["evaluatedArgs"]["message"], "2 items, no: skipped");
    let history = cli.run(&["history", "flaky"]).ok().stdout;
    assert!(history.contains("call c1 failed, again at "), "{history}");
    let text = cli.run(&["show", "poll"]).ok().stdout;
    assert!(text.contains("3 of at most 5 are over"), "{text}");
}

#[test]
fn a_loop_that_is_killed_in_the_middle_goes_on_where_it_was() {
    let cli = cli_with_a_clock();
    let plan = "
tasks:
  - id: each
    forEach: {in: [1, 2, 3]}
    repeat: {until: context.c1.json >= 4, max: 4}
    call: {shell: {command: 'echo x >> at-${{ item }}; n=$(wc -l < at-${{ item }}); [ $n != 2 ] || while [ ! -e go ]; do sleep 0.05; done; echo $n', parse: json}}
";
    cli.file("plan.yaml", plan);
    cli.run(&["apply", "plan.yaml"]).ok();
    let mut command = cli.command(&cli.path("work"), &["run-all-ready", "--jobs", "3"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn().unwrap();
    let show = |id: &str| cli.run(&["show", id, "--json"]).ok().json()["data"].clone();
    while (0..3).any(|n| show(&format!("each.{n}"))["metadata"]["toolCalls"][0]["attempts"] != 2) {
        std::thread::yield_now();
    }
    run.kill().unwrap();
    run.wait().unwrap();
    cli.file("go", "");
    // The outcome of each second round is unknown. A person reports it, and all tasks continue with their third
    // round.
    cli.run(&["run-all-ready", "--quiet"]);
    let ids = ["each.0", "each.1", "each.2"];
    for id in ids {
        assert_eq!(show(id)["round"], 1, "{id}: {}", show(id));
    }
    cli.run(&["done", "each.0", "each.1", "each.2", "--result", r#"{"json": 2}"#]).ok();
    let run = cli.run(&["run-all-ready", "--quiet"]);
    assert_eq!(run.code, Some(0), "{run}");
    for id in ids {
        let task = show(id);
        assert_eq!((task["status"].as_str(), task["round"].as_u64()), (Some("done"), Some(4)), "{task}");
    }
}

#[test]
fn the_logs_of_a_foreach_are_those_of_its_items() {
    let cli = cli_with_a_clock();
    let items: Vec<String> = (0..12).map(|number| format!("n{number}")).collect();
    let plan = format!(
        "tasks: [{{id: each, forEach: {{in: [{}]}}, run: 'echo of ${{{{ item }}}}'}}]",
        items.join(", ")
    );
    cli.file("plan.yaml", &plan);
    cli.run(&["apply", "plan.yaml"]).ok();
    let before = cli.run(&["logs", "each"]).ok();
    assert!(before.stderr.contains("`each` has not been started"), "{before}");
    cli.run(&["run-all-ready", "--quiet"]).ok();
    let all = cli.run(&["logs", "each"]).ok();
    let printed: Vec<&str> = all.stdout.lines().filter_map(|line| line.strip_prefix("of ")).collect();
    assert_eq!(printed, items, "in the order of the list: {all}");
    assert!(all.stdout.contains("== each.10: c1 shell, start 1, stdout ==\nof n10\n"), "{all}");
    let json = cli.run(&["logs", "each", "--json"]).ok().json()["data"].clone();
    assert_eq!((&json[2]["task"], &json[2]["text"]), (&"each.2".into(), &"of n2\n".into()), "{json}");
    let one = cli.run(&["logs", "each.3"]).ok();
    assert_eq!(one.stdout, "of n3\n", "an item is a task as any other");
}
