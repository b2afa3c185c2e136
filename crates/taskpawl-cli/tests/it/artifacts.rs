//! Artifacts: files that tasks leave in the directory of their run.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Cli, Run, may_decide};

fn plan(cli: &Cli, tasks: &Value) -> Run {
    cli.file("p.json", &json!({"name": "p", "tasks": tasks}).to_string());
    cli.run(&["run-all-ready", "--plan", "p.json"])
}

fn shown(cli: &Cli, task: &str) -> Value {
    cli.run(&["show", task, "--json"]).ok().json()["data"].clone()
}

fn call_of(task: &Value) -> Value {
    let calls = task["metadata"]["toolCalls"].as_array().unwrap();
    calls.iter().find(|call| call["toolName"] == "artifacts").unwrap().clone()
}

/// Returns the directories of runs that are there.
fn directories(cli: &Cli) -> Vec<PathBuf> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = cli.path(".local/state/taskpawl-artifacts");
    entries(&all).flat_map(|store| entries(&store).collect::<Vec<_>>()).collect()
}

#[test]
fn artifacts_are_recorded_read_by_other_tasks_and_pruned_with_their_run() {
    let cli = Cli::new().with_programs();
    let read = "cat \"$PLAN\" > copy.txt; echo \"$SIZE\" >> copy.txt; cp \"$PLAN\" \"$TASKPAWL_ARTIFACTS/second.md\"";
    let env = json!({"PLAN": "${{ tasks.a.artifacts.plan.path }}", "SIZE": "${{ tasks.a.artifacts.plan.bytes | string }}"});
    let tasks = json!([
        {"id": "a", "run": "echo steps > \"$TASKPAWL_ARTIFACTS/plan.md\"", "artifacts": ["plan.md"]},
        {"id": "b", "needs": ["a"], "run": read, "env": env,
         "artifacts": {"path": "${{ 'second' }}.md", "name": "copy", "type": "text/plain"}},
        {"id": "c", "run": "true"},
    ]);
    plan(&cli, &tasks).ok();
    assert_eq!(fs::read_to_string(cli.path("work/copy.txt")).unwrap(), "steps\n6\n");
    let call = call_of(&shown(&cli, "a"));
    let [directory] = directories(&cli).try_into().unwrap();
    let path = directory.join("plan.md");
    let shown_path =
        path.to_str().unwrap().replace(cli.path("").to_str().unwrap().trim_end_matches('/'), "[HOME]");
    assert_eq!(call["artifacts"][0]["path"], shown_path);
    assert_eq!(call["result"]["plan"]["type"], "text/markdown");
    assert_eq!(call_of(&shown(&cli, "b"))["artifacts"][0]["mediaType"], "text/plain");
    let text = cli.run(&["show", "a"]).ok().stdout;
    assert!(text.contains(&format!("artifact: plan: {shown_path}")), "{text}");

    let dry = cli.run(&["prune", "--quota", "0", "--dry-run", "--json"]).ok().json()["data"].clone();
    assert_eq!((&dry["files"], path.exists()), (&json!(2), true), "{dry}");
    cli.run(&["prune", "--quota", "0"]).ok();
    assert!(directories(&cli).is_empty(), "{:?}", directories(&cli));
}

#[test]
fn a_missing_artifact_fails_the_task_and_a_run_without_files_leaves_no_directory() {
    let cli = Cli::new().with_programs();
    let failed = plan(&cli, &json!([{"id": "a", "run": "true", "artifacts": ["plan.md"]}]));
    assert_eq!(failed.code, Some(1), "{failed}");
    let call = call_of(&shown(&cli, "a"));
    assert_eq!(call["errorClass"], "missing_artifact");
    let error = "artifact `plan` is missing: there is no file `plan.md` in $TASKPAWL_ARTIFACTS; the directory has nothing";
    assert_eq!(call["error"], error);
    assert!(directories(&cli).is_empty());
}

#[test]
fn a_task_that_goes_on_in_another_run_keeps_its_directory() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs();
    let calls = json!([
        {"run": "echo steps > \"$TASKPAWL_ARTIFACTS/plan.md\""},
        {"run": "echo \"$TASKPAWL_ARTIFACTS\" > where.txt; echo more >> \"$TASKPAWL_ARTIFACTS/plan.md\"", "approval": "required"},
    ]);
    let asked = plan(&cli, &json!([{"id": "a", "calls": calls, "artifacts": ["plan.md"]}]));
    assert_eq!(asked.code, Some(3), "{asked}");
    // Artifacts of an open task are not pruned.
    cli.run(&["prune", "--quota", "0"]).ok();
    cli.by_person(&["approve", "a"]).ok();
    cli.run(&["run-all-ready"]).ok();
    let [directory] = directories(&cli).try_into().unwrap();
    assert_eq!(fs::read_to_string(directory.join("plan.md")).unwrap(), "steps\nmore\n");
    assert_eq!(fs::read_to_string(cli.path("work/where.txt")).unwrap().trim(), directory.to_str().unwrap());
}

#[test]
fn programs_write_the_directory_of_their_run_alone() {
    let cli = Cli::new().with_programs();
    let first = json!([{"id": "a", "run": "echo a > \"$TASKPAWL_ARTIFACTS/a.txt\"", "artifacts": ["a.txt"]}]);
    plan(&cli, &first).ok();
    let path = directories(&cli)[0].join("a.txt");
    let evil = format!(
        "cat {0} > seen.txt; echo evil > {0} || true; touch \"$TASKPAWL_ARTIFACTS/../x\" || true",
        path.display()
    );
    cli.file("q.json", &json!({"name": "q", "tasks": [{"id": "b", "run": evil}]}).to_string());
    cli.run(&["run-all-ready", "--plan", "q.json"]).ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\n");
    assert_eq!(fs::read_to_string(cli.path("work/seen.txt")).unwrap(), "a\n");
    assert_eq!(directories(&cli).len(), 1);
}

#[test]
fn plan_check_refuses_artifacts_that_cannot_be() {
    let cli = Cli::new();
    for (task, why) in [
        (json!({"run": "x", "artifacts": ["../a"]}), "not a path in the directory of the run"),
        (json!({"run": "x", "artifacts": ["/a"]}), "not a path in the directory of the run"),
        (json!({"run": "x", "artifacts": [{"name": "a"}]}), "`path`"),
        (json!({"run": "x", "artifacts": [{"path": "a", "type": "text"}]}), "not a media type"),
        (json!({"run": "x", "artifacts": ["a.md", "b/a.txt"]}), "already taken"),
        (json!({"run": "x", "artifacts": ["${{ params.p }}"]}), "`name`"),
        (json!({"run": "x", "artifacts": [{"path": "${{ params.q }}", "name": "n"}]}), "no parameter `q`"),
        (json!({"artifacts": ["a"]}), "calls"),
        (json!({"run": "x", "artifacts": ["a"], "cache": {"inputs": ["b"]}}), "cache"),
        (json!({"run": "x", "artifacts": ["a"], "runsOn": ["big"]}), "runsOn"),
    ] {
        let mut task = task;
        task["id"] = "a".into();
        let params = json!({"p": {"type": "string", "default": "x"}});
        cli.file("p.json", &json!({"name": "p", "params": params, "tasks": [task]}).to_string());
        let checked = cli.run(&["plan", "check", "p.json"]);
        assert!(checked.code == Some(7) && checked.to_string().contains(why), "{task}: {checked}");
    }
}
