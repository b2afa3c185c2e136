//! Special files in every position where a tool takes a file: they are refused or skipped, and no call blocks on them.

use std::fmt::Write;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::support::Project;

/// Kinds of special files that can be created without special rights.
const KINDS: [&str; 7] = ["pipe", "socket", "directory", "dangling", "loop", "to-pipe", "to-device"];

/// Creates one file of each kind beneath `odd`, and returns the listener that keeps the socket open.
fn make(project: &Project) -> UnixListener {
    let at = |name: &str| project.path("odd").join(name);
    std::fs::create_dir_all(at("directory")).unwrap();
    mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for (to, link) in
        [("nowhere", "dangling"), ("loop", "loop"), ("pipe", "to-pipe"), ("/dev/zero", "to-device")]
    {
        symlink(to, at(link)).unwrap();
    }
    UnixListener::bind(at("socket")).unwrap()
}

/// Returns the result, or the class of the error, of a call that takes a file.
async fn outcome(project: &Project, tool: &str, args: Value) -> String {
    match timeout(Duration::from_secs(20), project.call(tool, args)).await.expect("the call ends") {
        Ok(result) => result.to_string(),
        Err(error) => {
            assert_ne!(error.class(), "timeout", "{tool}");
            error.class().to_owned()
        }
    }
}

fn takers(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("read_file", json!({"path": path})),
        ("grep", json!({"pattern": "x", "path": path})),
        ("edit_file", json!({"path": path, "old": "a", "new": "b"})),
        ("write_file", json!({"path": path, "content": "x", "append": true})),
    ]
}

#[tokio::test]
async fn no_tool_blocks_on_a_special_file() {
    let mut project = Project::new();
    let _listener = make(&project);
    project.cx.deadline = Some(Instant::now() + Duration::from_secs(15));
    let mut table = String::new();
    for kind in KINDS {
        for (tool, args) in takers(&format!("odd/{kind}")) {
            let outcome = outcome(&project, tool, args).await;
            writeln!(table, "{kind:<10} {tool:<10} {outcome}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[tokio::test]
async fn special_files_are_not_overwritten() {
    let project = Project::new();
    let _listener = make(&project);
    let mut table = String::new();
    for kind in KINDS {
        let args = json!({"path": format!("odd/{kind}"), "content": "x"});
        let outcome = outcome(&project, "write_file", args).await;
        let outcome = if outcome.starts_with('{') { "written" } else { &outcome };
        writeln!(table, "{kind:<10} {outcome}").unwrap();
    }
    insta::assert_snapshot!(table);
}

#[tokio::test]
async fn searches_skip_special_files() {
    let project = Project::new();
    let _listener = make(&project);
    project.write("odd/file", "x\n");
    let found = outcome(&project, "grep", json!({"pattern": "x"})).await;
    assert_eq!(found, r#"{"matches":[{"line":1,"path":"odd/file","text":"x"}]}"#);
    assert_eq!(outcome(&project, "glob", json!({"pattern": "**"})).await, r#"{"paths":["odd/file"]}"#);
    let listed = project.call("list_dir", json!({"path": "odd"})).await.unwrap();
    let kinds = listed["entries"].as_array().unwrap().iter();
    let kinds: Vec<String> = kinds.map(|entry| format!("{}={}", entry["name"], entry["type"])).collect();
    insta::assert_snapshot!(kinds.join(" ").replace('"', ""), @"dangling=symlink directory=dir file=file loop=symlink pipe=other socket=other to-device=symlink to-pipe=symlink");
}

/// Only root can create a device; without these rights the test is skipped.
#[tokio::test]
async fn a_device_is_not_opened() {
    let mut project = Project::new();
    let zero = makedev(1, 5);
    if mknodat(CWD, project.path("zero"), FileType::CharacterDevice, Mode::RUSR | Mode::WUSR, zero).is_err() {
        eprintln!("skipped: devices cannot be made here");
        return;
    }
    project.cx.deadline = Some(Instant::now() + Duration::from_secs(15));
    for (tool, args) in takers("zero") {
        let outcome = outcome(&project, tool, args).await;
        let expected = if tool == "grep" { r#"{"matches":[]}"# } else { "failed" };
        assert_eq!(outcome, expected, "{tool}");
    }
}

#[cfg(feature = "http")]
#[tokio::test]
async fn no_response_is_saved_in_a_special_file() {
    let project = Project::new();
    let _listener = make(&project);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    for kind in ["pipe", "socket", "directory", "loop", "to-pipe", "to-device"] {
        let args = json!({"url": url, "saveTo": format!("odd/{kind}")});
        let outcome = outcome(&project, "http_request", args).await;
        assert!(["failed", "io", "outside_root"].contains(&outcome.as_str()), "{kind}: {outcome}");
        assert!(listener.accept().is_err(), "{kind}: no request is sent");
    }
}
