//! Secrets in the configuration of a server: the server gets them, and no stored file contains them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl::tools::{SandboxSettings, ToolError};
use taskpawl::{RunOptions, Taskpawl};

use crate::support::{Bench, SECRET, secrets, servers, supervision, test_server};

fn with_secret(mode: &str) -> Value {
    let mut server = test_server(mode);
    server["env"] = json!({"TOKEN": "${secret:KEY}", "PLAIN": "canary-of-the-control"});
    server
}

#[tokio::test]
async fn a_server_gets_the_secrets_that_its_configuration_names() {
    let mut server = with_secret("both");
    server["args"] = json!(["both", "--key=${secret:KEY}", "$${secret:KEY}"]);
    let bench = Bench::of(server);
    assert_eq!(bench.learn().await, None);
    let revealed = bench.call("reveal", json!({"name": "TOKEN"})).await.unwrap();
    let revealed = revealed.as_str().unwrap();
    assert!(revealed.starts_with(SECRET), "{revealed}");
    assert!(revealed.ends_with(&format!(" both --key={SECRET} ${{secret:KEY}}")), "{revealed}");
}

#[tokio::test]
async fn what_a_server_says_of_itself_is_told_without_them() {
    let start = Bench::of(with_secret("blab")).learn().await.unwrap();
    let bench = Bench::of(with_secret("leaky"));
    bench.learn().await;
    let catalogue = std::fs::read_dir(bench.cache()).unwrap().next().unwrap().unwrap().path();
    let catalogue = std::fs::read_to_string(catalogue).unwrap();
    assert!(!catalogue.contains(SECRET) && catalogue.contains("Uses [redacted:KEY]."), "{catalogue}");
    let lost = bench.call("die", json!({})).await.unwrap_err();
    assert!(matches!(lost, ToolError::Lost { .. }), "{lost}");
    insta::assert_snapshot!(format!("{start}\n{lost}"), @r###"
MCP server `s` could not be started: it ended with exit code 3; its last words: cannot log in with [redacted:KEY]
MCP server `s` was lost during the call, and the progress of the call is unknown: it ended with exit code 7; its last words: starting | panic: out of cheese [redacted:KEY]
"###);
}

#[tokio::test]
async fn one_that_cannot_be_had_is_said_before_anything_is_started() {
    let mut server = test_server("both");
    server["env"] = json!({"TOKEN": "${secret:OTHER}"});
    let bench = Bench::of(server);
    insta::assert_snapshot!(bench.learn().await.unwrap(), @"MCP server `s` could not be started: unknown secret `OTHER`: define it");
    assert_eq!(bench.starts(), 0);
}

#[tokio::test]
async fn nothing_that_is_kept_has_them() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("project")).unwrap();
    let plan = json!({"tasks": [
        {"id": "secret", "call": {"s/reveal": {"name": "TOKEN"}}},
        {"id": "control", "call": {"s/reveal": {"name": "PLAIN"}}},
        {"id": "lost", "call": {"s/die": {}}, "needs": ["secret", "control"]},
    ]});
    let bench = Bench::of(with_secret("leaky"));
    bench.learn().await;
    // The catalogue comes from another run; the files of this one are in `dir`.
    let plans = open(dir.path(), &bench.cache());
    plans.blocking().apply_text(&plan.to_string(), "plan").unwrap();
    plans.run_all_ready(RunOptions::default()).await.unwrap();
    let task = plans.blocking().get_task("secret").unwrap();
    assert!(task.result.unwrap().as_str().unwrap().starts_with("[redacted:KEY] "));
    drop(plans);
    assert_eq!(files_with(dir.path(), SECRET), Vec::<PathBuf>::new());
    // The positive control: a value that is not a secret is in the store, and in the file with the server's standard
    // error.
    assert!(files_with(dir.path(), "canary-of-the-control").len() >= 2);
}

fn open(dir: &Path, cache: &Path) -> Taskpawl {
    let server = with_secret("leaky");
    std::fs::create_dir_all(dir.join("cache")).unwrap();
    for file in std::fs::read_dir(cache).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), dir.join("cache").join(file.file_name())).unwrap();
    }
    let builder = Taskpawl::builder(dir.join("plans.db").to_str().unwrap())
        .root(dir.join("project"))
        .sandbox(SandboxSettings::off())
        .supervision(supervision())
        .secrets(Arc::new(secrets()));
    let tools = servers(&server, dir).tools();
    tools.into_iter().fold(builder, taskpawl::Builder::tool).open().unwrap()
}

/// Returns the files in a directory that contain a text.
fn files_with(dir: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let is_in = bytes.windows(text.len()).any(|window| window == text.as_bytes());
            found.extend(is_in.then_some(path));
        }
    }
    found
}
