//! Bypass cases through git: a repository that the next `git status` enters, and an index that hides the change of a secret file.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Figures, Home, is_there, skip};

/// The value in a hidden file.
const CANARY: &str = "TOKEN=canary-of-the-test";

/// Directories for a gitlink; the ordinary search skips some of them.
const GITLINKS: [&str; 6] = ["lib", "sub/x", "vendor/x", "node_modules/x", "target/debug/x", ".cache/x"];

/// Creates a repository whose settings name a program, and a gitlink to it in the index of the project.
const MAKE_GITLINK: &str = r#"set -e
mkdir -p DIRECTORY; cd DIRECTORY; git init -q .
printf '#!/bin/sh\ntouch %s\n' "$OLDPWD/MARKER" > program.sh; chmod +x program.sh
git config core.fsmonitor "$PWD/program.sh"
commit=$(git -c user.name=a -c user.email=a@example.org commit-tree "$(git mktree </dev/null)" -m x)
git update-ref HEAD "$commit"; cd "$OLDPWD"
git update-index --add --cacheinfo "160000,$commit,DIRECTORY"
"#;

#[test]
fn gitlinks_are_named_by_the_call_that_makes_them() {
    let Some(mut figures) = figures("gitlinks_are_named_by_the_call_that_makes_them") else { return };
    let silent: Vec<&str> = GITLINKS
        .into_iter()
        .filter(|directory| {
            let (_, created) = make_gitlink(directory, &[]);
            !created.contains(&format!("{directory}/.git/config (core.fsmonitor)"))
        })
        .collect();
    assert_eq!(silent, Vec::<&str>::new(), "these were not named");
    // The control: without the sandbox nothing reports it, and the next `git status` runs the program that the call has left.
    for directory in GITLINKS {
        let (home, created) = make_gitlink(directory, &["--sandbox=off"]);
        assert!(!created.contains("fsmonitor"), "{directory}: {created}");
        git(&home, &["status"]);
        assert!(home.path("work/ran").exists(), "{directory}: `git status` does not enter it");
    }
    figures.add(format!("{} gitlinks named, the control ran all of their programs", GITLINKS.len()));
}

/// Returns the new files that the result of the call reports.
fn make_gitlink(directory: &str, flags: &[&str]) -> (Home, String) {
    let home = repository();
    let script = MAKE_GITLINK.replace("DIRECTORY", directory).replace("MARKER", "ran");
    let result = call(&home, "make", &script, flags);
    assert_eq!(result["exitCode"], 0, "{directory}: {result}");
    (home, result["sandbox"]["created"].to_string())
}

/// A state of `.env` in a project, and commands of a call that try to make the next run treat it as a tracked, unmodified file.
struct Dotenv {
    name: &'static str,
    /// Adds the file to the index before it gets its secret value.
    is_tracked: bool,
    script: &'static str,
}

const DOTENVS: [Dotenv; 8] = [
    Dotenv { name: "untracked", is_tracked: false, script: "true" },
    Dotenv { name: "changed", is_tracked: true, script: "true" },
    Dotenv { name: "untracked, git add", is_tracked: false, script: "git add -f .env || true" },
    Dotenv { name: "changed, git add", is_tracked: true, script: "git add -f .env || true" },
    Dotenv {
        name: "untracked, an entry of another blob",
        is_tracked: false,
        script: "git update-index --add --cacheinfo \"100644,$(git hash-object -w --stdin </dev/null),.env\"",
    },
    Dotenv {
        name: "changed, an entry of another blob",
        is_tracked: true,
        script: "git update-index --cacheinfo \"100644,$(echo x | git hash-object -w --stdin),.env\"",
    },
    Dotenv {
        name: "changed, assumed to be unchanged",
        is_tracked: true,
        script: "git update-index --assume-unchanged .env; git update-index --skip-worktree .env",
    },
    Dotenv {
        name: "changed, an index in a repository of its own",
        is_tracked: true,
        script: "mkdir -p own && cd own && git init -q . && git config core.worktree .. \
                 && git update-index --add --cacheinfo \"100644,$(echo x | git hash-object -w --stdin),.env\"",
    },
];

#[test]
fn no_index_uncovers_a_secret() {
    let Some(mut figures) = figures("no_index_uncovers_a_secret") else { return };
    let mut seen = Vec::new();
    for Dotenv { name, is_tracked, script } in &DOTENVS {
        let home = repository();
        if *is_tracked {
            home.file(".env", "TOKEN=\n");
            git(&home, &["add", "-f", ".env"]);
        }
        home.file(".env", &format!("{CANARY}\n"));
        call(&home, "change", script, &[]);
        // The search for secret files happens when a run begins, so the change takes effect in the next run only.
        let read = call(&home, "read", "cat .env", &[]);
        seen.extend(read.to_string().contains(CANARY).then_some(*name));
        // The control: the file exists, and a run with access can read it.
        let granted = call(&home, "granted", "cat .env", &["--allow-read", ".env"]);
        assert!(granted.to_string().contains(CANARY), "{name}: {granted}");
    }
    assert_eq!(seen, Vec::<&str>::new(), "these were read");
    let home = repository();
    home.file(".env", &format!("{CANARY}\n"));
    git(&home, &["add", "-f", ".env"]);
    let read = call(&home, "read", "cat .env", &[]);
    assert!(read.to_string().contains(CANARY), "one that is as git has it is no secret: {read}");
    figures.add(format!("{} ways to an `.env` held", DOTENVS.len()));
}

fn figures(name: &'static str) -> Option<Figures> {
    if !is_there("git") {
        skip("git", name, "there is no git");
        return None;
    }
    let probe = call(&repository(), "probe", "true", &[]);
    let gaps = probe["sandbox"]["gaps"].to_string();
    if probe.is_null() || gaps.contains("mount") {
        skip("mounts", name, format!("files cannot be covered here: {gaps}"));
        return None;
    }
    Some(Figures::of(name, 0))
}

/// Returns a home whose project is a repository.
fn repository() -> Home {
    let home = Home::new();
    git(&home, &["init", "-q", "."]);
    home
}

fn git(home: &Home, args: &[&str]) {
    let mut command = Command::new("git");
    home.prepare(&mut command);
    let output = command.args(args).env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a script as a call in its own run, and returns its result; null if no program is started.
fn call(home: &Home, id: &str, script: &str, flags: &[&str]) -> Value {
    let args = json!({"command": script, "okExitCodes": (0..=255).collect::<Vec<_>>()});
    let plan = json!({"name": id, "tasks": [{"id": id, "call": {"shell": args}}]}).to_string();
    let file = home.path(&format!("{id}.json"));
    fs::write(&file, plan).unwrap();
    let plan: &Path = &file;
    let run = home.run(&[&["run-all-ready", "--plan", plan.to_str().unwrap()][..], flags].concat());
    let task = home.manager().get(id).unwrap();
    let call = task.metadata.tool_calls.first().unwrap();
    assert!(call.result.is_some() || call.error.is_some(), "{id}: {run:?}");
    call.result.clone().unwrap_or_default()
}

#[test]
fn a_commit_of_everything_keeps_a_tracked_file_of_the_environment() {
    let Some(mut figures) = figures("a_commit_of_everything_keeps_a_tracked_file_of_the_environment") else {
        return;
    };
    let home = repository();
    home.file(".env", "MODE=test\n");
    home.file(".env.local", &format!("{CANARY}\n"));
    home.file("code", "one\n");
    git(&home, &["add", "-f", ".env", "code"]);
    git(&home, &["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "first"]);
    let script = "echo two > code; git -c user.name=a -c user.email=a@example.org commit -qam second; \
                  git show HEAD:.env; git status --porcelain .env; cat .env.local";
    let result = call(&home, "commit", script, &[]);
    assert_eq!(result["stdout"], "MODE=test\n", "{result}");
    // The other file is unreadable instead of empty, so that no program takes it for an empty one.
    let error = result["stderr"].to_string();
    assert!(error.contains(".env.local") && error.contains("Permission denied"), "{result}");
    figures.add("1 commit kept a tracked `.env`".to_owned());
}
