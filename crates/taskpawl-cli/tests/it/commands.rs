//! The output of every command, as text and as JSON, in one small scenario.

use std::os::unix::fs::PermissionsExt;

use crate::harness::Cli;

/// Returns a store with three tasks in a row, one of them with a call, and a parent.
fn scenario() -> Cli {
    let cli = Cli::new();
    for args in [
        &["create", "Build", "--id", "build", "--run", "cargo build", "--timeout", "10m"][..],
        &[
            "create",
            "Review",
            "--id",
            "review",
            "--priority",
            "high",
            "--assignee",
            "user@host",
            "--label",
            "people",
        ],
        &["create", "Deploy", "--id", "deploy", "--needs", "build,review", "--due", "2026-05-31"],
        &["create", "Docs", "--id", "docs"],
        &["add-subtask", "docs", "Write", "--id", "write"],
    ] {
        cli.run(args).ok();
    }
    cli
}

#[test]
fn create_and_update_reach_every_field() {
    let cli = Cli::new();
    insta::assert_snapshot!(cli.session(&[
        &["create", "First"],
        &[
            "create",
            "All fields",
            "--id",
            "all",
            "--description",
            "what\nto do",
            "--priority",
            "critical",
            "--due",
            "2026-05-31",
            "--assignee",
            "ada",
            "--label",
            "x",
            "--label",
            "y",
            "--needs",
            "firs",
            "--trigger",
            "all_finished",
            "--mode",
            "parallel",
            "--timeout",
            "90s",
            "--estimate",
            "2h",
            "--context",
            "a=1",
            "--context",
            "b=text",
            "--metadata",
            "{\"ticket\": \"T-1\"}",
            "--tool",
            "log",
            "--args",
            "{\"message\": \"hello\"}",
            "--set",
            "retry={\"attempts\": 3}",
            "--set",
            "resources={\"db\": 1}",
            "--set",
            "writes=[\"out\"]",
            "--set",
            "links={\"relatesTo\": [\"far\"]}",
            "--json",
        ],
        &["create", "Stop", "--id", "stop", "--milestone", "--needs", "all", "--quiet"],
        &["show", "all"],
        &[
            "update",
            "all",
            "--name",
            "Renamed",
            "--priority",
            "low",
            "--label",
            "z",
            "--unset",
            "assignee",
            "--set",
            "estimate=null",
            "--context",
            "b=null",
            "--set",
            "links={\"duplicates\": [\"other\"]}",
            "--needs",
            "stop",
            "--if-version",
            "1",
        ],
        &["update", "all", "--unset", "dependencies", "--if-version", "1"],
        &[
            "update",
            "all",
            "--name",
            "Renamed",
            "--unset",
            "assignee",
            "--label",
            "z",
            "--context",
            "b=null",
            "--set",
            "estimate=null",
            "--if-version",
            "2"
        ],
        &["update", "all", "--priority", "low", "--if-version", "1"],
        &["update", "all", "--needs", "firs", "--fields", "id,dependencies,metadata.context,version"],
        &["show", "all"],
    ]));
}

#[test]
fn lists_filter_and_say_when_there_is_more() {
    let cli = scenario();
    insta::assert_snapshot!(cli.session(&[
        &["list"],
        &["ready"],
        &["list", "--status", "todo,failed", "--limit", "2"],
        &["list", "--status", "todo,failed", "--limit", "2", "--offset", "4"],
        &["list", "--label", "people", "--assignee", "user@host", "--priority", "high,low"],
        &["list", "--parent", "docs"],
        &["list", "--text", "BUILD", "--fields", "id,status"],
        &["list", "--plan", "none"],
        &["ready", "--limit", "1", "--fields", "id"],
        &["ready", "-n", "1"],
        &["list", "--fields", "id,stauts"],
        &["list", "--limit", "1", "--text", "a 'b", "--store", "../tasks.db"],
        &["list", "--limit", "1", "--store", "../tasks.db"],
    ]));
}

#[test]
fn work_by_hand_as_text() {
    let cli = scenario();
    insta::assert_snapshot!(cli.session(&[
        &["claim", "--next"],
        &["claim", "review", "--ttl", "2h"],
        &["renew", "review"],
        &["show", "review"],
        &["release", "review"],
        &["done", "review", "write", "--result", "{\"ok\": true}", "--note", "looks good"],
        &["show", "review"],
        &["create", "Ship", "--id", "ship"],
        &["fail", "ship", "--note", "no way"],
        &["retry", "ship"],
        &["block", "ship", "--reason", "not now"],
        &["list", "--status", "blocked"],
        &["unblock", "ship"],
        &["cancel", "ship", "--reason", "enough"],
        &["reopen", "ship"],
        &["skip", "build", "--reason", "nothing changed"],
        &["add-dependency", "ship", "review"],
        &["remove-dependency", "ship", "review"],
        &["note", "ship", "remember\nthis"],
        &["show", "ship"],
        &["update", "ship", "--status", "done", "--result", "7", "--reason", "by hand"],
        &["delete", "ship"],
        &["list"],
    ]));
}

#[test]
fn work_by_hand_as_json() {
    let cli = scenario();
    insta::assert_snapshot!(cli.session(&[
        &["claim", "review", "--json"],
        &["done", "review", "--json"],
        &[
            "add-tool-call",
            "deploy",
            "--tool",
            "exec",
            "--args",
            "{\"argv\": [\"true\"]}",
            "--id",
            "go",
            "--save-as",
            "went",
            "--idempotent",
            "--timeout",
            "5s",
            "--json"
        ],
        &["note", "write", "hello", "--fields", "notes"],
        &["delete", "write", "--json"],
        &["list", "--status", "done", "--json"],
        &["where", "--json"],
        &["apply", "missing.yaml", "--json"],
    ]));
}

#[test]
fn every_state_is_reached_by_status() {
    let cli = Cli::new();
    cli.run(&["create", "Task", "--id", "t"]).ok();
    for status in [
        "in_progress",
        "todo",
        "blocked",
        "todo",
        "done",
        "todo",
        "failed",
        "todo",
        "cancelled",
        "todo",
        "skipped",
    ] {
        let run = cli.run(&["update", "t", "--status", status, "--json"]).ok();
        assert_eq!(run.json()["data"]["status"], status);
    }
    insta::assert_snapshot!(cli.session(&[
        &["update", "t", "--status", "done"],
        &["update", "t", "--status", "todo", "--priority", "low"],
        &["update", "t"],
        &["update", "t", "--status", "finished"],
    ]));
}

#[test]
fn selectors_change_all_or_nothing() {
    let cli = Cli::new();
    cli.file("p.yaml", "tasks: [{id: a, labels: [x]}, {id: b, subtasks: [{id: c}, {id: d}]}, {id: e}]");
    insta::assert_snapshot!(cli.session(&[
        &["apply", "p.yaml"],
        &["fail", "a", "c"],
        &["retry", "--failed"],
        &["retry", "--failed"],
        &["retry", "--failed", "--json"],
        &["fail", "a", "d"],
        &["retry", "--only", "label:x"],
        &["retry", "--only", "b", "--failed"],
        &["done", "a", "c"],
        &["skip", "a", "e"],
        &["skip", "--only", "b"],
        &["reopen", "--only", "b"],
        &["cancel", "--only", "plan:p", "--reason", "over"],
        &["cancel", "--only", "plan:p"],
        &["reopen", "--only", "plan:none"],
        &["reopen", "--only", "owner:me"],
        &["retry"],
        &["retry", "a", "--failed"],
    ]));
}

#[test]
fn names_are_asked_for_only_on_a_terminal() {
    let cli = Cli::new();
    insta::assert_snapshot!(cli.run_with(&["create"], "typed\n"));
}

#[test]
fn the_tools_of_a_call_are_looked_at() {
    let cli = scenario();
    insta::assert_snapshot!(cli.session(&[
        &["add-tool-call", "deploy", "--tool", "shel", "--args", "{}"],
        &["add-tool-call", "deploy", "--tool", "exec", "--args", "{\"arg\": [\"x\"]}"],
        &["add-tool-call", "deploy", "--tool", "exec", "--args", "[1]"],
        &["add-tool-call", "deploy", "--tool", "exec", "--args", "{\"argv\": [\"x\"]}", "--save-as", "a b"],
        &["create", "Sleep", "--tool", "sleep"],
        &[
            "create",
            "Sleep",
            "--tool",
            "sleep",
            "--args",
            "{\"duration\": \"${{ params.x }}\"}",
            "--id",
            "sleep"
        ],
    ]));
}

#[test]
fn completions_pages_and_schemas_are_there() {
    let cli = Cli::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = cli.run(&["completions", shell]).ok().stdout;
        assert!(script.contains("add-tool-call"), "{shell}");
    }
    assert!(cli.run(&["man"]).ok().stdout.contains(".TH taskpawl 1"));
    let pages = cli.run(&["man", "--dir", "man/man1", "--json"]).ok().json();
    let written = std::fs::read_dir(cli.path("work/man/man1")).unwrap().count() as u64;
    assert!(pages["data"]["pages"].as_u64().is_some_and(|pages| pages > 28 && pages <= written), "{pages}");
    insta::assert_snapshot!(cli.run(&["schema", "config"]).ok());
    for what in ["plan", "task", "call"] {
        let schema: serde_json::Value =
            serde_json::from_str(&cli.run(&["schema", what]).ok().stdout).unwrap();
        assert!(schema["$defs"]["task"]["properties"]["needs"].is_object());
    }
}

#[test]
fn a_schema_is_installed_for_editors() {
    let cli = Cli::without_store();
    let run = cli.run(&["schema", "plan", "--install"]).ok();
    let line = "# yaml-language-server: $schema=[HOME]/.local/share/taskpawl/plan.schema.json\n";
    assert!(run.stdout.ends_with(line), "{run}");
    let installed = std::fs::read_to_string(cli.path(".local/share/taskpawl/plan.schema.json")).unwrap();
    assert_eq!(installed, cli.run(&["schema", "plan"]).ok().stdout);

    let data = cli.path("a b");
    let cli = cli.with("XDG_DATA_HOME", data.to_str().unwrap());
    let data = cli.run(&["schema", "config", "--install", "--json"]).ok().json()["data"].clone();
    assert_eq!(data["path"], "[HOME]/a b/taskpawl/config.schema.json");
    assert_eq!(data["line"], "#:schema file://[HOME]/a%20b/taskpawl/config.schema.json");
    assert!(cli.path("a b/taskpawl/config.schema.json").exists());

    let homeless = Cli::without_store().with("HOME", "home").run(&["schema", "plan", "--install"]);
    assert_eq!(homeless.code, Some(2), "{homeless}");
    assert!(homeless.stderr.contains("taskpawl schema plan > plan.schema.json"), "{homeless}");

    let cli = Cli::without_store();
    std::fs::write(cli.path(".local"), "a file").unwrap();
    let refused = cli.run(&["schema", "plan", "--install"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("failed to write"), "{refused}");
}

#[test]
fn names_of_other_programs_lead_to_the_command_that_does_it() {
    let cli = Cli::new();
    for (name, right) in [
        ("add", "create"),
        ("new", "create"),
        ("ps", "runs"),
        ("exec", "tools call exec"),
        ("start", "run-all-ready"),
    ] {
        let run = cli.run(&[name, "x"]);
        assert_eq!(run.code, Some(2), "{run}");
        assert!(run.stderr.contains(&format!("taskpawl {right}")), "{run}");
    }
}

#[test]
fn doctor_leaves_files_that_are_no_stores_alone() {
    let cli = Cli::new();
    cli.file("n.txt", "hi");
    let mode = || std::fs::metadata(cli.path("work/n.txt")).unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(cli.path("work/n.txt"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let run = cli.run(&["doctor", "--fix", "--store", "n.txt"]);
    assert!(run.code != Some(0) && run.to_string().contains("not a taskpawl store"), "{run}");
    assert_eq!(mode(), 0o644);
    assert!(!cli.path("work/n.txt.lock").exists());
    assert_eq!(cli.run(&["init", "--store", ""]).code, Some(2));
}

#[test]
fn an_update_prints_all_that_starts_over_with_it() {
    let cli = Cli::new();
    cli.run(&["create", "A", "--id", "a"]).ok();
    cli.run(&["create", "B", "--id", "b", "--needs", "a"]).ok();
    cli.run(&["done", "a", "b"]).ok();
    let update = ["update", "a", "--priority", "high", "--reopen", "--cascade"];
    assert_eq!(cli.run(&[&update[..], &["--quiet"]].concat()).ok().stdout, "a\nb\n");
    cli.run(&["done", "a", "b"]).ok();
    assert_eq!(cli.run(&[&update[..], &["--json"]].concat()).ok().json()["data"]["id"], "a");
}

#[test]
fn an_option_of_other_commands_leads_to_them() {
    let cli = Cli::new();
    let run = cli.run(&["run", "plan.yaml", "--param", "x=1"]);
    assert_eq!(run.code, Some(2), "{run}");
    assert!(run.stderr.contains("no option `--param`"), "{run}");
    assert!(run.stderr.contains("`taskpawl run-all-ready --param`"), "{run}");
    let similar = cli.run(&["list", "--statsu", "todo"]);
    assert!(similar.stderr.contains("exists: '--status'"), "{similar}");
    let unknown = cli.run(&["list", "--frobnicate"]);
    assert!(unknown.stderr.contains("unexpected argument"), "{unknown}");
}

#[test]
fn the_bare_program_shows_where_the_plan_stands() {
    let cli = Cli::new();
    cli.run(&["create", "Write", "--id", "write"]).ok();
    let status = cli.run(&["status"]).ok();
    assert!(status.stdout.contains("write"), "{status}");
    assert_eq!(cli.run(&[]).ok().stdout, status.stdout);
}
