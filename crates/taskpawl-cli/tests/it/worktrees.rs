//! Tasks in git worktrees: their branches, commits, conflicts and merges.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Cli, Run, may_decide};

/// A project in a git repository with one commit.
pub(crate) struct Repository(pub(crate) Cli);

impl Repository {
    pub(crate) fn new() -> Self {
        let repository = Self(Cli::new().with_programs());
        repository.0.file("shared.txt", "one\n");
        repository.0.file(".gitignore", "cache/\n");
        for args in [vec!["init", "-q", "-b", "main"], vec!["add", "."], vec!["commit", "-q", "-m", "first"]]
        {
            repository.git(&args);
        }
        repository
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.current_dir(self.0.path("work")).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.0.path("none"));
        command.args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]).args(args);
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    pub(crate) fn plan(&self, tasks: &Value) -> Run {
        self.0.file("p.json", &json!({"name": "p", "tasks": tasks}).to_string());
        self.0.run(&["run-all-ready", "--plan", "p.json"])
    }

    pub(crate) fn commit_of(&self, task: &str) -> Value {
        let shown = self.0.run(&["show", task, "--json"]).ok().json()["data"].clone();
        let calls = shown["metadata"]["toolCalls"].as_array().unwrap().clone();
        calls.iter().find(|call| call["toolName"] == "worktree_commit").unwrap()["result"].clone()
    }

    /// Returns the directories of worktrees that are there.
    pub(crate) fn trees(&self) -> Vec<String> {
        let all: Vec<PathBuf> = found(&self.0.path(".local/state/taskpawl-worktrees"));
        let all = all.iter().flat_map(|project| found(project)).flat_map(|plan| found(&plan));
        let mut names: Vec<String> = all
            .filter(|path| path.is_dir())
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }
}

fn found(directory: &std::path::Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn writing(id: &str, file: &str, text: &str) -> Value {
    json!({"id": id, "worktree": true, "run": format!("echo {text} > {file}")})
}

#[test]
fn tasks_work_beside_each_other_and_a_third_begins_with_both() {
    let repository = Repository::new();
    let both =
        json!({"id": "both", "needs": ["a", "b"], "worktree": true, "run": "cat a.txt b.txt > both.txt"});
    repository.plan(&json!([writing("a", "a.txt", "A"), writing("b", "b.txt", "B"), both])).ok();
    assert!(!repository.0.path("work/a.txt").exists(), "the project itself is not touched");
    let result = repository.commit_of("both");
    assert_eq!(result["branch"], "taskpawl/p/both");
    assert_eq!(result["files"], json!(["both.txt"]));
    assert_eq!(repository.git(&["show", "taskpawl/p/both:both.txt"]), "A\nB");
    assert_eq!(repository.git(&["rev-parse", "taskpawl/p/both"]), result["commit"].as_str().unwrap());
    let subject = repository.git(&["log", "-1", "--format=%s", "taskpawl/p/a"]);
    assert_eq!(subject, "p/a: a");
    assert_eq!(repository.trees(), ["a", "b", "both"]);
    let diff = repository.0.run(&["diff", "a"]).ok().stdout;
    assert!(diff.contains("+++ b/a.txt") && diff.contains("+A"), "{diff}");
    assert_eq!(repository.0.run(&["diff", "both", "--names"]).ok().stdout, "both.txt\n");
}

#[test]
fn programs_can_commit_and_reach_no_other_part_of_the_repository() {
    let repository = Repository::new();
    let run = "echo x > x.txt; git add x.txt; git -c user.name=t -c user.email=t@example.org commit -q -m mine; echo y > y.txt";
    let evil = "echo evil > \"$(git rev-parse --git-common-dir)/refs/heads/main\" || true";
    let hook = "echo evil > \"$(git rev-parse --git-common-dir)/hooks/post-commit\" || true";
    let main = repository.git(&["rev-parse", "main"]);
    let calls = json!([{"run": run}, {"run": evil}, {"run": hook}]);
    repository.plan(&json!([{"id": "a", "worktree": true, "calls": calls}])).ok();
    assert_eq!(repository.commit_of("a")["files"], json!(["x.txt", "y.txt"]));
    assert_eq!(repository.git(&["log", "--format=%s", "taskpawl/p/a"]), "p/a: a\nmine\nfirst");
    assert_eq!(repository.git(&["rev-parse", "main"]), main);
    assert!(!repository.0.path("work/.git/hooks/post-commit").exists());
}

#[test]
fn secrets_large_and_ignored_files_are_not_committed() {
    let repository = Repository::new();
    let run = "echo k > .env.local; truncate -s 11M big.bin; mkdir cache; echo c > cache/c; echo ok > ok.txt";
    repository.plan(&json!([{"id": "a", "worktree": true, "run": run}])).ok();
    let result = repository.commit_of("a");
    assert_eq!(result["files"], json!(["ok.txt"]));
    assert_eq!(result["leftOut"], json!([".env.local", "big.bin"]));
}

#[test]
fn work_is_committed_after_its_verification_and_stays_when_that_fails() {
    let repository = Repository::new();
    let task = |check: &str| json!([{"id": "a", "worktree": true, "run": "echo A > a.txt", "verify": {"run": check}}]);
    let failed = repository.plan(&task("test -e b.txt"));
    assert_eq!(failed.code, Some(1), "{failed}");
    assert_eq!(repository.git(&["rev-parse", "taskpawl/p/a"]), repository.git(&["rev-parse", "main"]));
    assert_eq!(repository.trees(), ["a"]);
    let diff = repository.0.run(&["diff", "a", "--json"]).ok().json()["data"].clone();
    assert_eq!((&diff["commit"], &diff["files"]), (&Value::Null, &json!(["a.txt"])));
    let patch = diff["patch"].as_str().unwrap();
    assert!(patch.contains("new file mode") && patch.contains("+A"), "{patch}");
    // The changed check runs alone, in the worktree with the work.
    repository.plan(&task("test -e a.txt")).ok();
    assert_eq!(repository.commit_of("a")["files"], json!(["a.txt"]));
}

#[test]
fn work_that_does_not_merge_fails_with_the_files() {
    let repository = Repository::new();
    let both = json!({"id": "both", "needs": ["a", "b"], "worktree": true, "run": "true"});
    let failed =
        repository.plan(&json!([writing("a", "shared.txt", "A"), writing("b", "shared.txt", "B"), both]));
    assert_eq!(failed.code, Some(1), "{failed}");
    let shown = repository.0.run(&["show", "both", "--json"]).ok().json()["data"].clone();
    let call = &shown["metadata"]["toolCalls"][0];
    assert_eq!(call["errorClass"], "conflict");
    assert_eq!(call["error"], "the work of task `b` with `a` conflicts in `shared.txt`");
}

#[test]
fn a_merge_takes_all_or_nothing_and_removes_the_worktrees() {
    let repository = Repository::new();
    let merge = |of: &[&str], check: &str| json!({"id": "m", "needs": of, "call": {"merge": {"of": of, "check": check}}});
    let before = repository.git(&["rev-parse", "main"]);
    let (a, b) = (writing("a", "a.txt", "A"), writing("b", "b.txt", "B"));
    let failed = repository.plan(&json!([a, b, merge(&["a", "b"], "test -e c.txt")]));
    assert_eq!(failed.code, Some(1), "{failed}");
    assert_eq!(repository.git(&["rev-parse", "main"]), before);
    assert_eq!(repository.git(&["status", "--porcelain"]), "?? p.json");
    assert_eq!(repository.trees(), ["a", "b"]);

    repository.plan(&json!([a, b, merge(&["a", "b"], "test -e a.txt && test -e b.txt")])).ok();
    assert_eq!(fs::read_to_string(repository.0.path("work/b.txt")).unwrap(), "B\n");
    assert_eq!(repository.git(&["log", "--first-parent", "--format=%s"]), "Merge `b`\np/a: a\nfirst");
    assert_eq!(repository.trees(), [""; 0]);
    assert_eq!(repository.git(&["branch", "--format=%(refname:short)"]), "main");
    // The changes of a merged task can still be shown.
    assert_eq!(repository.0.run(&["diff", "a", "--names"]).ok().stdout, "a.txt\n");
}

#[test]
fn a_merge_with_a_conflict_names_the_files_and_changes_nothing() {
    let repository = Repository::new();
    let before = repository.git(&["rev-parse", "main"]);
    let merge = json!({"id": "m", "needs": ["a", "b"], "call": {"merge": {"of": ["a", "b"]}}});
    let failed =
        repository.plan(&json!([writing("a", "shared.txt", "A"), writing("b", "shared.txt", "B"), merge]));
    assert!(failed.to_string().contains("the work of task `b` conflicts in `shared.txt`"), "{failed}");
    assert_eq!(repository.git(&["rev-parse", "main"]), before);
    assert_eq!(fs::read_to_string(repository.0.path("work/shared.txt")).unwrap(), "one\n");
    let refused =
        repository.plan(&json!([{"id": "n", "call": {"merge": {"of": ["x"], "onConflict": "never"}}}]));
    assert!(refused.to_string().contains("onConflict"), "{refused}");
}

#[test]
fn a_reopened_task_starts_over_and_its_orphans_are_pruned() {
    let repository = Repository::new();
    repository.plan(&json!([writing("a", "a.txt", "A")])).ok();
    let first = repository.commit_of("a")["commit"].clone();
    repository.0.run(&["reopen", "a"]).ok();
    repository.0.run(&["run-all-ready"]).ok();
    assert_eq!(repository.commit_of("a")["base"], repository.git(&["rev-parse", "main"]));
    assert_eq!(repository.git(&["log", "--format=%s", "taskpawl/p/a"]), "p/a: a\nfirst");
    assert!(first.is_string());
    let doctor = repository.0.run(&["doctor"]).to_string();
    assert!(doctor.contains(") of tasks that are done and not merged: a"), "{doctor}");
    repository.0.run(&["delete", "a"]).ok();
    let doctor = repository.0.run(&["doctor"]).to_string();
    assert!(doctor.contains(") without a task: a"), "{doctor}");
    let pruned = repository.0.run(&["prune", "--worktrees", "--dry-run"]).ok().to_string();
    assert!(pruned.contains("would remove 1 worktree ("), "{pruned}");
    assert_eq!(repository.trees(), ["a"]);
    let pruned = repository.0.run(&["prune", "--worktrees", "--json"]).ok().json()["data"].clone();
    assert!(pruned["worktreeBytes"].as_u64().unwrap() >= 4096, "{pruned}");
    assert_eq!(repository.trees(), [""; 0]);
}

#[test]
fn projects_that_cannot_have_worktrees_are_refused_with_the_reason() {
    let plan = json!({"name": "p", "tasks": [{"id": "a", "worktree": true, "run": "true"}]}).to_string();
    let cli = Cli::new().with_programs();
    cli.file("p.json", &plan);
    let refused = cli.run(&["plan", "check", "p.json"]).to_string();
    assert!(
        refused.contains("the project cannot have worktrees: it is not in a git repository"),
        "{refused}"
    );
    let repository = Repository::new();
    repository.0.file("p.json", &plan);
    repository.0.run(&["plan", "check", "p.json"]).ok();
    for (file, text, why) in [
        (".gitmodules", "", "it has submodules"),
        (".gitattributes", "*.bin filter=lfs diff=lfs\n", "its files pass through Git LFS"),
    ] {
        repository.0.file(file, text);
        repository.git(&["add", file]);
        let refused = repository.0.run(&["plan", "check", "p.json"]).to_string();
        assert!(refused.contains(why), "{refused}");
        repository.git(&["rm", "-q", "--cached", file]);
        fs::remove_file(repository.0.path("work").join(file)).unwrap();
    }
    for (task, why) in [
        (json!({"id": "a", "worktree": true, "writes": "x", "run": "true"}), "writes"),
        (json!({"id": "a", "worktree": true}), "a task without calls"),
        (json!({"id": "a", "worktree": {"branch": "a..b"}, "run": "true"}), "is not the name of a branch"),
    ] {
        repository.0.file("p.json", &json!({"name": "p", "tasks": [task]}).to_string());
        let refused = repository.0.run(&["plan", "check", "p.json"]).to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn the_example_ends_as_its_page_says() {
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents");
    let repository = Repository::new();
    for name in ["README.md", "agent.sh", "plan.yaml", "sections.txt"] {
        fs::copy(example.join(name), repository.0.path("work").join(name)).unwrap();
    }
    repository.git(&["add", "."]);
    repository.git(&["commit", "-q", "-m", "start"]);
    let main = repository.git(&["rev-parse", "main"]);
    let run = repository.0.run(&["run-all-ready", "--plan", "plan.yaml"]);
    assert_eq!(run.code, Some(1), "{run}");
    let shown = repository.0.run(&["show", "join", "--json"]).ok().json()["data"].clone();
    assert_eq!(
        shown["metadata"]["toolCalls"][0]["error"],
        "the work of task `title` conflicts in `README.md`"
    );
    assert_eq!(repository.git(&["rev-parse", "main"]), main);

    let plan = fs::read_to_string(repository.0.path("work/plan.yaml")).unwrap();
    let (before, title) = plan.split_once("id: title").unwrap();
    let title = title.replacen("needs: plan", "needs: intro", 1);
    repository.0.file("plan.yaml", &format!("{before}id: title{title}"));
    repository.0.run(&["run-all-ready", "--plan", "plan.yaml", "--redo-changed"]).ok();
    let page = fs::read_to_string(repository.0.path("work/README.md")).unwrap();
    assert!(page.starts_with("# A better title\n"), "{page}");
    let report = fs::read_to_string(repository.0.path("work/out/report.json")).unwrap();
    assert!(["intro", "usage", "title"].iter().all(|task| report.contains(task)), "{report}");
    assert_eq!(repository.trees(), [""; 0]);
}

#[test]
fn rules_for_commands_and_quotes_of_values_hold_for_the_check_of_a_merge() {
    let repository = Repository::new();
    let merge =
        |check: &str| json!({"id": "m", "needs": ["a"], "call": {"merge": {"of": ["a"], "check": check}}});
    let a = json!({"id": "a", "worktree": true, "run": "printf 'x; touch evil' > a.txt; cat a.txt"});
    repository.plan(&json!([a, merge("test \"$(cat a.txt)\" = ${{ tasks.a.result.stdout }}")])).ok();
    assert!(!repository.0.path("work/evil").exists());
    repository.0.policy("[[rules]]\ndecision = \"deny\"\nargv = \"frobnicate\"\nreason = \"no\"\n");
    let denied = repository.0.file("q.json", &json!({"name": "q", "tasks": [{"id": "n", "call": {"merge": {"of": ["a"], "check": "frobnicate now"}}}]}).to_string());
    assert!(denied.exists());
    let said = repository.0.run(&["plan", "check", "q.json"]).to_string();
    assert!(said.contains("the policy denies `merge`"), "{said}");
}

#[test]
fn a_person_decides_about_a_commit_and_a_killed_run_leaves_the_question() {
    if !may_decide() {
        return;
    }
    let repository = Repository::new();
    let cli = &repository.0;
    let mut made = writing("made", "a.txt", "A");
    made["approval"] = json!({"after": true, "ask": "Merge it?"});
    let next = json!({"id": "next", "needs": "made", "run": "true"});
    cli.file("p.json", &json!({"name": "p", "tasks": [made, next]}).to_string());
    cli.run(&["apply", "p.json"]).ok();
    let mut run = cli.command(&cli.path("work"), &["run-all-ready", "--wait"]);
    let mut run = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !cli.run(&["show", "made"]).ok().stdout.contains("taskpawl approve made") {
        std::thread::yield_now();
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let shown = cli.run(&["show", "made"]).ok().stdout;
    assert!(shown.contains("taskpawl diff made") && shown.contains("a.txt"), "{shown}");
    assert!(cli.run(&["diff", "made"]).ok().stdout.contains("+A"));
    let commit = repository.commit_of("made");
    cli.by_person(&["approve", "made"]).ok();
    cli.run(&["run-all-ready"]).ok();
    let call = cli.run(&["show", "made", "--json"]).ok().json()["data"]["metadata"]["toolCalls"][0].clone();
    assert_eq!(call["attempts"], 1, "nothing runs again");
    assert_eq!(repository.commit_of("made"), commit);
}
