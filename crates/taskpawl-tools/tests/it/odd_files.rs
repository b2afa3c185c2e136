//! What is no regular file, at every place where a tool takes one: it is refused or left out, and never waited for.

use std::fmt::Write;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::support::Project;

/// Every kind that can be made without rights of its own.
const KINDS: [&str; 7] = ["pipe", "socket", "directory", "dangling", "loop", "to-pipe", "to-device"];

/// Makes one of each kind beneath `odd`, and returns what keeps the socket.
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

/// Returns how a call ends that takes a file.
async fn outcome(project: &Project, tool: &str, args: Value) -> String {
    match timeout(Duration::from_secs(20), project.call(tool, args)).await.expect("it waits") {
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
async fn no_tool_waits_for_what_is_no_regular_file() {
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
async fn files_of_odd_kinds_are_replaced_by_none_that_is_written() {
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
async fn searches_pass_over_what_is_no_regular_file() {
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

/// A device can be made by root alone; elsewhere there is nothing to try.
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
async fn no_answer_is_saved_in_what_is_no_regular_file() {
    let project = Project::new();
    let _listener = make(&project);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    for kind in ["pipe", "socket", "directory", "loop", "to-pipe", "to-device"] {
        let args = json!({"url": url, "saveTo": format!("odd/{kind}")});
        let outcome = outcome(&project, "http_request", args).await;
        assert!(["failed", "io", "outside_root"].contains(&outcome.as_str()), "{kind}: {outcome}");
        assert!(listener.accept().is_err(), "{kind}: nothing is asked for");
    }
}
