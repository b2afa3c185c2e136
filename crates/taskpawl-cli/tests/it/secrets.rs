//! Tests of secrets: their sources, and the errors for missing ones.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::harness::{Cli, unhashed};

fn with_config(config: &str) -> Cli {
    let cli = Cli::new().with_programs().with("API", "value-of-api-0123");
    let dir = cli.path(".config/taskpawl");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), config).unwrap();
    cli
}

#[test]
fn a_call_gets_what_it_names_and_nobody_sees_it() {
    let cli = with_config(
        "[secrets.API]\nenv = \"API\"\n[secrets.DB]\nfile = \"~/db\"\n[secrets.KEY]\ncommand = [\"sh\", \"-c\", \"echo key-from-program; pwd >&2\"]\n",
    );
    fs::write(cli.path("db"), "db-password-0123\n").unwrap();
    // A secret file that other users can read is refused.
    fs::set_permissions(cli.path("db"), fs::Permissions::from_mode(0o600)).unwrap();
    let script =
        "test \"$A\" = value-of-api-0123 && test \"$1\" = 'x db-password-0123' && cat && echo $A >&2";
    let exec = json!({
        "argv": ["sh", "-c", script, "sh", "x ${secret:DB}"],
        "env": {"A": "${secret:API}"},
        "stdin": "${secret:KEY} and $${secret:KEY}",
    });
    let shell = json!({"command": "test ${secret:KEY} = key-from-program && echo ok '${secret:KEY}'"});
    cli.file(
        "plan.json",
        &json!({"tasks": [
        {"id": "exec", "call": {"exec": exec}},
        {"id": "shell", "call": {"shell": shell}},
        {"id": "inserted", "needs": "exec", "call": {"exec": {"argv": ["echo", "${{ params.evil }}"]}}},
    ], "params": {"evil": {"type": "string", "default": "${secret:API}"}}})
        .to_string(),
    );
    let checked = ["plan", "check", "plan.json"];
    let session = cli.session(&[
        &["config", "list", "--origin"],
        &checked,
        &["run-all-ready", "--plan", "plan.json", "--quiet"],
        &["logs", "exec"],
        &["logs", "shell", "--json"],
        &["logs", "inserted"],
        &["show", "exec", "--json", "--fields", "metadata.toolCalls,result"],
    ]);
    insta::assert_snapshot!(without_sandbox(&session));
}

/// Removes the enforced sandbox from the output, because it differs between machines.
fn without_sandbox(session: &str) -> String {
    let mut is_in = false;
    let is_kept = |line: &&str| {
        let was_in = is_in;
        is_in = if was_in { !line.trim_start().starts_with('}') } else { line.contains("\"sandbox\": {") };
        !was_in && !is_in
    };
    session.lines().filter(is_kept).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_missing_says_where_it_was_looked_for() {
    let cli = with_config("[secrets.UNSET]\nenv = \"NOT_THERE\"\n[secrets.OPEN]\nfile = \"~/open\"\n");
    fs::write(cli.path("open"), "open-to-all-0123").unwrap();
    fs::set_permissions(cli.path("open"), fs::Permissions::from_mode(0o644)).unwrap();
    let tasks = ["UNKNOWN", "UNSET", "OPEN"].map(|name| {
        json!({"id": name, "retry": 3, "call": {"exec": {"argv": ["echo", format!("${{secret:{name}}}")]}}})
    });
    cli.file("plan.json", &json!({"tasks": tasks}).to_string());
    cli.file("wrong.yaml", "tasks:\n  - {id: a, call: {exec: {argv: [echo, '${secret:no name}']}}}\n  - id: b\n    run: echo `x ${secret:A}`\n");
    insta::assert_snapshot!(
        cli.session(&[
            &["run-all-ready", "--plan", "plan.json", "--quiet"],
            &["plan", "check", "wrong.yaml"],
        ])
    );
}

#[test]
fn what_a_model_adds_is_asked_about_when_it_names_a_secret() {
    let cli = with_config("[secrets.API]\nenv = \"API\"\n");
    let tasks = json!({"tasks": [{"id": "new", "call": {"exec": {"argv": ["echo", "${secret:API}"]}}}]});
    let emit = json!({"argv": ["printf", "%s", tasks.to_string()], "parse": "json"});
    let emit =
        json!({"id": "emit", "metadata": {"toolCalls": [{"toolName": "exec", "args": emit, "emit": true}]}});
    // The outer `$$` escapes the reference, so that the emitted task holds the reference and not the value.
    let plan = json!({"tasks": [emit]}).to_string().replace("${secret:API}", "$${secret:API}");
    cli.file("plan.json", &plan);
    let session = cli.session(&[&["run-all-ready", "--plan", "plan.json", "--quiet"], &["show", "new"]]);
    insta::assert_snapshot!(unhashed(&session));
}

#[test]
fn a_command_is_not_taken_from_where_programs_of_plans_write() {
    let config = "[secrets.A]\ncommand = [\"pass\", \"show\"]\n[run]\nnotify = [\"pass\", \"notify\"]\n";
    let cli = with_config(config);
    let planted = cli.path("work/node_modules/.bin");
    fs::create_dir_all(&planted).unwrap();
    fs::write(planted.join("pass"), "#!/bin/sh\ntouch ~/planted\necho secret-of-plan\n").unwrap();
    fs::set_permissions(planted.join("pass"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:node_modules/.bin:/usr/bin:/bin", planted.display());
    let cli = cli.with("PATH", &path);
    cli.file("plan.yaml", "tasks: [{id: a, call: {exec: {argv: [echo, '${secret:A}']}}}]");
    let run = cli.run(&["run-all-ready", "--plan", "plan.yaml"]);
    assert_ne!(run.code, Some(0), "{run}");
    let error = cli.run(&["show", "a", "--json"]).ok().stdout;
    assert!(error.contains("is writable by programs of plans"), "{error}");
    assert!(!cli.path("planted").exists());
}

#[test]
fn a_command_is_not_taken_from_what_a_run_opens_either() {
    let cli = with_config("[secrets.A]\ncommand = [\"pass\", \"show\"]\n");
    let tools = cli.path("tools");
    fs::create_dir_all(&tools).unwrap();
    fs::write(tools.join("pass"), "#!/bin/sh\necho secret-of-tools\n").unwrap();
    fs::set_permissions(tools.join("pass"), fs::Permissions::from_mode(0o755)).unwrap();
    let cli = cli.with("PATH", &format!("{}:/usr/bin:/bin", tools.display()));
    cli.file("plan.yaml", "tasks: [{id: a, call: {exec: {argv: [echo, '${secret:A}']}}}]");
    let run = ["--store", ":memory:", "run-all-ready", "--plan", "plan.yaml", "--format", "ndjson"];
    assert_eq!(cli.run(&run).code, Some(0));
    let opened = cli.run(&[&run[..], &["--allow-write", "../tools"]].concat());
    assert_ne!(opened.code, Some(0), "{opened}");
    assert!(opened.stdout.contains("tools/pass` is writable by programs of plans"), "{opened}");
    // A location that a policy rule opens without a question may have been written by an earlier run.
    let rule = "[[rules]]\ndecision = \"allow\"\nargv = \"make\"\nsandbox = { write = [\"~/tools\"] }\n";
    cli.policy(rule);
    let granted = cli.run(&run);
    assert!(granted.stdout.contains("tools/pass` is writable by programs of plans"), "{granted}");
    cli.policy("");
    assert_eq!(cli.run(&run).code, Some(0));
    let config = fs::read_to_string(cli.path(".config/taskpawl/config.toml")).unwrap();
    let server = "[mcpServers.s]\ncommand = \"s\"\nsandbox = { write = [\"~/tools\"] }\n";
    fs::write(cli.path(".config/taskpawl/config.toml"), config + server).unwrap();
    let granted = cli.run(&run);
    assert!(granted.stdout.contains("tools/pass` is writable by programs of plans"), "{granted}");
}

#[test]
fn only_the_user_says_where_secrets_come_from() {
    for (what, file, content) in [
        ("project", "taskpawl.toml", "[secrets.A]\nenv = \"HOME\"\n"),
        ("relative", "", "[secrets.A]\nfile = \"here\"\n"),
        ("two", "", "[secrets.A]\nfile = \"/a\"\nenv = \"A\"\n"),
        ("name", "", "[secrets.\"a b\"]\nenv = \"A\"\n"),
        ("kind", "", "[secrets.A]\ncommand = \"pass show a\"\n"),
    ] {
        let cli = with_config(if file.is_empty() { content } else { "" });
        if !file.is_empty() {
            cli.file(file, content);
        }
        insta::assert_snapshot!(what, cli.run(&["create", "x"]));
    }
}

#[test]
fn a_failed_command_shows_the_names_of_secrets_as_they_were_written() {
    let cli = with_config("[secrets.API]\nenv = \"API\"\n[secrets.DB]\nenv = \"API\"\n");
    let commands = [
        "test x = '${secret:API}'",
        "test ${secret:DB} = \"x ${secret:API}\"",
        "echo ${secret:API} >&2; echo '$TASKPAWL_SECRET_0' >&2; exit 3",
    ];
    for (number, command) in commands.iter().enumerate() {
        let id = format!("t{number}");
        cli.run(&["create", &id, "--id", &id, "--run", command]).ok();
    }
    cli.run(&["run-all-ready"]);
    let error =
        |id: &str| cli.run(&["show", id, "--json"]).ok().json()["data"]["error"].as_str().unwrap().to_owned();
    for id in ["t0", "t1", "t2"] {
        assert!(!error(id).contains("TASKPAWL_SECRET_"), "{}", error(id));
        assert!(error(id).contains("${secret:API}"), "{}", error(id));
    }
    assert!(error("t0").contains("`test x = '${secret:API}'` exited with code 1"), "{}", error("t0"));
    assert!(error("t1").contains("${secret:DB}"), "{}", error("t1"));
}

#[test]
fn a_tool_of_ones_own_gets_secrets_in_its_variables() {
    let tool = "[tools.ask]\ndescription = \"Asks.\"\nargv = [\"sh\", \"-c\", \"test \\\"$TOKEN\\\" = \\\"ann value-of-api-0123\\\" && echo $TOKEN\"]\n\
                env = { TOKEN = \"{user} ${secret:API}\" }\n[tools.ask.params.user]\n[secrets.API]\nenv = \"API\"\n";
    let cli = with_config(tool);
    cli.run(&["create", "a", "--id", "a"]).ok();
    cli.run(&["add-tool-call", "a", "--tool", "ask", "--args", "{\"user\": \"ann\"}"]).ok();
    cli.run(&["run", "a"]).ok();
    let shown = cli.run(&["show", "a", "--json"]).ok();
    assert_eq!(shown.json()["data"]["result"]["stdout"], "ann [redacted:API]\n");
    assert!(!shown.stdout.contains("value-of-api-0123"), "{shown}");

    let missing = with_config(&tool.replace("[secrets.API]\nenv = \"API\"\n", ""));
    let failed = missing.run(&["tools", "call", "ask", "--args", "{\"user\": \"ann\"}"]);
    assert!(failed.code == Some(1) && failed.stderr.contains("API"), "{failed}");

    let wrong = with_config(&tool.replace("secret:API", "secret:no name"));
    let refused = wrong.run(&["tools", "list"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("has an invalid `${secret:`"), "{refused}");
}
