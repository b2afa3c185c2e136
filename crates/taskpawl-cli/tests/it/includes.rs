//! Plans that include other plan files, on the command line.

use std::fs;

use serde_json::{Value, json};

use crate::harness::Cli;

const CHECK: &str = "
params: {package: {type: string}}
tasks:
- {id: lint, run: 'echo lint ${{ params.package }}'}
- {id: test, needs: lint, run: 'echo test ${{ params.package }}'}
returns: {output: '${{ tasks.test.result.stdout | trim }}'}
";

const MAIN: &str = "
name: main
tasks:
- {id: find, run: echo parser}
- {id: check, needs: find, include: {file: parts/check.yaml, with: {package: '${{ tasks.find.result.stdout | trim }}'}}}
- {id: report, needs: check, run: 'echo ${{ tasks.check.result.output }}'}
";

fn states(cli: &Cli) -> Value {
    let listed = cli.run(&["list", "--json", "--fields", "id,status"]).ok().json()["data"].clone();
    let state = |task: &Value| (task["id"].as_str().unwrap().to_owned(), task["status"].clone());
    listed.as_array().unwrap().iter().map(state).collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn an_included_plan_is_checked_applied_run_and_followed() {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", MAIN);
    cli.file("parts/check.yaml", CHECK);
    assert!(cli.run(&["plan", "check", "plan.yaml"]).ok().stdout.contains("tasks          5"));
    cli.run(&["apply", "plan.yaml"]).ok();
    let all = json!({"find": "todo", "check": "todo", "check.lint": "todo", "check.test": "todo", "report": "todo"});
    assert_eq!(states(&cli), all);
    cli.run(&["run-all-ready", "plan.yaml"]).ok();
    assert_eq!(cli.run(&["logs", "report"]).ok().stdout, "test parser\n");
    let shown = cli.run(&["show", "check", "--json"]).ok().json()["data"].clone();
    assert_eq!(shown["result"], json!({"output": "test parser"}));
    // The same files change nothing. A changed one is followed, and a task that is gone from it is listed.
    let again = cli.run(&["apply", "plan.yaml", "--json"]).ok().json()["data"].clone();
    assert_eq!((&again["changed"], &again["gone"]), (&json!([]), &json!([])), "{again}");
    cli.file(
        "parts/check.yaml",
        &CHECK.replace("id: lint", "id: style").replace("needs: lint", "needs: style"),
    );
    let changed = cli.run(&["apply", "plan.yaml", "--json", "--redo-changed"]).ok().json()["data"].clone();
    assert_eq!(
        (&changed["created"], &changed["gone"]),
        (&json!(["check.style"]), &json!(["check.lint"])),
        "{changed}"
    );
}

#[test]
fn problems_name_the_lines_of_both_files() {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", MAIN);
    let found = |text: &str| -> Value {
        cli.file("parts/check.yaml", text);
        let run = cli.run(&["plan", "check", "plan.yaml", "--json"]);
        assert_eq!(run.code, Some(7), "{run}");
        run.json()["data"]["problems"][0].clone()
    };
    // A fault of the text, and one that is found with the tools.
    let fault = found(&CHECK.replace("echo lint", "echo ${{ params.pakage }}"));
    assert_eq!(
        (&fault["file"], &fault["line"], &fault["code"]),
        (&json!("plan.yaml"), &json!(5), &json!("unknown_param"))
    );
    let message = fault["message"].as_str().unwrap();
    assert!(
        message.starts_with("parts/check.yaml:4:29: tasks[0].run: the plan has no parameter"),
        "{message}"
    );
    let unknown = found(&CHECK.replace("run: 'echo lint ${{ params.package }}'", "call: {slep: {}}"));
    assert_eq!((&unknown["line"], &unknown["code"]), (&json!(5), &json!("unknown_tool")));
    assert_eq!(unknown["path"], "parts/check.yaml:4:3: task `check.lint`");
    let circle = found("- {id: a, include: ../plan.yaml}");
    let message = circle["message"].as_str().unwrap();
    assert!(message.contains("parts/check.yaml:1:11: [0].include: plans include each other"), "{message}");
    assert!(message.contains("plan.yaml → parts/check.yaml → plan.yaml"), "{message}");
    let applied = cli.run(&["apply", "plan.yaml"]);
    assert!(applied.code == Some(7) && applied.stderr.contains("parts/check.yaml:1:11"), "{applied}");
}

#[test]
fn a_field_that_a_value_of_with_cannot_have_is_reported_once_at_the_include() {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", &MAIN.replace("tasks.find.result.stdout", "tasks.find.result.stdoot"));
    cli.file("parts/check.yaml", CHECK);
    let run = cli.run(&["plan", "check", "plan.yaml", "--json"]);
    let problems = run.json()["data"]["problems"].clone();
    assert_eq!(problems.as_array().map(Vec::len), Some(1), "{problems}");
    assert_eq!(
        (&problems[0]["path"], &problems[0]["line"], &problems[0]["message"]),
        (&json!("include.with"), &json!(5), &json!("the result of `find` has no field `stdoot`"))
    );
}

#[test]
fn plans_by_name_are_included_and_those_of_the_project_hide_no_others() {
    let cli = Cli::new().with_programs();
    fs::create_dir_all(cli.path(".config/taskpawl/plans")).unwrap();
    fs::write(cli.path(".config/taskpawl/plans/mine.yaml"), "- {id: a, run: echo of the user}").unwrap();
    for name in ["mine", "ours"] {
        cli.file(&format!(".taskpawl/plans/{name}.yaml"), "- {id: a, run: echo of the project}");
    }
    cli.file("mine", "a file without an ending is no plan");
    cli.run_with(&["run-all-ready", "-"], "[{id: x, include: mine}, {id: y, include: ours}]").ok();
    assert_eq!(cli.run(&["logs", "x.a"]).ok().stdout, "of the user\n");
    assert_eq!(cli.run(&["logs", "y.a"]).ok().stdout, "of the project\n");
    let outside = cli.path("outside.yaml");
    fs::write(&outside, "- {id: a}").unwrap();
    for (include, expected) in [
        ("theirs", "no plan is named"),
        ("mien", "did you mean `mine`?"),
        ("../outside.yaml", "neither in the project"),
        (".env", "not the name of a plan file"),
    ] {
        let run = cli.run_with(&["apply", "-"], &format!("[{{id: x, include: {include}}}]"));
        assert!(run.code == Some(7) && run.stderr.contains(expected), "{run}");
    }
    // A copy tells of the files that it needs.
    fs::write(
        cli.path(".config/taskpawl/plans/big.yaml"),
        "[{id: a, include: ./part.yaml}, {id: b, include: mine}]",
    )
    .unwrap();
    let copied = cli.run(&["plan", "copy", "big"]).ok();
    assert!(copied.stderr.contains("`./part.yaml`, which is not copied"), "{copied}");
}

#[test]
fn values_of_agents_that_are_passed_on_make_calls_ask() {
    let cli = Cli::new().with_programs();
    let part = "
params: {command: {type: string}}
tasks:
- {id: quoted, run: 'echo ${{ params.command }}'}
- {id: raw, run: '${{ params.command | raw }}'}
- {id: when, when: params.command == 'ls', run: echo y}
";
    cli.file("part.yaml", part);
    let with = "with: {command: '${{ tasks.which.result }}'}";
    let tasks = format!(
        "[{{id: which, description: x}}, {{id: a, needs: which, include: {{file: part.yaml, {with}}}}}]"
    );
    cli.file("plan.yaml", &tasks);
    cli.run(&["apply", "plan.yaml"]).ok();
    cli.run(&["done", "which", "--actor", "bot", "--result", "\"ls\""]).ok();
    let run = cli.run(&["run-all-ready"]);
    assert_eq!(run.code, Some(3), "{run}");
    let found = states(&cli);
    // One quoted word is data. The command itself, and a condition, are not.
    assert_eq!((&found["a.quoted"], &found["a.raw"]), (&json!("done"), &json!("blocked")));
    assert_eq!(found["a.when"], "blocked");
}

#[test]
fn a_schedule_keeps_the_plans_that_were_included() {
    let cli = Cli::new().with_programs();
    let part = "- {id: a, run: echo one}";
    cli.file("part.yaml", part);
    cli.file("plan.yaml", "name: nightly\nschedule: 0 4 * * *\ntasks: [{id: x, include: part.yaml}]\n");
    cli.run(&["schedules", "add", "plan.yaml"]).ok();
    let changed = |cli: &Cli| cli.run(&["schedules", "--json"]).ok().json()["data"][0]["fileChanged"].clone();
    assert_eq!(changed(&cli), false);
    cli.file("part.yaml", "- {id: a, run: echo two}");
    assert_eq!(changed(&cli), true);
}
