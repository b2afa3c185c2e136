//! Plans by name: listed, copied and run, with an agent that does what its scenario says.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Cli, may_decide};

fn with_agent(turns: &Value) -> Cli {
    let cli = Cli::new().with_programs();
    cli.file("agent.py", include_str!("../../../taskpawl-agent/tests/agent.py"));
    cli.file("scenario.json", &json!({"turns": turns}).to_string());
    let directory = cli.path(".config/taskpawl");
    fs::create_dir_all(&directory).unwrap();
    let config = "[agents.scripted]\ncommand = [\"python3\", \"agent.py\", \"scenario.json\"]\n";
    fs::write(directory.join("config.toml"), config).unwrap();
    cli
}

fn status(cli: &Cli, task: &str) -> String {
    cli.run(&["show", task, "--json"]).ok().json()["data"]["status"].as_str().unwrap().to_owned()
}

#[test]
fn plans_are_listed_by_name_and_those_of_the_project_hide_no_others() {
    let cli = Cli::new().with_programs();
    let names = |cli: &Cli| -> Vec<(String, String)> {
        let listed = cli.run(&["plan", "list", "--json"]).ok().json()["data"].clone();
        let text = |plan: &Value, field: &str| plan[field].as_str().unwrap().to_owned();
        listed.as_array().unwrap().iter().map(|plan| (text(plan, "name"), text(plan, "owner"))).collect()
    };
    let bundled = ["feature", "fix", "refactor", "release", "review", "triage"];
    assert_eq!(names(&cli), bundled.map(|name| (name.to_owned(), "bundled".to_owned())));
    for name in bundled {
        assert!(cli.run(&["plan", "list"]).ok().stdout.contains(name));
    }
    fs::create_dir_all(cli.path("work/.taskpawl/plans")).unwrap();
    fs::create_dir_all(cli.path(".config/taskpawl/plans")).unwrap();
    let plan = "name: mine\ntasks: [{id: a, run: echo of the project}]\n";
    for name in ["fix", "own", "ours"] {
        cli.file(&format!(".taskpawl/plans/{name}.yaml"), plan);
    }
    fs::write(cli.path(".config/taskpawl/plans/triage.json"), "{\"tasks\": []}").unwrap();
    fs::write(cli.path(".config/taskpawl/plans/own.json"), "{\"tasks\": []}").unwrap();
    let found = names(&cli);
    let expected = [
        ("feature", "bundled"),
        ("fix", "bundled"),
        ("ours", "project"),
        ("own", "user"),
        ("refactor", "bundled"),
        ("release", "bundled"),
        ("review", "bundled"),
        ("triage", "user"),
    ];
    assert_eq!(found, expected.map(|(name, owner)| (name.to_owned(), owner.to_owned())));
    cli.run(&["run-all-ready", "ours"]).ok();
    assert_eq!(cli.run(&["logs", "a"]).ok().stdout, "of the project\n");
    // A file goes before a name.
    cli.file("fix", "tasks: [{id: b, run: echo of the file}]\n");
    cli.run(&["run-all-ready", "fix"]).ok();
    assert_eq!(status(&cli, "b"), "done");
}

#[test]
fn a_plan_is_copied_to_a_new_file() {
    let cli = Cli::new().with_programs();
    cli.run(&["plan", "copy", "release"]).ok();
    let text = fs::read_to_string(cli.path("work/release.yaml")).unwrap();
    assert_eq!(text, include_str!("../../plans/release.yaml"));
    assert_eq!(cli.run(&["plan", "copy", "release"]).code, Some(2), "the file exists");
    let unknown = cli.run(&["plan", "copy", "relase", "other.yaml"]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("release"), "{unknown}");
    assert_eq!(cli.run(&["run-all-ready", "unknown"]).code, Some(2));
}

#[test]
fn an_issue_is_fixed_checked_and_accepted() {
    let cli = with_agent(&json!([[{"say": "{\"fixed\": true, \"summary\": \"it was the parser\"}"}]]));
    let params = ["--param", "issue=it fails", "--param", "check=echo checked", "--param", "agent=scripted"];
    let run = cli.run(&[&["run-all-ready", "fix"][..], &params].concat());
    assert_eq!(run.code, Some(3), "{run}");
    assert_eq!((status(&cli, "check"), status(&cli, "accept")), ("done".to_owned(), "blocked".to_owned()));
    if may_decide() {
        cli.by_person(&["approve", "accept"]).ok();
        cli.run(&["run-all-ready"]).ok();
        assert_eq!(status(&cli, "accept"), "done");
    }
}

#[test]
fn findings_of_a_review_are_looked_at_again() {
    let answer = json!({"findings": ["a.rs:1: wrong"], "right": true, "why": "so"}).to_string();
    let cli = with_agent(&json!([[{"say": answer}]]));
    for args in [
        &["init", "-q", "-b", "main"][..],
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.org",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "one",
        ],
    ] {
        let done =
            std::process::Command::new("git").args(args).current_dir(cli.path("work")).status().unwrap();
        assert!(done.success());
    }
    let run = cli.run(&["run-all-ready", "review", "--param", "agent=scripted"]);
    assert_eq!(run.code, Some(0), "{run}");
    let found = cli.run(&["list", "--json"]).ok().json()["data"].clone();
    assert_eq!(found.as_array().unwrap().len(), 4, "one verdict for one finding: {found}");
}

#[test]
fn a_release_that_fails_its_check_is_taken_back() {
    let cli = Cli::new().with_programs();
    let params = [
        "--param",
        "version=1.2",
        "--param",
        "build=true",
        "--param",
        "check=true",
        "--param",
        "verify=false",
        "--param",
        "publish=echo $VERSION > published",
        "--param",
        "takeBack=rm published; echo $VERSION > back",
    ];
    let run = cli.run(&[&["run-all-ready", "release"][..], &params].concat());
    assert_eq!(run.code, Some(3), "{run}");
    if may_decide() {
        cli.by_person(&["approve", "publish"]).ok();
        assert_eq!(cli.run(&["run-all-ready"]).code, Some(1));
        assert_eq!(fs::read_to_string(cli.path("work/back")).unwrap(), "1.2\n");
        assert!(!cli.path("work/published").exists());
    }
}

#[test]
fn a_night_of_triage_asks_about_urgent_work_alone() {
    for (urgent, code) in [(true, 3), (false, 0)] {
        let answer = json!({"urgent": urgent, "summary": "one thing"}).to_string();
        let cli = with_agent(&json!([[{"say": answer}]]));
        cli.run(&["schedules", "add", "triage", "--param", "agent=scripted"]).ok();
        let params = ["--param", "incoming=echo it burns", "--param", "agent=scripted"];
        let run = cli.run(&[&["run-all-ready", "triage"][..], &params].concat());
        assert_eq!(run.code, Some(code), "{run}");
    }
}

fn git(cli: &Cli, args: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.current_dir(cli.path("work")).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
    let output = command.args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Makes a repository of the project, in which worktrees have the scripted agent, too.
fn commit_all(cli: &Cli) {
    cli.file(".gitignore", "sessions.json\n");
    git(cli, &["init", "-q", "-b", "main"]);
    git(cli, &["add", "."]);
    git(cli, &["commit", "-q", "-m", "one"]);
}

#[test]
fn a_feature_is_made_in_worktrees_checked_merged_and_published() {
    let answer = json!({"code": "write new.txt", "documentation": "write about it"}).to_string();
    let cli =
        with_agent(&json!([[{"make": "new.txt"}, {"say": answer}], [{"make": "checked"}, {"say": "fixed"}]]));
    commit_all(&cli);
    // The first check fails, and goes back to the agent of the code.
    let params = [
        "--param",
        "feature=a new file",
        "--param",
        "check=test -e new.txt && test -e checked",
        "--param",
        "publish=git rev-parse HEAD > published",
        "--param",
        "agent=scripted",
    ];
    let run = cli.run(&[&["run-all-ready", "feature"][..], &params].concat());
    assert_eq!(run.code, Some(3), "{run}");
    assert_eq!(cli.run(&["diff", "code", "--names"]).ok().stdout, "checked\nnew.txt\n");
    if may_decide() {
        // The scripted agent makes the file when it plans, too.
        fs::remove_file(cli.path("work/new.txt")).unwrap();
        cli.by_person(&["approve", "merge"]).ok();
        cli.run(&["run-all-ready"]).ok();
        assert_eq!(git(&cli, &["ls-files", "new.txt", "checked"]), "checked\nnew.txt\n");
        assert_eq!(
            fs::read_to_string(cli.path("work/published")).unwrap(),
            git(&cli, &["rev-parse", "HEAD"])
        );
    }
}

#[test]
fn a_refactoring_looks_at_each_file_and_is_accepted() {
    let answer = json!({"changed": true, "note": "done"}).to_string();
    let cli = with_agent(&json!([[{"say": answer}]]));
    let params = ["--param", "change=rename it", "--param", "files=printf 'a.rs\\nb.rs\\nc.rs\\n'"];
    let more = ["--param", "limit=2", "--param", "check=true", "--param", "agent=scripted"];
    // The scripted agent keeps its sessions in one file.
    let run = cli.run(&[&["run-all-ready", "refactor", "--jobs", "1"][..], &params, &more].concat());
    assert_eq!(run.code, Some(3), "{run}");
    assert_eq!((status(&cli, "check"), status(&cli, "accept")), ("done".to_owned(), "blocked".to_owned()));
    let sessions = fs::read_to_string(cli.path("work/sessions.json")).unwrap();
    assert!(
        sessions.contains("`a.rs`") && sessions.contains("`b.rs`") && !sessions.contains("`c.rs`"),
        "{sessions}"
    );
}
