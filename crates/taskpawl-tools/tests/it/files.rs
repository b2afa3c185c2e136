use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::Project;

#[tokio::test]
async fn read_file_returns_all_or_some_lines() {
    let project = Project::new();
    project.write("a.txt", "one\ntwo\nthree");
    let result = project.call("read_file", json!({"path": "a.txt"})).await.unwrap();
    assert_eq!(result, json!({"content": "one\ntwo\nthree", "bytes": 13, "lines": 3, "truncated": false}));
    let result = project.call("read_file", json!({"path": "a.txt", "offset": 2, "limit": 1})).await.unwrap();
    assert_eq!(result, json!({"content": "two\n", "bytes": 4, "lines": 1, "truncated": true}));
    let result = project.call("read_file", json!({"path": "a.txt", "offset": 9})).await.unwrap();
    assert_eq!(result, json!({"content": "", "bytes": 0, "lines": 0, "truncated": false}));
    let absolute = project.path("a.txt");
    let result = project.call("read_file", json!({"path": absolute, "offset": 3})).await.unwrap();
    assert_eq!(result["content"], "three");
}

#[tokio::test]
async fn read_file_reports_a_truncated_file() {
    let mut project = Project::new();
    project.cx.limits.keep_bytes = 10;
    project.write("long", "x".repeat(100));
    let result = project.call("read_file", json!({"path": "long"})).await.unwrap();
    assert_eq!(result, json!({"content": "xxxxxxxxxx", "bytes": 10, "lines": 1, "truncated": true}));
}

/// A pipe would block the call until a writer appears, or pass the content to its reader.
#[tokio::test]
async fn only_regular_files_are_written_and_edited() {
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};

    let project = Project::new();
    project.write("dir/file", "");
    mknodat(CWD, project.path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let tries = [
        ("edit_file", json!({"path": "pipe", "old": "a", "new": "b"})),
        ("edit_file", json!({"path": "dir", "old": "a", "new": "b"})),
        ("write_file", json!({"path": "pipe", "content": "x"})),
        ("write_file", json!({"path": "dir", "content": "x"})),
        ("write_file", json!({"path": "pipe", "content": "x", "append": true})),
    ];
    for (tool, args) in &tries {
        let refused = project.refusal(tool, args.clone()).await;
        assert!(refused.ends_with("is not a regular file"), "{tool} {args}: {refused}");
    }
    let reader = open(project.path("pipe"), OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
    let (tool, args) = &tries[4];
    assert_eq!(project.refusal(tool, args.clone()).await, "failed: `pipe` is not a regular file");
    let mut buffer = [0; 1];
    assert_eq!(rustix::io::read(&reader, &mut buffer).unwrap(), 0, "nothing arrived");
}

#[tokio::test]
async fn unreadable_files_have_distinct_errors() {
    let project = Project::new();
    project.write("binary", b"a\0b");
    project.write("latin1", b"caf\xe9");
    project.write("dir/file", "");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        project.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let mut errors = Vec::new();
    for path in ["nothing", "binary", "dir", "pipe", "dir/file/deeper"] {
        errors.push(project.refusal("read_file", json!({"path": path})).await);
    }
    insta::assert_snapshot!(errors.join("\n"), @r"
    io: failed to read `nothing`: No such file or directory (os error 2)
    failed: `binary` is a binary file: it contains a NUL byte
    failed: `dir` is not a regular file
    failed: `pipe` is not a regular file
    io: failed to read `dir/file/deeper`: Not a directory (os error 20)
    ");
    let result = project.call("read_file", json!({"path": "latin1"})).await.unwrap();
    assert_eq!(result["content"], "caf\u{fffd}");
}

#[tokio::test]
async fn write_file_creates_replaces_and_appends() {
    let project = Project::new();
    let args = json!({"path": "new/dir/a.txt", "content": "hello\n", "mode": "750"});
    let result = project.call("write_file", args).await.unwrap();
    let sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    assert_eq!(result, json!({"path": "new/dir/a.txt", "bytes": 6, "sha256": sha256}));
    let mode = || std::fs::metadata(project.path("new/dir/a.txt")).unwrap().permissions().mode() & 0o777;
    assert_eq!((project.read("new/dir/a.txt").as_str(), mode()), ("hello\n", 0o750));

    project.call("write_file", json!({"path": "new/dir/a.txt", "content": "other\n"})).await.unwrap();
    let args = json!({"path": "new/dir/a.txt", "content": "hello\n", "append": true});
    assert_eq!(project.call("write_file", args).await.unwrap(), result);
    assert_eq!((project.read("new/dir/a.txt").as_str(), mode()), ("other\nhello\n", 0o750));

    project.call("write_file", json!({"path": "log/b", "content": "1", "append": true})).await.unwrap();
    assert_eq!(project.read("log/b"), "1");
    let names: Vec<_> = std::fs::read_dir(project.path("new/dir")).unwrap().collect();
    assert_eq!(names.len(), 1, "a temporary file was left behind");
}

#[tokio::test]
async fn a_refused_write_leaves_no_directories_behind() {
    let mut project = Project::new();
    project.cx.closed = crate::closed::closed_at(&project);
    project.write("there/file", "");
    let long = format!("new/deep/{}", "x".repeat(300));
    for path in ["new/deep/.git/hooks/x", "new/.env", "new/deep/.mcp.json", "there/new/.git", &long] {
        for append in [false, true] {
            let args = json!({"path": path, "content": "x", "append": append});
            project.call("write_file", args).await.unwrap_err();
            let left = ["new", "there/new"].iter().find(|name| project.path(name).exists());
            assert_eq!(left, None, "{path}, append: {append}");
        }
    }
    project.call("write_file", json!({"path": "new/deep/x", "content": "x"})).await.unwrap();
    project.call("write_file", json!({"path": "new/deep/.env", "content": "x"})).await.unwrap_err();
    assert_eq!(project.read("new/deep/x"), "x", "an existing directory was removed");
}

#[tokio::test]
async fn a_path_with_a_final_slash_is_no_file() {
    let project = Project::new();
    project.write("there/file", "x");
    for path in ["new/", "new/deep//", "there/", "there/file/"] {
        for append in [false, true] {
            let refused =
                project.refusal("write_file", json!({"path": path, "content": "x", "append": append})).await;
            let expected =
                format!("failed: `{path}` names a directory; name the file, without `/` at its end");
            assert_eq!(refused, expected);
        }
    }
    assert!(!project.path("new").exists());
}

#[tokio::test]
async fn edit_file_explains_different_line_ends() {
    let project = Project::new();
    project.write("dos", "one\r\ntwo\r\n");
    project.write("unix", "one\ntwo\n");
    let mut errors = Vec::new();
    for (path, old) in [("dos", "one\ntwo"), ("unix", "one\r\ntwo"), ("dos", "three\n"), ("unix", "One")] {
        errors.push(project.refusal("edit_file", json!({"path": path, "old": old, "new": "x"})).await);
    }
    insta::assert_snapshot!(errors.join("\n"), @r"
    failed: `old` does not occur in `dos`; its lines end in `\r\n`: use that in `old` and `new`
    failed: `old` does not occur in `unix`; its lines end in `\n` only: use that in `old` and `new`
    failed: `old` does not occur in `dos`
    failed: `old` does not occur in `unix`
    ");
    project.call("edit_file", json!({"path": "dos", "old": "one\r\ntwo", "new": "x"})).await.unwrap();
    assert_eq!(project.read("dos"), "x\r\n");
}

#[tokio::test]
async fn write_file_follows_links_within_the_project() {
    let project = Project::new();
    project.write("real/a", "old");
    std::os::unix::fs::symlink("real/a", project.path("link")).unwrap();
    project.call("write_file", json!({"path": "link", "content": "new"})).await.unwrap();
    assert_eq!(project.read("real/a"), "new");
    assert!(project.path("link").is_symlink());
}

#[tokio::test]
async fn unwritable_files_have_distinct_errors() {
    let project = Project::new();
    project.write("dir/file", "");
    let mut errors = Vec::new();
    for path in ["dir", ".", "dir/file/deeper", "dir/.."] {
        errors.push(project.refusal("write_file", json!({"path": path, "content": ""})).await);
        errors
            .push(project.refusal("write_file", json!({"path": path, "content": "", "append": true})).await);
    }
    insta::assert_snapshot!(errors.join("\n"), @r"
    failed: `dir` is not a regular file
    io: failed to append to `dir`: Is a directory (os error 21)
    failed: `.` is not a regular file
    failed: `.` is not a regular file
    io: failed to write `dir/file/deeper`: Not a directory (os error 20)
    io: failed to write `dir/file/deeper`: Not a directory (os error 20)
    failed: `dir/..` is not a regular file
    failed: `dir/..` is not a regular file
    ");
}

#[tokio::test]
async fn edit_file_replaces_unambiguous_text() {
    let project = Project::new();
    project.write("a", "one two\n\none");
    std::fs::set_permissions(project.path("a"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let result = project.call("edit_file", json!({"path": "a", "old": "two", "new": "2"})).await.unwrap();
    assert_eq!(result, json!({"path": "a", "replacements": 1}));
    let args = json!({"path": "a", "old": "one", "new": "1", "all": true});
    assert_eq!(project.call("edit_file", args).await.unwrap()["replacements"], 2);
    assert_eq!(project.read("a"), "1 2\n\n1");
    assert_eq!(std::fs::metadata(project.path("a")).unwrap().permissions().mode() & 0o777, 0o640);

    project.write("latin1", b"caf\xe9");
    project.write("binary", b"a\0b");
    let cases = [
        json!({"path": "a", "old": "three", "new": "3"}),
        json!({"path": "a", "old": "1", "new": "3"}),
        json!({"path": "a", "old": "1", "new": "1"}),
        json!({"path": "nothing", "old": "1", "new": "3"}),
        json!({"path": "latin1", "old": "c", "new": "k"}),
        json!({"path": "binary", "old": "a", "new": "k"}),
    ];
    let mut errors = Vec::new();
    for args in cases {
        errors.push(project.refusal("edit_file", args).await);
    }
    insta::assert_snapshot!(errors.join("\n"), @r"
    failed: `old` does not occur in `a`
    failed: `old` occurs 2 times in `a`, in lines 1, 3; include more surrounding text, or set `all`
    invalid_args: `edit_file` refuses its arguments: `args.new` is the same as `args.old`
    io: failed to read `nothing`: No such file or directory (os error 2)
    failed: `latin1` is not UTF-8 text
    failed: `binary` is a binary file: it contains a NUL byte
    ");
    assert_eq!(project.read("a"), "1 2\n\n1");
}

#[tokio::test]
async fn list_dir_returns_kinds_and_sizes() {
    let project = Project::new();
    project.write("b.txt", "123");
    project.write("a/inner", "");
    std::os::unix::fs::symlink("nowhere", project.path("c")).unwrap();
    let mut result = project.call("list_dir", json!({"path": "."})).await.unwrap();
    // The size of a directory depends on the file system.
    result["entries"][0]["size"] = 0.into();
    assert_eq!(
        result,
        json!({"entries": [
            {"name": "a", "type": "dir", "size": 0},
            {"name": "b.txt", "type": "file", "size": 3},
            {"name": "c", "type": "symlink", "size": 7},
        ]})
    );
    let refusals = [
        project.refusal("list_dir", json!({"path": "nowhere"})).await,
        project.refusal("list_dir", json!({"path": "b.txt"})).await,
    ];
    insta::assert_snapshot!(refusals.join("\n"), @r"
    io: failed to list `nowhere`: No such file or directory (os error 2)
    io: failed to list `b.txt`: Not a directory (os error 20)
    ");
}

#[tokio::test]
async fn paths_start_from_the_working_directory() {
    let mut project = Project::new();
    project.write("sub/a", "inner");
    project.cx.dir = project.path("sub");
    assert_eq!(project.call("read_file", json!({"path": "a"})).await.unwrap()["content"], "inner");
    project.call("write_file", json!({"path": "../b", "content": "outer"})).await.unwrap();
    assert_eq!(project.read("b"), "outer");
    assert_eq!(project.call("glob", json!({"pattern": "*"})).await.unwrap()["paths"], json!(["a"]));
}

#[tokio::test]
async fn edit_file_has_a_limit_in_size() {
    let project = Project::new();
    // A sparse file, which takes no space on the disk.
    std::fs::File::create(project.path("huge")).unwrap().set_len((8 << 20) + 1).unwrap();
    let refusal = project.refusal("edit_file", json!({"path": "huge", "old": "a", "new": "b"})).await;
    assert_eq!(refusal, "failed: `huge` has more than 8388608 bytes");
    project.write("many", "a".repeat(1000));
    let args = json!({"path": "many", "old": "a", "new": "b".repeat(10_000), "all": true});
    let refusal = project.refusal("edit_file", args).await;
    assert_eq!(refusal, "failed: `many` would have 10000000 bytes, more than the limit of 8388608");
    assert_eq!(project.read("many").len(), 1000);
}

#[tokio::test]
async fn an_ambiguous_text_is_reported_with_its_first_lines() {
    let project = Project::new();
    project.write("many", "a\n".repeat(30));
    let refusal = project.refusal("edit_file", json!({"path": "many", "old": "a", "new": "b"})).await;
    let lines = "1, 2, 3, 4, 5 and 25 more";
    assert!(refusal.contains(&format!("occurs 30 times in `many`, in lines {lines}; include")), "{refusal}");
}

#[tokio::test]
async fn reading_an_endless_line_stops_at_the_deadline() {
    let mut project = Project::new();
    std::fs::File::create(project.path("hole")).unwrap().set_len(1 << 40).unwrap();
    project.cx.deadline = Some(tokio::time::Instant::now() + std::time::Duration::from_millis(100));
    let refusal = project.refusal("read_file", json!({"path": "hole", "offset": 2})).await;
    assert!(refusal.starts_with("timeout:"), "{refusal}");
}

#[tokio::test]
async fn bytes_that_are_not_utf_8_are_reported() {
    let project = Project::new();
    project.write("latin1", b"caf\xe9\n");
    project.write("utf8", "café\n");
    let read = project.call("read_file", json!({"path": "latin1"})).await.unwrap();
    assert_eq!((&read["content"], &read["notUtf8"]), (&json!("caf\u{fffd}\n"), &json!(true)));
    let read = project.call("read_file", json!({"path": "utf8"})).await.unwrap();
    assert_eq!((&read["content"], read.get("notUtf8")), (&json!("café\n"), None));
}
