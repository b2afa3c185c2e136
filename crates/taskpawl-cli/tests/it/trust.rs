//! Tests of trust in files of a project.

use crate::harness::{Cli, may_decide};
use std::os::unix::fs::PermissionsExt as _;

const TOOLS: &str = "[tools.hello]\ndescription = \"Says hello\"\nargv = [\"echo\", \"hello\"]\n";

#[test]
fn trust_is_for_a_content_that_was_shown() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs().at_a_terminal();
    cli.file("taskpawl.toml", TOOLS);
    cli.file(".mcp.json", "{\"mcpServers\": {}}\n");
    let state = |cli: &Cli| {
        let listed = cli.run(&["trust", "--list", "--fields", "state"]).ok().json()["data"].clone();
        listed
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["state"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(state(&cli), ["untrusted", "untrusted"]);
    let asked = cli.run_with(&["trust"], "n\n").ok();
    insta::assert_snapshot!(asked);
    assert_eq!(state(&cli), ["untrusted", "untrusted"]);
    cli.run_with(&["trust"], "yes\n").ok();
    assert_eq!(state(&cli), ["trusted", "trusted"]);
    let said = cli.run(&["tools", "call", "hello", "--fields", "result.stdout"]).ok().stdout;
    assert!(said.contains("hello"), "{said}");
    cli.file("taskpawl.toml", &format!("{TOOLS}# more\n"));
    assert_ne!(cli.run(&["tools", "call", "hello"]).code, Some(0));
    assert_eq!(state(&cli), ["changed", "trusted"]);
    cli.run(&["trust", "--yes", "taskpawl.toml"]).ok();
    assert_eq!(state(&cli), ["trusted", "trusted"]);
    cli.run(&["trust", "--remove"]).ok();
    assert_eq!(state(&cli), ["untrusted", "untrusted"]);
    let mode = std::fs::metadata(cli.path(".local/state/taskpawl/trust.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_project_that_only_says_how_often_needs_no_trust() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().at_a_terminal();
    cli.file("taskpawl.toml", "[tools.exec]\nconcurrency = 2\n");
    let run = cli.run(&["trust"]).ok();
    assert!(run.stderr.contains("nothing needs trust"), "{run}");
}

#[test]
fn the_program_that_a_project_wants_told_needs_trust() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs().at_a_terminal();
    cli.file("taskpawl.toml", "[run]\nnotify = [\"sh\", \"-c\", \"cat > said\"]\n");
    cli.file("plan.yaml", "tasks: [{id: a, call: {log: {message: x}}}]");
    let run = cli.run(&["run-all-ready", "--plan", "plan.yaml"]).ok();
    assert!(run.stderr.contains("`run.notify` is off"), "{run}");
    assert!(!cli.path("work/said").exists());
    cli.run(&["trust", "--yes"]).ok();
    cli.run(&["run-all-ready"]).ok();
    assert!(cli.path("work/said").exists());
}

#[test]
fn no_script_trusts_anything() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new();
    cli.file("taskpawl.toml", TOOLS);
    for args in [&["trust"][..], &["trust", "--yes"], &["trust", "--remove"]] {
        let run = cli.run(args);
        assert_eq!(run.code, Some(7), "{run}");
        assert!(run.stderr.contains("is for a person at a terminal"), "{run}");
    }
    assert!(!cli.path(".local/state/taskpawl/trust.json").exists());
    // A terminal is not sufficient: a program of a task is refused there as well.
    let within = cli.at_a_terminal().with("TASKPAWL_TASK", "a");
    assert_eq!(within.run(&["trust", "--yes"]).code, Some(7));
}

#[test]
fn a_file_is_shown_with_everything_that_hides_in_it() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().at_a_terminal();
    cli.file(
        "taskpawl.toml",
        "# a\u{1b}[2Jb\u{202e}c\u{200b}d\u{a0}e\u{e0041}\n[tools.x]\nargv = [\"true\"]\n",
    );
    let asked = cli.run_with(&["trust"], "n\n").ok();
    assert!(asked.stderr.contains(r"# a\u{1b}[2Jb\u{202e}c\u{200b}d\u{a0}e\u{e0041}"), "{asked}");
}
