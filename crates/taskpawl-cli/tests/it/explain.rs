//! `explain`: the reasons why tasks are not running, and a check that every advised command works.

use std::process::Command;

use crate::harness::{Cli, Run};

const PLAN: &str = "
name: demo
tasks:
  - {id: review, name: Look at it}
  - {id: build, name: Build it, needs: review, run: 'true'}
  - {id: broken, name: Fails, run: 'echo oh no >&2; exit 3'}
  - {id: deploy, name: Deploy it, needs: [build], subtasks: [{id: copy, name: Copy it, run: 'true'}]}
  - {id: never, name: Stopped, needs: broken, run: 'true'}
  - {id: first, name: Ready, priority: high, run: 'true'}
";

fn with_plan() -> Cli {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", PLAN);
    cli.run(&["apply", "plan.yaml"]).ok();
    cli
}

#[test]
fn the_chain_is_shown_down_to_the_first_cause() {
    let cli = with_plan();
    insta::assert_snapshot!(cli.session(&[
        &["explain", "copy"],
        &["explain", "copy", "--json"],
        &["explain", "--ready"],
        &["explain", "--ready", "--limit", "1"],
        &["explain", "nothing"],
        &["explain"],
    ]));
}

#[test]
fn the_commands_name_the_store_where_the_command_line_did() {
    let cli = with_plan();
    let store = cli.path("tasks.db");
    let run = cli.run(&["explain", "copy", "--store", store.to_str().unwrap()]).ok();
    assert!(run.stdout.contains("taskpawl --store [HOME]/tasks.db claim review"), "{run}");
}

/// A task and the commands that bring it into a state in which it does not run.
type Scene = (&'static str, &'static [&'static [&'static str]]);

const SCENES: &[Scene] = &[
    ("copy", &[]),
    ("copy", &[&["claim", "review"]]),
    ("copy", &[&["block", "review", "--reason", "not now"]]),
    ("copy", &[&["fail", "review"]]),
    ("copy", &[&["cancel", "review"]]),
    ("first", &[]),
    ("never", &[&["run-all-ready", "--only", "broken"]]),
    ("build", &[&["skip", "review"], &["skip", "build"]]),
    ("first", &[&["run", "first"]]),
    ("never", &[&["run", "never"]]),
];

fn stage(scene: &Scene) -> Cli {
    let cli = with_plan();
    for command in scene.1 {
        cli.run(command);
    }
    cli
}

/// Runs a command in a shell, exactly as it was printed.
pub(crate) fn paste(cli: &Cli, command: &str) -> Run {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_taskpawl"));
    let mut shell = Command::new("sh");
    let path =
        format!("{}:{}", program.parent().unwrap().display(), std::env::var_os("PATH").unwrap().display());
    shell.args(["-c", command]).current_dir(cli.path("work")).env("PATH", path);
    shell.env("TASKPAWL_STORE", cli.path("tasks.db")).env("HOME", cli.path("")).env("USER", "user");
    shell.env("TASKPAWL_TEST_HOST", "host");
    Run::of(command, shell.output().unwrap())
}

#[test]
fn every_command_that_is_named_works_as_it_stands() {
    for scene in SCENES {
        let actions = stage(scene).run(&["explain", scene.0, "--json"]).ok().json();
        let actions = actions["data"]["nextActions"].as_array().unwrap().clone();
        assert!(!actions.is_empty(), "{scene:?}");
        // `--wait` waits for the holder of the task, which never ends here.
        let actions =
            actions.iter().filter_map(|action| action.as_str()).filter(|action| !action.contains("--wait"));
        for action in actions {
            let cli = stage(scene);
            let run = paste(&cli, action);
            // A run may report failed or waiting tasks. Any other exit code means that the advice was wrong.
            assert!(matches!(run.code, Some(0 | 1 | 3 | 4)), "{scene:?}: {run}");
        }
    }
}

#[test]
fn doing_what_is_said_again_and_again_brings_a_task_to_its_end() {
    let cli = with_plan();
    let mut said = Vec::new();
    for _ in 0..10 {
        let explained = cli.run(&["explain", "copy", "--json"]).ok().json();
        if explained["data"]["status"] == "done" {
            break;
        }
        let actions = explained["data"]["nextActions"].as_array().unwrap();
        // An agent claims a task in order to work on it; this scenario has no such work.
        let action =
            actions.iter().filter_map(|action| action.as_str()).find(|action| !action.contains("claim"));
        said.push(action.unwrap().to_owned());
        paste(&cli, action.unwrap());
    }
    assert_eq!(
        said,
        ["taskpawl done review", "taskpawl run-all-ready --only build", "taskpawl run-all-ready --only copy"]
    );
}

const LARGER: &str = "
name: larger
tasks:
  - {id: lint, run: 'true', estimate: 10s}
  - {id: build, run: 'true', estimate: 2m}
  - {id: list, run: 'true', estimate: 1s}
  - {id: test, needs: [build], run: 'true', estimate: 5m}
  - {id: each, needs: [list], forEach: {in: '${{ tasks.list.result.stdout | fromjson }}'}, run: 'echo ${{ item }}'}
  - {id: three, forEach: {in: [1, 2, 3]}, run: 'echo ${{ item }}'}
  - {id: counted, needs: [list], when: '${{ tasks.list.result.stdout != \\'\\' }}', run: 'true'}
  - {id: mourn, needs: [test], when: \"${{ tasks.test.status == 'failed' }}\", trigger: all_finished, run: 'true'}
  - {id: never, when: '${{ 1 == 2 }}', run: 'true'}
  - {id: review, needs: [test], name: Look at it}
  - {id: deploy, needs: [review, lint], run: 'true'}
  - {id: ship, needs: [test], approval: required, run: 'true'}
  - {id: mend, needs: [build], trigger: any_failed, run: 'true'}
";

#[test]
fn a_dry_run_says_what_would_be_and_changes_nothing() {
    let cli = Cli::new().with_programs();
    cli.file(
        "plan.yaml",
        &LARGER.replace(
            "'${{ tasks.list.result.stdout != \\'\\' }}'",
            "\"${{ tasks.list.result.stdout != '' }}\"",
        ),
    );
    let before = cli.run(&["run-all-ready", "--plan", "plan.yaml", "--dry-run", "--jobs", "2"]).ok();
    assert!(!cli.path("tasks.db").exists(), "nothing was written");
    cli.run(&["apply", "plan.yaml"]).ok();
    let revision = cli.run(&["history", "--json", "--limit", "1"]).stdout;
    let after = cli.run(&["run-all-ready", "--dry-run", "--jobs", "2"]).ok();
    let waves = |run: &Run| run.stdout.split("\nnext").next().unwrap().to_owned();
    assert_eq!(waves(&before), waves(&after), "the preview of a plan says what its run says");
    insta::assert_snapshot!(cli.session(&[
        &["run-all-ready", "--dry-run", "--jobs", "2"],
        &["run-all-ready", "--dry-run", "--jobs", "2", "--what-if", "fail:build"],
        &["run-all-ready", "--dry-run", "--jobs", "2", "--what-if", "done:build,skip:lint"],
        &["run-all-ready", "--dry-run", "--what-if", "lost:build"],
        &["run-all-ready", "--dry-run", "--what-if", "done:nothing"],
        &["run-all-ready", "--dry-run", "--what-if", "done:build,fail:build"],
        &["run-all-ready", "--what-if", "done:build"],
        &["critical-path", "--jobs", "2"],
        &["critical-path", "--only", "test", "--jobs", "2"],
    ]));
    assert_eq!(cli.run(&["history", "--json", "--limit", "1"]).stdout, revision, "nothing was written");
}

#[test]
fn a_dry_run_says_with_which_code_the_run_ends() {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", "name: p\ntasks: [{id: a, run: 'true'}, {id: b}, {id: c, needs: [a, b], run: 'true'}, {id: d, run: 'true'}]");
    cli.run(&["apply", "plan.yaml"]).ok();
    for only in ["a", "b", "c", "plan:p"] {
        let said =
            cli.run(&["run-all-ready", "--only", only, "--dry-run", "--json"]).ok().json()["data"].clone();
        let ended = cli.run(&["run-all-ready", "--only", only, "--quiet", "--json"]);
        assert_eq!(said["exit"].as_i64(), ended.code.map(i64::from), "{only}: {said} {ended}");
        assert_eq!(said["counts"], ended.json()["data"]["counts"], "{only}");
        cli.run(&["reopen", "a", "d", "--cascade"]);
    }
}

#[test]
fn a_dry_run_names_the_command_that_does_what_it_showed() {
    let cli = Cli::new().with_programs();
    let plan = "params: {who: {type: string, default: you}}\ntasks: [{id: greet, run: 'echo ${{ params.who }} > said'}]";
    cli.file("a plan.yaml", plan);
    let next = |args: &[&str]| {
        let shown = cli.run(args).ok().json();
        shown["data"]["nextActions"][0].as_str().unwrap().to_owned()
    };
    let command = next(&[
        "run-all-ready",
        "--plan",
        "a plan.yaml",
        "--as",
        "one",
        "--param",
        "who=it's taskpawl me",
        "--fresh",
        "--jobs",
        "3",
        "--budget",
        "calls=5,duration=90s",
        "--timeout",
        "5m",
        "--dry-run",
        "--json",
    ]);
    assert_eq!(
        command,
        r"taskpawl run-all-ready --plan 'a plan.yaml' --as one --param 'who=it'\''s taskpawl me' --fresh --jobs 3 --timeout 5m --budget calls=5,duration=90s"
    );
    let run = paste(&cli, &command);
    assert_eq!(run.code, Some(0), "{run}");
    let said = std::fs::read_to_string(cli.path("work").join("said")).unwrap();
    assert_eq!(said, "it's taskpawl me\n");
    cli.run(&["reopen", "one.greet"]).ok();
    let command = next(&["run-all-ready", "--only", "plan:one", "--no-cache", "--dry-run", "--json"]);
    assert_eq!(command, "taskpawl run-all-ready --only plan:one --no-cache");
}

#[test]
fn after_a_question_is_over_only_what_still_works_is_offered() {
    for (on_expiry, works) in [("reject", "retry ex"), ("approve", "run-all-ready --only ex")] {
        let cli = Cli::new().with_programs();
        let plan = format!(
            "tasks: [{{id: ex, approval: {{ask: Go?, expires: 1h, onExpiry: {on_expiry}}}, run: 'true'}}]"
        );
        cli.file("plan.yaml", &plan);
        cli.run(&["apply", "plan.yaml"]).ok();
        let cli = cli.with("TASKPAWL_TEST_NOW", "2026-01-02T05:00:00Z");
        let explained = cli.run(&["explain", "ex", "--json"]).ok().json();
        assert_eq!(explained["data"]["firstCause"]["reason"]["over"], on_expiry);
        let works = format!("taskpawl {works}");
        assert_eq!(explained["data"]["nextActions"], serde_json::json!(["taskpawl show ex", works]));
        let shown = cli.run(&["show", "ex"]).ok().stdout;
        assert!(shown.contains(&works) && !shown.contains("taskpawl reject"), "{shown}");
        let run = paste(&cli, &works);
        assert_eq!(run.code, Some(0), "{run}");
    }
}
