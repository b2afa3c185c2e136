//! Conflicts of merges, which a person or an agent resolves.

use std::fs;

use serde_json::{Value, json};

use super::worktrees::Repository;
use crate::harness::{Run, may_decide};

/// Runs tasks that write the same file, and their merge.
fn conflict_of(repository: &Repository, ids: &[&str], merge: &Value) -> Run {
    let writing = |id: &&str| json!({"id": id, "worktree": true, "run": format!("echo {id} > shared.txt")});
    let mut args = json!({"of": ids});
    args.as_object_mut().unwrap().extend(merge.as_object().unwrap().clone());
    let mut tasks: Vec<Value> = ids.iter().map(writing).collect();
    tasks.push(json!({"id": "m", "needs": ids, "call": {"merge": args}}));
    repository.plan(&json!(tasks))
}

fn conflict(repository: &Repository, merge: &Value) -> Run {
    conflict_of(repository, &["a", "b"], merge)
}

fn merge_call(repository: &Repository) -> Value {
    let shown = repository.0.run(&["show", "m", "--json"]).ok().json()["data"].clone();
    shown["metadata"]["toolCalls"][0].clone()
}

/// Adds the agent `scripted` to the project, which does `turns`.
fn with_agent(turns: &Value) -> Repository {
    let repository = Repository::new();
    let cli = &repository.0;
    cli.file("agent.py", include_str!("../../../taskpawl-agent/tests/agent.py"));
    cli.file("scenario.json", &json!({"turns": turns}).to_string());
    cli.file(".gitignore", "sessions.json\n");
    repository.git(&["add", "."]);
    repository.git(&["commit", "-q", "-m", "agent"]);
    let config = "[agents.scripted]\ncommand = [\"python3\", \"agent.py\", \"scenario.json\"]\n";
    let directory = cli.path(".config/taskpawl");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("config.toml"), config).unwrap();
    repository
}

#[test]
fn a_person_resolves_a_conflict_in_a_branch_and_answers_with_it() {
    let repository = Repository::new();
    let cli = &repository.0;
    let main = repository.git(&["rev-parse", "main"]);
    let waiting = conflict(&repository, &json!({"onConflict": "ask", "check": "grep both shared.txt"}));
    assert_eq!(waiting.code, Some(3), "{waiting}");
    let asked = cli.run(&["show", "m"]).ok().stdout;
    for part in ["`shared.txt`", "git worktree add -b resolved ../resolved", "retry"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    let is_untouched = || {
        assert_eq!(repository.git(&["rev-parse", "main"]), main);
        assert_eq!(fs::read_to_string(cli.path("work/shared.txt")).unwrap(), "one\n");
    };
    is_untouched();
    if !may_decide() {
        return;
    }
    // The answers that do not help are asked about again, with the reason.
    repository.git(&["worktree", "add", "-q", "-b", "resolved", "../resolved", "taskpawl/p/a"]);
    for (answer, why) in [
        ("nowhere", "there is no branch or commit `nowhere`"),
        ("retry", "`shared.txt`"),
        ("resolved", "`resolved` does not contain commit"),
    ] {
        cli.by_person(&["approve", "m", "--answer", answer]).ok();
        let waiting = cli.run(&["run-all-ready"]);
        assert_eq!(waiting.code, Some(3), "{answer}: {waiting}");
        let asked = cli.run(&["show", "m"]).ok().stdout;
        assert!(asked.contains(why), "{answer}: {asked}");
        is_untouched();
    }
    repository.git(&["-C", "../resolved", "merge", "-q", "-s", "ours", "-m", "both", "taskpawl/p/b"]);
    fs::write(cli.path("resolved/shared.txt"), "both\n").unwrap();
    repository.git(&["-C", "../resolved", "commit", "-q", "-am", "resolve"]);
    cli.by_person(&["approve", "m", "--answer", "resolved"]).ok();
    cli.run(&["run-all-ready"]).ok();
    assert_eq!(fs::read_to_string(cli.path("work/shared.txt")).unwrap(), "both\n");
    assert_eq!(repository.git(&["rev-parse", "main"]), repository.git(&["rev-parse", "resolved"]));
}

#[test]
fn an_agent_resolves_a_conflict_in_a_worktree_of_its_own() {
    let repository = with_agent(&json!([[{"make": "shared.txt"}, {"make": "also.txt"}]]));
    let merge = json!({"onConflict": "agent", "check": "test ! -s shared.txt && test -e also.txt"});
    conflict(&repository, &merge).ok();
    assert_eq!(repository.git(&["show", "main:shared.txt"]), "");
    assert_eq!(repository.git(&["log", "-1", "--format=%s %P", "main"]).split(' ').count(), 4);
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1, "all worktrees are removed");
    assert_eq!(repository.git(&["status", "--porcelain"]), "?? p.json");
}

#[test]
fn an_agent_goes_on_with_its_merge_after_a_person_answered_and_each_conflict_has_a_session_of_its_own() {
    if !may_decide() {
        return;
    }
    let push = json!({"toolCallId": "1", "title": "Push", "kind": "execute", "rawInput": {"command": "git push origin"}});
    let repository = with_agent(&json!([[{"permission": push}, {"make": "shared.txt"}]]));
    let cli = &repository.0;
    cli.policy("[[rules]]\nargv = \"git push\"\ndecision = \"ask\"\n");
    let main = repository.git(&["rev-parse", "main"]);
    let asked = conflict_of(&repository, &["a", "b", "c"], &json!({"onConflict": "agent"}));
    assert_eq!(asked.code, Some(3), "{asked}");
    assert!(asked.to_string().contains("git push origin"), "{asked}");
    assert_eq!(repository.git(&["rev-parse", "main"]), main);
    // Each of both conflicts has a session, which asks for itself. The resolution of the first one is kept meanwhile.
    for code in [3, 0] {
        cli.by_person(&["approve", "m", "--answer", "yes"]).ok();
        let run = cli.run(&["run-all-ready"]);
        assert_eq!(run.code, Some(code), "{run}\n{}", cli.run(&["show", "m"]));
    }
    assert_eq!(repository.git(&["show", "main:shared.txt"]), "");
    assert_eq!(
        repository.git(&["log", "--first-parent", "--format=%s", "main"]),
        "Merge `c`\nMerge `b`\np/a: a\nagent\nfirst"
    );
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_conflict_that_its_agent_does_not_resolve_leaves_nothing_half_merged() {
    for (turns, merge, class, why) in [
        (
            json!([[{"say": "done"}]]),
            json!({"onConflict": {"agent": "scripted"}}),
            "conflict",
            "`shared.txt` still has conflict markers",
        ),
        (
            json!([[{"error": {"code": -1, "message": "no"}}]]),
            json!({"onConflict": "agent"}),
            "agent_error",
            "no",
        ),
        (
            json!([[{"make": "shared.txt"}]]),
            json!({"onConflict": "agent", "check": "test -s shared.txt"}),
            "exit_code",
            "exited with code 1",
        ),
        (json!([[]]), json!({"onConflict": {"agent": "other"}}), "unknown_agent", "other"),
    ] {
        let repository = with_agent(&turns);
        let main = repository.git(&["rev-parse", "main"]);
        let failed = conflict(&repository, &merge);
        assert_eq!(failed.code, Some(1), "{failed}");
        let call = merge_call(&repository);
        assert_eq!(call["errorClass"], class, "{call}");
        assert!(call["error"].as_str().unwrap().contains(why), "{why}: {call}");
        assert_eq!(repository.git(&["rev-parse", "main"]), main);
        assert_eq!(repository.git(&["status", "--porcelain"]), "?? p.json");
        assert_eq!(repository.trees(), ["a", "b"]);
    }
}

#[test]
fn rules_for_agents_hold_for_the_agent_of_a_merge() {
    let repository = with_agent(&json!([[{"say": "done"}]]));
    repository.0.policy("[[rules]]\ndecision = \"deny\"\ntool = \"agent\"\nreason = \"no\"\n");
    let denied = conflict(&repository, &json!({"onConflict": "agent"}));
    assert!(denied.to_string().contains("denies"), "{denied}");
    assert_eq!(merge_call(&repository)["errorClass"], "denied");
}
