use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::Project;

/// Project with every kind of link that leads out of it, and a secret beside it.
fn project() -> Project {
    let project = Project::new();
    std::fs::create_dir(project.beside("secrets")).unwrap();
    std::fs::write(project.beside("secrets/key"), "secret").unwrap();
    symlink(project.beside("secrets"), project.path("absolute")).unwrap();
    symlink("../secrets", project.path("relative")).unwrap();
    symlink("../secrets/key", project.path("file")).unwrap();
    symlink("../secrets/new", project.path("dangling")).unwrap();
    project
}

const WAYS_OUT: [&str; 7] = [
    "../secrets/key",
    "sub/../../secrets/key",
    "absolute/key",
    "relative/key",
    "file",
    "/etc/passwd",
    "/proc/self/root/etc/passwd",
];

async fn assert_outside(project: &Project, tool: &str, args: Value) {
    let error = project.call(tool, args.clone()).await.unwrap_err();
    assert_eq!(error.class(), "outside_root", "{tool} {args}: {error}");
}

#[tokio::test]
async fn no_file_tool_leaves_the_project() {
    let project = project();
    project.write("sub/inner", "");
    for path in WAYS_OUT {
        assert_outside(&project, "read_file", json!({"path": path})).await;
        assert_outside(&project, "write_file", json!({"path": path, "content": "x"})).await;
        assert_outside(&project, "write_file", json!({"path": path, "content": "x", "append": true})).await;
        assert_outside(&project, "edit_file", json!({"path": path, "old": "secret", "new": "x"})).await;
        assert_outside(&project, "grep", json!({"pattern": "secret", "path": path})).await;
    }
    for path in ["..", "../secrets", "absolute", "relative", "/", "/proc/self/cwd"] {
        assert_outside(&project, "list_dir", json!({"path": path})).await;
        assert_outside(&project, "exec", json!({"argv": ["true"], "cwd": path})).await;
        assert_outside(&project, "shell", json!({"command": "true", "cwd": path})).await;
    }
    assert_outside(&project, "write_file", json!({"path": "relative/new/a", "content": "x"})).await;
    assert_outside(&project, "write_file", json!({"path": "dangling", "content": "x", "append": true})).await;
    assert_eq!(std::fs::read_to_string(project.beside("secrets/key")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(project.beside("secrets")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_dangling_link_is_replaced_if_it_stays_inside() {
    let project = project();
    assert_outside(&project, "write_file", json!({"path": "dangling", "content": "x"})).await;
    symlink("nowhere", project.path("inside")).unwrap();
    project.call("write_file", json!({"path": "inside", "content": "x"})).await.unwrap();
    assert!(!project.path("inside").is_symlink());
    assert!(!project.path("nowhere").exists());
}

#[tokio::test]
async fn searches_do_not_follow_links() {
    let project = project();
    assert_eq!(project.call("glob", json!({"pattern": "**"})).await.unwrap(), json!({"paths": []}));
    assert_eq!(project.call("grep", json!({"pattern": "secret"})).await.unwrap(), json!({"matches": []}));
    let error = project.refusal("glob", json!({"pattern": "../secrets/*"})).await;
    insta::assert_snapshot!(error, @"invalid_args: `glob` refuses its arguments: `args.pattern` must be relative to the working directory, without `..`");
}

#[tokio::test]
async fn a_working_directory_outside_is_refused() {
    let mut project = project();
    project.cx.dir = project.beside("secrets");
    assert_outside(&project, "read_file", json!({"path": "key"})).await;
}

#[tokio::test]
async fn the_error_has_a_hint() {
    insta::assert_snapshot!(project().refusal("read_file", json!({"path": "../secrets/key"})).await, @"outside_root: `../secrets/key` leads out of the project root; use a path inside it, without links that leave it");
}

#[tokio::test]
async fn no_file_tool_writes_to_the_taskpawl_directory() {
    let project = project();
    project.write(".taskpawl/project.json", "{}");
    symlink(".taskpawl", project.path("link")).unwrap();
    for path in [".taskpawl/project.json", ".taskpawl/deep/new", "link/project.json"] {
        let error = project.call("write_file", json!({"path": path, "content": "x"})).await.unwrap_err();
        assert_eq!(error.class(), "protected", "{path}: {error}");
    }
    assert_eq!(std::fs::read_to_string(project.path(".taskpawl/project.json")).unwrap(), "{}");
}
