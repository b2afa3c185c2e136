//! Worktrees with what git does not track: installed packages, local settings, ports; and the hooks of their commits.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::worktrees::Repository;

#[test]
fn a_worktree_is_prepared_before_the_work_and_gets_files_and_ports_of_its_own() {
    let repository = Repository::new();
    let cli = &repository.0;
    cli.file(".gitignore", "deps/\nsettings.json\nread.txt\n");
    repository.git(&["commit", "-q", "-am", "ignore"]);
    cli.file("deps/one.txt", "1");
    cli.file("deps/.env", "secret");
    cli.file("settings.json", "{}");
    let run = "cat deps/one.txt settings.json ready.txt > out.txt; echo changed > deps/one.txt; echo changed > settings.json; \
               ! test -e deps/.env; echo $TASKPAWL_PORT_0 $TASKPAWL_PORT_1 > ports.txt";
    let setup = json!([{"run": "echo rea > ready.txt"}, {"run": "echo dy >> ready.txt"}]);
    let worktree = json!({"setup": setup, "link": ["deps"], "copy": ["*.json"], "ports": 2});
    let task = |id: &str| json!({"id": id, "worktree": worktree, "run": run});
    cli.file("p.yaml", &json!({"name": "p", "tasks": [task("a"), task("b")]}).to_string());
    cli.run(&["run-all-ready", "--plan", "p.yaml"]).ok();
    assert_eq!(repository.commit_of("a")["files"], json!(["out.txt", "ports.txt", "ready.txt"]));
    assert_eq!(repository.git(&["show", "taskpawl/p/a:out.txt"]), "1{}rea\ndy");
    let ports = |id: &str| {
        let text = repository.git(&["show", &format!("taskpawl/p/{id}:ports.txt")]);
        text.split_whitespace().map(|port| port.parse::<u16>().unwrap()).collect::<Vec<_>>()
    };
    let mut all = [ports("a"), ports("b")].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4, "{all:?}");
    for (file, text) in [("settings.json", "{}"), ("deps/one.txt", "1")] {
        assert_eq!(fs::read_to_string(cli.path("work").join(file)).unwrap(), text, "{file}");
    }
    let noted = cli.run(&["doctor"]).to_string();
    assert!(noted.contains("2 worktrees (") && noted.contains("done and not merged"), "{noted}");
    // Files that were copied into a worktree do not keep it after the merge.
    let merge = json!({"name": "m", "tasks": [{"id": "m", "call": {"merge": {"of": ["a"]}}}]});
    cli.file("m.json", &merge.to_string());
    cli.run(&["run-all-ready", "--plan", "m.json"]).ok();
    assert_eq!(repository.trees(), ["b"]);
}

#[test]
fn the_setup_of_the_defaults_runs_once_for_each_worktree_and_a_failure_ends_the_task() {
    let repository = Repository::new();
    let cli = &repository.0;
    let defaults = json!({"worktree": {"setup": {"run": "echo s >> setup.txt"}}});
    let calls = json!([{"run": "test -e setup.txt"}, {"run": "test -e fixed"}]);
    let tasks = json!([
        {"id": "a", "calls": calls},
        {"id": "c", "worktree": {"setup": {"run": "false"}}, "run": "touch here"},
        {"id": "d", "repeat": {"until": "context.c1.stdout == '2'", "max": 3}, "run": "echo r >> r.txt; printf $(wc -l < r.txt)"},
        {"id": "e", "writes": "e", "run": "! test -e setup.txt"},
    ]);
    cli.file("p.json", &json!({"name": "p", "defaults": defaults, "tasks": tasks}).to_string());
    let failed = cli.run(&["run-all-ready", "--plan", "p.json"]);
    assert_eq!(failed.code, Some(1), "{failed}");
    let tree = cli.path(".local/state/taskpawl-worktrees");
    let project = fs::read_dir(tree).unwrap().flatten().find(|entry| entry.path().is_dir()).unwrap();
    let tree = project.path().join("p");
    assert!(!tree.join("c/here").exists());
    assert_eq!(repository.git(&["show", "taskpawl/p/d:setup.txt"]), "s");
    fs::write(tree.join("a/fixed"), "").unwrap();
    cli.run(&["run-all-ready", "--plan", "p.json", "--retry-failed"]);
    assert_eq!(repository.git(&["show", "taskpawl/p/a:setup.txt"]), "s");
    // Other work continues in the same worktree.
    let shown = cli.run(&["show", "c", "--json"]).ok().json()["data"].clone();
    assert!(shown["error"].as_str().unwrap().starts_with("setup `"), "{shown}");
}

#[test]
fn plan_check_warns_of_packages_that_nothing_installs_and_refuses_paths_that_cannot_be() {
    let repository = Repository::new();
    let cli = &repository.0;
    cli.file("package-lock.json", "{}");
    let check = |worktree: Value| {
        let plan = json!({"name": "p", "tasks": [{"id": "a", "worktree": worktree, "run": "true"}]});
        cli.file("p.json", &plan.to_string());
        cli.run(&["plan", "check", "p.json"])
    };
    let warned = check(json!(true)).ok().to_string();
    assert!(warned.contains("package-lock.json") && warned.contains("setup: {run: npm ci}"), "{warned}");
    for prepared in [json!({"setup": {"run": "npm ci"}}), json!({"link": ["node_modules"]})] {
        assert!(!check(prepared).ok().to_string().contains("package-lock.json"));
    }
    for refused in [
        json!({"link": ["../x"]}),
        json!({"link": ["."]}),
        json!({"link": [".git/hooks"]}),
        json!({"copy": ["../*"]}),
        json!({"ports": 0}),
        json!({"ports": 21}),
        json!({"hooks": "never"}),
    ] {
        let run = check(refused.clone());
        assert_eq!(run.code, Some(7), "{refused}: {run}");
    }
    cli.file(".env", "KEY=x");
    for (name, worktree) in [("q", json!({"copy": [".env"]})), ("r", json!({"link": ["none"]}))] {
        let task = json!({"id": format!("{name}-1"), "worktree": worktree, "run": "true"});
        let file = format!("{name}.json");
        cli.file(&file, &json!({"name": name, "tasks": [task]}).to_string());
        let failed = cli.run(&["run-all-ready", "--plan", &file]);
        assert!(failed.code == Some(1) && failed.to_string().contains("the worktree gets no `"), "{failed}");
    }
}

#[test]
fn hooks_of_the_repository_run_in_the_sandbox_and_may_refuse_a_commit() {
    let repository = Repository::new();
    let cli = &repository.0;
    let hook = |name: &str, text: &str| {
        let path = cli.file(&format!(".git/hooks/{name}"), &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let outside = cli.path("work/outside.txt");
    let evil = format!("echo evil > '{}' 2> /dev/null", outside.display());
    hook(
        "pre-commit",
        &format!(
            "{evil}; echo checked >> hook.txt; git add hook.txt; ! test -e bad.txt || {{ echo 'no bad files' >&2; exit 1; }}"
        ),
    );
    hook("commit-msg", "echo 'Checked: yes' >> \"$1\"");
    let task = |id: &str, worktree: Value, run: &str| json!({"id": id, "worktree": worktree, "run": run});
    let run = repository.plan(&json!([
        task("good", json!(true), "echo x > x.txt"),
        task("bad", json!(true), "touch bad.txt"),
        task("off", json!({"hooks": "off"}), "touch bad.txt"),
        task("none", json!(true), "true"),
    ]));
    assert_eq!(run.code, Some(1), "{run}");
    assert!(!outside.exists());
    assert_eq!(repository.commit_of("good")["files"], json!(["hook.txt", "x.txt"]));
    assert!(repository.git(&["log", "-1", "--format=%B", "taskpawl/p/good"]).contains("Checked: yes"));
    assert_eq!(repository.commit_of("off")["files"], json!(["bad.txt"]));
    assert_eq!(repository.commit_of("none")["changed"], 0);
    let shown = cli.run(&["show", "bad", "--json"]).ok().json()["data"].clone();
    let call = &shown["metadata"]["toolCalls"][1];
    assert_eq!(call["errorClass"], "hook");
    let error = call["error"].as_str().unwrap();
    assert!(error.starts_with("`git commit with hooks` exited with code 1: no bad files"), "{error}");
    assert_eq!(repository.git(&["rev-parse", "taskpawl/p/bad"]), repository.git(&["rev-parse", "main"]));
    // The worktree stays, and a retry commits again.
    hook("pre-commit", "true");
    cli.run(&["retry", "bad"]).ok();
    cli.run(&["run-all-ready"]).ok();
    assert_eq!(repository.commit_of("bad")["files"], json!(["bad.txt", "hook.txt"]));
}
