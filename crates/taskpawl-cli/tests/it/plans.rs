//! Plan files: applied, applied again, looked at, and refused with the place.

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
    insta::assert_snapshot!(cli.session(&[
        &["apply", "p.yaml"],
        &["apply", "q.yaml"],
        &["apply", "q.yaml", "--json"]
    ]));
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
    insta::assert_snapshot!(
        cli.session(&[&["apply", "my plan.yaml", "--dry-run"], &["apply", "my plan.yaml"]])
    );
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
