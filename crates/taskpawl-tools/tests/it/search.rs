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
async fn long_lines_are_shortened_where_everybody_sees_it() {
    let project = Project::new();
    project.write("long", "ä".repeat(600_000) + "\nnext");
    let result = project.call("grep", json!({"pattern": "ä|next"})).await.unwrap();
    let matches = result["matches"].as_array().unwrap();
    assert_eq!(matches[0]["text"], "ä".repeat(500) + "…");
    assert_eq!((&matches[1]["line"], &matches[2]["line"]), (&json!(1), &json!(2)));
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
    invalid_args: `glob` refuses its arguments: `args.pattern` is no pattern: unclosed character class; missing ']'
    invalid_args: `glob` refuses its arguments: `args.pattern` has to start from the working directory and go without `..`
    invalid_args: `grep` refuses its arguments: `args.pattern` is no regular expression: unclosed group
    invalid_args: `grep` refuses its arguments: `args.pattern` is too big a regular expression
    invalid_args: `grep` refuses its arguments: `args.glob` is no pattern: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
    io: failed to open `nowhere`: No such file or directory (os error 2)
    ");
}

#[tokio::test]
async fn ignore_files_count_in_every_directory() {
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
