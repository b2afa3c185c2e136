use serde_json::json;

use crate::support::Project;

fn project() -> Project {
    let project = Project::new();
    project.write("src/main.rs", "fn main() {\n    todo();\n}\n");
    project.write("src/deep/er/lib.rs", "// todo: all\r\nfn todo() {}\n");
    project.write("README.md", "nothing to do\n");
    project.write(".github/ci.yml", "run: todo\n");
    project.write(".git/config", "todo");
    project.write(".gitignore", "target/\n*.log\n");
    project.write("target/out.rs", "todo");
    project.write("a.log", "todo");
    project.write("image", b"todo\0todo");
    project
}

#[tokio::test]
async fn glob_finds_files_that_are_not_ignored() {
    let project = project();
    let paths = async |pattern: &str| {
        project.call("glob", json!({"pattern": pattern})).await.unwrap()["paths"].clone()
    };
    assert_eq!(paths("**/*.rs").await, json!(["src/deep/er/lib.rs", "src/main.rs"]));
    assert_eq!(paths("src/*.rs").await, json!(["src/main.rs"]));
    assert_eq!(paths("./{README,.github/*}.{md,yml}").await, json!([".github/ci.yml", "README.md"]));
    assert_eq!(paths("*.log").await, json!([]));
    assert_eq!(paths("*").await, json!([".gitignore", "README.md", "image"]));
}

#[tokio::test]
async fn grep_finds_lines() {
    let project = project();
    let result = project.call("grep", json!({"pattern": "todo"})).await.unwrap();
    assert_eq!(
        result,
        json!({"matches": [
            {"path": ".github/ci.yml", "line": 1, "text": "run: todo"},
            {"path": "src/deep/er/lib.rs", "line": 1, "text": "// todo: all"},
            {"path": "src/deep/er/lib.rs", "line": 2, "text": "fn todo() {}"},
            {"path": "src/main.rs", "line": 2, "text": "    todo();"},
        ]})
    );
}

#[tokio::test]
async fn grep_can_be_narrowed() {
    let project = project();
    let lines = async |args| {
        let result = project.call("grep", args).await.unwrap();
        let matches = result["matches"].as_array().unwrap();
        let lines: Vec<String> =
            matches.iter().map(|m| format!("{}:{}", m["path"].as_str().unwrap(), m["line"])).collect();
        (lines.join(" "), result["truncated"] == true)
    };
    let expect = |lines: &str, truncated| (lines.to_owned(), truncated);
    assert_eq!(lines(json!({"pattern": "todo", "limit": 1})).await, expect(".github/ci.yml:1", true));
    assert_eq!(
        lines(json!({"pattern": "todo", "path": "src/main.rs"})).await,
        expect("src/main.rs:2", false)
    );
    assert_eq!(lines(json!({"pattern": "todo", "glob": "m*.rs"})).await, expect("src/main.rs:2", false));
    assert_eq!(
        lines(json!({"pattern": "^fn", "path": "src", "glob": "src/*/**"})).await,
        expect("src/deep/er/lib.rs:2", false)
    );
    assert_eq!(lines(json!({"pattern": "(?i)NOTHING$"})).await, expect("", false));
    assert_eq!(lines(json!({"pattern": "(?i)TO DO$"})).await, expect("README.md:1", false));
}

#[tokio::test]
async fn long_lines_are_shortened_visibly() {
    let project = Project::new();
    project.write("long", "ä".repeat(600_000) + "\nnext");
    let result = project.call("grep", json!({"pattern": "ä|next"})).await.unwrap();
    let matches = result["matches"].as_array().unwrap();
    assert_eq!(matches[0]["text"], "ä".repeat(500) + "…");
    assert_eq!((matches.len(), &matches[1]["line"]), (2, &json!(2)));

    project.write("longer", "x".repeat(5 << 20));
    let result = project.call("grep", json!({"pattern": "x"})).await.unwrap();
    assert_eq!(
        (&result["unreadable"], result["matches"].as_array().unwrap().len()),
        (&json!(1), 1),
        "{result}"
    );
}

#[tokio::test]
async fn only_the_first_results_are_kept() {
    let mut project = Project::new();
    project.cx.limits.keep_bytes = 400;
    for number in (0..50).rev() {
        project.write(&format!("f{number:02}"), "x\nx\n");
    }
    let names = |result: &serde_json::Value, field: &str, name: &str| -> Vec<String> {
        let items = result[field].as_array().unwrap().iter();
        let text = |item: &serde_json::Value| item.get(name).unwrap_or(item).as_str().unwrap().to_owned();
        items.map(text).collect()
    };
    let result = project.call("glob", json!({"pattern": "*"})).await.unwrap();
    let found = names(&result, "paths", "");
    assert!(
        result["truncated"] == true && found.len() > 10 && found[..3] == ["f00", "f01", "f02"],
        "{result}"
    );
    let result = project.call("grep", json!({"pattern": "x"})).await.unwrap();
    let found = names(&result, "matches", "path");
    assert!(
        result["truncated"] == true && found.len() > 4 && found[..3] == ["f00", "f00", "f01"],
        "{result}"
    );
    let result = project.call("grep", json!({"pattern": "x", "limit": 3})).await.unwrap();
    assert_eq!(names(&result, "matches", "path"), ["f00", "f00", "f01"]);
    let result = project.call("list_dir", json!({"path": "."})).await.unwrap();
    let found = names(&result, "entries", "name");
    assert!(
        result["truncated"] == true && found.len() > 4 && found[..3] == ["f00", "f01", "f02"],
        "{result}"
    );
}

#[tokio::test]
async fn text_in_other_encodings_is_searched_and_binary_files_are_not() {
    let project = Project::new();
    let utf16: Vec<u8> = "\u{feff}hällo\r\nwelt\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    project.write("utf16", utf16);
    project.write("late", [b"welt\n".repeat(100), b"\0".to_vec()].concat());
    let result = project.call("grep", json!({"pattern": "welt$"})).await.unwrap();
    assert_eq!(result["matches"], json!([{"path": "utf16", "line": 2, "text": "welt"}]));
}

#[tokio::test]
async fn a_directory_with_a_huge_ignore_file_is_skipped() {
    let project = Project::new();
    project.write("a/file", "x");
    project.write("b/file", "x");
    project.write("b/.gitignore", "some-name\n".repeat(30_000));
    let result = project.call("glob", json!({"pattern": "**"})).await.unwrap();
    assert_eq!(result, json!({"paths": ["a/file"], "unreadable": 1}));
    let refusal = project.refusal("grep", json!({"pattern": "x", "path": "b"})).await;
    assert_eq!(
        project.stable(&refusal),
        "failed: an ignore file in `[dir]/project/b` is not a regular file or has more than 262144 bytes"
    );

    std::fs::remove_file(project.path("b/.gitignore")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", project.path("b/.gitignore")).unwrap();
    let result = project.call("grep", json!({"pattern": "x"})).await.unwrap();
    assert_eq!(result, json!({"matches": [{"path": "a/file", "line": 1, "text": "x"}], "unreadable": 1}));
}

#[tokio::test]
async fn bad_patterns_name_their_field() {
    let project = project();
    let errors = [
        project.refusal("glob", json!({"pattern": "[a"})).await,
        project.refusal("glob", json!({"pattern": "/etc/*"})).await,
        project.refusal("grep", json!({"pattern": "(a"})).await,
        project.refusal("grep", json!({"pattern": "a{1000}{1000}{1000}"})).await,
        project.refusal("grep", json!({"pattern": "a", "glob": "{a"})).await,
        project.refusal("grep", json!({"pattern": "a", "path": "nowhere"})).await,
    ];
    insta::assert_snapshot!(errors.join("\n"), @r"
    invalid_args: `glob` refuses its arguments: `args.pattern` is not a valid pattern: unclosed character class; missing ']'
    invalid_args: `glob` refuses its arguments: `args.pattern` must be relative to the working directory, without `..`
    invalid_args: `grep` refuses its arguments: `args.pattern` is not a valid regular expression: unclosed group
    invalid_args: `grep` refuses its arguments: `args.pattern` is too large a regular expression
    invalid_args: `grep` refuses its arguments: `args.glob` is not a valid pattern: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
    io: failed to open `nowhere`: No such file or directory (os error 2)
    ");
}

#[tokio::test]
async fn ignore_files_apply_in_every_directory() {
    let project = Project::new();
    project.write(".gitignore", "*.tmp\n/out/\n");
    project.write("src/.gitignore", "!keep.tmp\n");
    for name in ["a.tmp", "out/a", "src/a.tmp", "src/keep.tmp", "src/out/a"] {
        project.write(name, "x");
    }
    let result = project.call("grep", json!({"pattern": "x"})).await.unwrap();
    let paths: Vec<_> = result["matches"].as_array().unwrap().iter().map(|found| &found["path"]).collect();
    assert_eq!(paths, ["src/keep.tmp", "src/out/a"]);
}
