//! Tests of plan files: applied, applied again, previewed, and refused with the position of the error.

use crate::harness::Cli;

const PLAN: &str = "\
name: release
defaults: {priority: high}
tasks:
  - id: build
    run: cargo build
  - id: test
    needs: build
    call: {exec: {argv: [cargo, test]}, timeout: 5m}
  - id: sign
    needs: [test]
    description: A person looks at it.
";

#[test]
fn a_plan_is_applied_and_followed() {
    let cli = Cli::new();
    cli.file("plan.yaml", PLAN);
    let dry = cli.run(&["apply", "plan.yaml", "--dry-run"]).ok();
    assert!(!cli.path("tasks.db").exists(), "a dry run leaves nothing behind");
    insta::assert_snapshot!(dry);
    insta::assert_snapshot!(
        "first",
        cli.session(&[&["apply", "plan.yaml"], &["apply", "plan.yaml", "--json"], &["list"]])
    );
    cli.file(
        "plan.yaml",
        &PLAN.replace("description: A person looks at it.", "description: Two persons look."),
    );
    insta::assert_snapshot!("changed", cli.session(&[&["apply", "plan.yaml"]]));
    cli.file("plan.yaml", PLAN.split("  - id: sign").next().unwrap());
    let before = std::fs::read(cli.path("tasks.db")).unwrap();
    insta::assert_snapshot!(
        "gone",
        cli.session(&[&["apply", "plan.yaml", "--prune", "--dry-run", "--json"], &["apply", "plan.yaml"],])
    );
    assert!(std::fs::read(cli.path("tasks.db")).unwrap() == before, "nothing was written in the file before");
    insta::assert_snapshot!(
        "pruned",
        cli.session(&[
            &["apply", "plan.yaml", "--prune"],
            &["skip", "build"],
            &["apply", "plan.yaml", "--fresh"],
            &["apply", "plan.yaml", "--as", "two"],
            &["list", "--plan", "two", "--fields", "id,plan,dependencies"],
            &["apply", "plan.yaml", "--as", "a/b"],
        ])
    );
}

#[test]
fn what_ran_does_not_change_under_a_plan() {
    let cli = Cli::new();
    cli.file("p.yaml", "tasks: [{id: a, timeout: 5m}, {id: b, run: 'true'}]");
    cli.run(&["apply", "p.yaml"]).ok();
    cli.run(&["done", "a"]).ok();
    cli.file("p.yaml", "tasks: [{id: a, timeout: 6m}, {id: b, run: 'false'}]");
    cli.file("q.yaml", "tasks: [{id: a}]");
    insta::assert_snapshot!(cli.session(&[&["apply", "p.yaml"], &["apply", "p.yaml", "--json"]]));
}

#[test]
fn a_second_file_with_the_same_ids_is_told_how_its_tasks_are_called() {
    let cli = Cli::new();
    cli.file("p.yaml", "tasks: [{id: a, run: 'true'}]");
    cli.file("q.yaml", "tasks: [{id: a, run: 'true'}]");
    cli.run(&["run-all-ready", "--plan", "p.yaml"]).ok();
    let first = cli.run(&["run-all-ready", "--plan", "q.yaml"]).ok().stderr;
    assert!(first.contains("all tasks of the plan begin with `q.`, as `q.a`"), "{first}");
    let again = cli.run(&["run-all-ready", "--plan", "q.yaml"]).ok().stderr;
    assert!(!again.contains("begin with"), "it is said once: {again}");
}

#[test]
fn a_plan_is_that_of_its_file() {
    let cli = Cli::new();
    let plan = "{name: one, tasks: [{id: a}]}";
    cli.file("p.yaml", plan);
    cli.file("q.yaml", plan);
    let named_anew = plan.replace("one", "two");
    cli.run(&["apply", "p.yaml"]).ok();
    let told = cli.session(&[&["apply", "q.yaml"], &["apply", "q.yaml", "--moved"]]);
    cli.file("q.yaml", &named_anew);
    let then = cli.session(&[
        &["apply", "q.yaml"],
        &["plan", "rename", "one", "two"],
        &["apply", "q.yaml"],
        &["plan", "rename", "one", "three", "--json"],
    ]);
    insta::assert_snapshot!(format!("{told}{then}"));
}

#[test]
fn the_long_form_is_the_same_plan() {
    let cli = Cli::new();
    let path = cli.file("plan.yaml", PLAN);
    let long = cli.run(&["apply", "plan.yaml", "--expand"]).ok();
    insta::assert_snapshot!(long);
    cli.run(&["apply", path.to_str().unwrap()]).ok();
    let again = cli.run_with(&["apply", "-", "--json"], &long.stdout).ok().json();
    assert_eq!(again["data"]["unchanged"], 3);
    assert!(!cli.run(&["apply", "plan.yaml", "--expand", "--json"]).ok().json()["data"]["tasks"].is_null());
}

#[test]
fn a_dry_run_needs_no_project() {
    let cli = Cli::without_store();
    cli.file("my plan.yaml", "[one, two]");
    insta::assert_snapshot!(cli.run(&["apply", "my plan.yaml", "--dry-run"]));
    assert_eq!(std::fs::read_dir(cli.path("")).unwrap().count(), 1, "only the directory that was there");
}

#[test]
fn errors_of_a_plan_name_the_place() {
    let cli = Cli::new();
    cli.file(
        "types.yaml",
        "tasks:\n  - id: a\n    timeout: 5 minutes\n    needs: b\n  - id: a/b\n  - id: c\n    priority: hihg\n    milestone: sure\n",
    );
    cli.file("cycle.yaml", "tasks:\n  - {id: a, needs: c}\n  - {id: b, needs: a}\n  - {id: c, needs: b}\n");
    cli.file("twice.yaml", "tasks:\n  - {id: a}\n  - {id: a}\n");
    cli.file("unknown.yaml", "tasks:\n  - {id: build}\n  - {id: test, needs: biuld}\n");
    cli.file("syntax.yaml", "tasks:\n  - {id: a\n");
    cli.file("syntax.json", "{\"tasks\": [{\"id\": \"a\",}]}");
    cli.file("tools.yaml", "tasks:\n  - {id: a, call: {exec: {argv: x}}}\n  - {id: b, call: {exce: {}}}\n  - {id: c, call: {write_file: {path: x}}}\n");
    cli.file("outside.yaml", "tasks:\n  - {id: z, needs: somewhere-else}\n");
    insta::assert_snapshot!(cli.session(&[
        &["apply", "types.yaml"],
        &["apply", "cycle.yaml"],
        &["apply", "twice.yaml"],
        &["apply", "unknown.yaml"],
        &["apply", "syntax.yaml"],
        &["apply", "syntax.json"],
        &["apply", "tools.yaml"],
        &["apply", "outside.yaml"],
        &["apply", "cycle.yaml", "--json"],
        &["apply", "missing.yaml"],
        &["list"],
    ]));
    insta::assert_snapshot!("stdin", cli.run_with(&["apply", "-"], "tasks: 5"));
}

const TYPED: &str = "\
params:
  region: {type: string}
  count: {type: integer, default: 2}
  hosts: {type: array, default: [a]}
tasks:
  - id: greet
    run: echo ${{ params.region }} ${{ params.count }}
  - id: each
    forEach: {in: params.hosts}
    run: echo ${{ item }}
  - id: done
    needs: [greet, each]
    milestone: true
";

#[test]
fn parameters_are_given_checked_and_kept() {
    let cli = Cli::new();
    cli.file("p.yaml", TYPED);
    insta::assert_snapshot!(cli.session(&[
        &["apply", "p.yaml"],
        &["apply", "p.yaml", "--param", "region"],
        &["apply", "p.yaml", "--param", "regoin=eu", "--param", "count=many", "--param", "hosts=a,b"],
        &["apply", "p.yaml", "--param", "region=eu", "--param", "hosts=[\"a\", \"b\"]"],
        &["apply", "p.yaml"],
        &["done", "done"],
        &["run-all-ready", "--param", "region=eu"],
    ]));
}

#[test]
fn other_values_of_parameters_do_not_come_under_what_ran() {
    let cli = Cli::new().with_programs();
    cli.file("p.yaml", TYPED);
    cli.run(&["run-all-ready", "--plan", "p.yaml", "--param", "region=eu", "--quiet"]).ok();
    insta::assert_snapshot!(cli.session(&[
        &["apply", "p.yaml", "--param", "region=us"],
        &["apply", "p.yaml", "--param", "region=us", "--as", "us"],
        &["apply", "p.yaml", "--param", "region=us", "--fresh"],
    ]));
}

#[test]
fn a_plan_is_checked_without_touching_anything() {
    let cli = Cli::new();
    cli.file("p.yaml", TYPED);
    cli.file("bad.yaml", "tasks:\n- {id: a, run: make}\n- id: b\n  run: echo ${{ tasks.a.result.stdout }}\n  when: atempt > 1\n");
    cli.file("tools.yaml", "tasks:\n- {id: a, call: {exec: {arg: [x]}}}\n- {id: b, needs: far, run: make}\n");
    insta::assert_snapshot!(cli.session(&[
        &["plan", "check", "p.yaml", "--param", "region=eu"],
        &["plan", "check", "p.yaml", "--param", "region=eu", "--json"],
        &["plan", "check", "p.yaml"],
        &["plan", "check", "bad.yaml"],
        &["plan", "check", "bad.yaml", "--json"],
        &["plan", "check", "tools.yaml"],
    ]));
    assert!(!cli.path("tasks.db").exists(), "a check leaves nothing behind");
}

#[test]
fn a_plan_is_checked_without_a_store() {
    let cli = Cli::without_store();
    cli.file("p.yaml", TYPED);
    insta::assert_snapshot!(cli.session(&[&["plan", "check", "p.yaml"]]));
}

#[test]
fn a_dependency_that_an_expression_needs_stays() {
    let cli = Cli::new();
    cli.file("p.yaml", "tasks:\n- {id: a, run: make}\n- {id: b, needs: a}\n- {id: c, needs: b, run: 'echo ${{ tasks.a.result.stdout }}'}\n");
    cli.run(&["apply", "p.yaml"]).ok();
    insta::assert_snapshot!(cli.session(&[
        &["remove-dependency", "b", "a"],
        &["add-tool-call", "a", "--tool", "log", "--args", "{\"message\": \"${{ tasks.c.result }}\"}"],
        &[
            "add-tool-call",
            "b",
            "--tool",
            "log",
            "--args",
            "{\"message\": \"${{ tasks.a.result.stdout ~ context.x }}\"}"
        ],
    ]));
}

#[test]
fn of_many_things_that_are_wrong_the_first_are_named_and_the_rest_is_counted() {
    let cli = Cli::new();
    let task =
        |number: usize| format!("{{id: t{number}, needs: [lost-{number}], call: {{lost{number}: {{}}}}}}");
    let tasks: Vec<String> = (0..50).map(task).collect();
    cli.file("plan.yaml", &format!("tasks: [{}]", tasks.join(", ")));
    let run = cli.run(&["apply", "plan.yaml"]);
    assert_eq!(run.code, Some(7), "{run}");
    assert_eq!(run.stderr.matches("is known here").count(), 5, "{run}");
    let check = cli.run(&["plan", "check", "plan.yaml"]);
    assert_eq!((check.code, check.stdout.matches("\nerror: ").count()), (Some(7), 39), "{check}");
    assert!(check.stdout.contains("\nand 60 more\n"), "{check}");
    let known = tasks.iter().map(|task| task.replace("call: {lost", "context: {lost")).collect::<Vec<_>>();
    cli.file("plan.yaml", &format!("tasks: [{}]", known.join(", ")));
    let run = cli.run(&["apply", "plan.yaml"]);
    assert_eq!(run.code, Some(6), "{run}");
    assert!(run.stderr.contains("error: 50 dependencies of the plan do not exist"), "{run}");
    assert_eq!(run.stderr.matches("which is neither in the plan nor in the store").count(), 5, "{run}");
    assert!(run.stderr.contains("… and 45 more: `--json` lists all of them"), "{run}");
    let json = cli.run(&["apply", "plan.yaml", "--json"]).json();
    assert_eq!(json["error"]["problems"].as_array().unwrap().len(), 50);
    let dry = cli.run(&["apply", "plan.yaml", "--dry-run"]);
    assert!(dry.stderr.contains("50 dependencies"), "{dry}");
}

#[test]
fn a_task_is_never_told_that_it_may_have_meant_itself() {
    let cli = Cli::new();
    let near = "tasks: [{id: build, needs: biuld}, {id: other}, {id: test, needs: biuld}]";
    cli.file("plan.yaml", near);
    let run = cli.run(&["plan", "check", "plan.yaml", "--json"]);
    let problems = run.json()["data"]["problems"].clone();
    let hint = |at: usize| problems[at]["hint"].as_str().unwrap_or_default().to_owned();
    assert!(!hint(0).contains("did you mean"), "{run}");
    assert_eq!(hint(1), "did you mean `build`?", "{run}");
    for id in ["abc", "abd"] {
        cli.run(&["create", id, "--id", id]).ok();
    }
    for args in [&["add-dependency", "abc", "abx"][..], &["add-subtask", "abx", "--existing", "abc"]] {
        let run = cli.run(args);
        assert_eq!(run.code, Some(6), "{run}");
        assert!(run.stderr.contains("did you mean `abd`?"), "{run}");
    }
    let word = "tasks: [{id: build, run: 'echo ${{ tasks.biuld.result }}'}]";
    cli.file("word.yaml", word);
    let run = cli.run(&["plan", "check", "word.yaml"]);
    assert!(run.code != Some(0) && !run.stderr.contains("did you mean"), "{run}");
}
