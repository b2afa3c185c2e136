//! Tests of tools from the configuration, and of the command that lists and calls tools.

use std::fs;

use serde_json::json;

use crate::harness::Cli;

const GREET: &str = r#"
[tools.greet]
description = "Greets somebody."
argv = ["echo", "hello", "{name}", ["--", "{titles}"]]
readOnly = true
timeout = "30s"
concurrency = 2
[tools.greet.params.name]
description = "Whom."
pattern = "^[a-z ]+$"
[tools.greet.params.titles]
type = "array"
required = false
"#;

fn user_file(cli: &Cli, content: &str) {
    let dir = cli.path(".config/taskpawl");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), content).unwrap();
}

#[test]
fn a_tool_of_the_user_is_a_tool_everywhere() {
    let cli = Cli::new().with_programs();
    user_file(&cli, GREET);
    insta::assert_snapshot!(cli.session(&[
        &["tools", "show", "greet"],
        &[
            "tools",
            "call",
            "greet",
            "--args",
            r#"{"name": "a  b", "titles": ["x", "y z"]}"#,
            "--fields",
            "result.stdout"
        ],
        &["tools", "call", "greet", "--args", r#"{"name": "A"}"#],
        &["tools", "call", "greet"],
        &["tools", "call", "gret"],
        &["create", "wrong", "--tool", "greet", "--args", r#"{"nam": "a"}"#],
        &["config", "get", "tools.greet.argv"],
    ]));
    let listed = cli.run(&["tools", "list"]).ok().stdout;
    for name in ["exec", "greet", "write_file"] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{listed}");
    }
    let shown = cli.run(&["tools", "list", "--json"]).ok().json();
    let greet = shown["data"].as_array().unwrap().iter().find(|tool| tool["name"] == "greet").unwrap();
    assert_eq!(greet["source"], json!({"type": "file", "path": "[HOME]/.config/taskpawl/config.toml"}));
    assert_eq!((&greet["hints"]["readOnly"], &greet["timeout"]), (&json!(true), &json!("30s")));

    cli.file("plan.yaml", "tasks: [{id: hi, call: {greet: {name: \"${{ 'b' ~ 'c' }}\"}}}]");
    cli.run(&["plan", "check", "plan.yaml"]).ok();
    let run = cli.run(&["run-all-ready", "--plan", "plan.yaml"]).ok();
    assert!(!run.stderr.contains("no tool"), "{run}");
    let task = cli.run(&["show", "hi", "--json"]).ok().json();
    assert_eq!(task["data"]["result"]["stdout"], "hello bc\n");

    cli.file("plan.yaml", "tasks:\n  - id: hi\n    call: {greet: {name: 3}}\n");
    let check = cli.run(&["plan", "check", "plan.yaml"]);
    assert!(
        check.code == Some(7) && check.stdout.contains("plan.yaml:3:20: tasks[0].call.greet.name"),
        "{check}"
    );
}

#[test]
fn a_call_by_hand_leaves_the_plan_alone_and_tells_how_it_ended() {
    let cli = Cli::new().with_programs();
    let left = cli.path("tmp");
    fs::create_dir(&left).unwrap();
    let cli = cli.with("TMPDIR", left.to_str().unwrap());
    cli.run(&["create", "a"]).ok();
    let failed =
        cli.run(&["tools", "call", "exec", "--args", r#"{"argv": ["sh", "-c", "echo out; exit 3"]}"#]);
    assert_eq!(
        (failed.code, failed.stderr.as_str()),
        (Some(1), "failed: `exec`: `sh` exited with code 3\n"),
        "{failed}"
    );
    assert_eq!((&failed.json()["exitCode"], &failed.json()["stdout"]), (&json!(3), &json!("out\n")));
    let said = cli.run(&["tools", "call", "log", "--args", r#"{"message": "hello"}"#]).ok();
    assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("", "hello\n"));
    let args = r#"{"argv": ["sh", "-c", "echo $TASKPAWL_CALL; seq 1 100000"]}"#;
    let long = cli.run(&["tools", "call", "exec", "--args", args, "--json"]).ok().json();
    let result = &long["data"]["result"];
    assert_eq!(result["stdout"].as_str().unwrap().lines().count(), 100_001);
    assert_eq!((&result["truncated"], result.get("outputFile")), (&json!(false), None));
    let files: Vec<_> = fs::read_dir(&left).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.is_empty(), "{files:?}");
    assert_eq!(cli.run(&["list", "--json"]).ok().json()["data"].as_array().unwrap().len(), 1);

    let alone = Cli::without_store();
    assert_eq!(alone.run(&["tools", "call", "log", "--args", r#"{"message": "x"}"#]).ok().stderr, "x\n");
}

#[test]
fn faults_of_a_description_are_told_with_file_and_line() {
    let cli = Cli::new();
    for (content, problem) in [
        ("[tools.x]\nargv = [\"x\"]\n", "line 1: `tools.x.description` is missing"),
        (
            "[tools.x]\ndescription = \"x\"\nargv = [\n\"x\",\n\"{y}\"]\n",
            "line 3: `tools.x.argv` has the placeholder `{y}`",
        ),
        (
            "[tools.x]\ndescription = \"x\"\nargv = [\"x\",\n\"a}\"]\n",
            "line 4: `tools.x.argv[1]` has a brace",
        ),
        (
            "[tools.x]\ndescription = \"x\"\nargs = [\"x\"]\n",
            "line 3: `tools.x.args` is not a known field of a tool; did you mean `argv`?",
        ),
        (
            "[tools.x]\nconcurency = 2\n",
            "line 2: `tools.x.concurency` is not a known field of a tool; did you mean `concurrency`?",
        ),
        (
            "[tools.x]\ndescription = \"x\"\nargv = [\"x\", \"{a}\"]\n[tools.x.params.a]\ndefault = 1\n",
            "line 5: `tools.x.params.a.default` does not fit",
        ),
        ("[tools.exec]\nargv = [\"x\"]\n", "line 1: `tools.exec` is a built-in tool"),
        ("[tools.\"a b\"]\nargv = [\"x\"]\n", "line 1: `tools.a b` is no name for a tool"),
        ("[tools.x]\ndescription = 1979-05-27\n", "line 2: `tools.x` contains a date"),
    ] {
        user_file(&cli, content);
        let run = cli.run(&["list"]);
        assert!(run.code == Some(2) && run.stderr.contains(problem), "{content}\n{run}");
    }
}

#[test]
fn a_project_redefines_nothing_and_is_not_trusted_by_itself() {
    let cli = Cli::new().with_programs();
    cli.file("taskpawl.toml", GREET);
    insta::assert_snapshot!(cli.session(&[
        &["tools", "call", "greet", "--args", r#"{"name": "a"}"#],
        &["create", "hi", "--id", "hi", "--tool", "greet", "--args", r#"{"name": "a"}"#],
    ]));
    let run = cli.run(&["run-all-ready"]);
    assert_eq!(run.code, Some(4), "{run}");
    let explained = cli.run(&["explain", "hi"]).ok();
    for words in [
        "`[HOME]/work/taskpawl.toml` of the project describes it, and is not trusted as it is now",
        "\n  taskpawl trust\n",
    ] {
        assert!(explained.stdout.contains(words), "{explained}");
    }
    let listed = cli.run(&["tools", "list", "--json"]).ok().json();
    let greet = listed["data"].as_array().unwrap().iter().find(|tool| tool["name"] == "greet").unwrap();
    assert_eq!(greet["usable"], false);

    user_file(&cli, GREET);
    insta::assert_snapshot!(cli.run(&["create", "x"]), @"
    $ taskpawl create x
    ! error: [HOME]/work/taskpawl.toml line 2: `tools.greet` is a tool of your own as well, in `[HOME]/.config/taskpawl/config.toml`, which no project redefines; rename one of them
    ! hint: `taskpawl tools --help` shows how a tool is described
    [exit 2]
    ");
}

#[test]
fn the_descriptions_in_the_documentation_are_read() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md");
    let docs = fs::read_to_string(docs).unwrap();
    let examples: Vec<&str> =
        docs.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        let cli = Cli::new();
        user_file(&cli, example);
        cli.run(&["tools", "list"]).ok();
    }
    for field in taskpawl::tools::CommandTool::FIELDS {
        assert!(docs.contains(&format!("`{field}")), "`{field}` is not explained");
    }
}
