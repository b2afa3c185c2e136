//! Why tasks are not running: what is printed, and that every command that is named really works.

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

/// Brings the store into a state in which `id` does not run for a certain reason.
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

/// Runs a command as it was printed, in a shell.
fn paste(cli: &Cli, command: &str) -> Run {
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
        // Whoever holds a task is waited for, here for ever.
        let actions =
            actions.iter().filter_map(|action| action.as_str()).filter(|action| !action.contains("--wait"));
        for action in actions {
            let cli = stage(scene);
            let run = paste(&cli, action);
            // A run may say that tasks failed or wait; what is wrong or refused would be our mistake.
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
        // A claim is followed by the work of an agent; here there is none to do.
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
