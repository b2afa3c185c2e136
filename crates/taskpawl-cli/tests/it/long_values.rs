//! Values of the command line that are as long as files: messages repeat only their beginnings.

use serde_json::json;

use crate::harness::Cli;

/// Commands with an id, a name or another value of the user, for which `LONG` stands.
const COMMANDS: &[&[&str]] = &[
    &["show", "LONG"],
    &["explain", "LONG"],
    &["logs", "LONG"],
    &["history", "LONG"],
    &["claim", "LONG"],
    &["renew", "LONG"],
    &["release", "LONG"],
    &["done", "LONG"],
    &["fail", "LONG"],
    &["skip", "LONG"],
    &["cancel", "LONG"],
    &["retry", "LONG"],
    &["reopen", "LONG"],
    &["block", "LONG", "--reason", "r"],
    &["unblock", "LONG"],
    &["approve", "LONG"],
    &["reject", "LONG"],
    &["update", "LONG", "--name", "x"],
    &["delete", "LONG"],
    &["note", "LONG", "text"],
    &["add-dependency", "a", "--on", "LONG"],
    &["run", "LONG"],
    &["runs", "LONG"],
    &["stop", "LONG"],
    &["report", "LONG", "--md", "-"],
    &["trace", "LONG"],
    &["replay", "LONG"],
    &["list", "--only", "LONG"],
    &["list", "--status", "LONG"],
    &["ready", "--only", "LONG"],
    &["graph", "--only", "LONG"],
    &["create", "x", "--needs", "LONG"],
    &["create", "x", "--priority", "LONG"],
    &["apply", "LONG"],
    &["run-all-ready", "--plan", "LONG"],
    &["run-all-ready", "--only", "LONG"],
    &["signal", "LONG"],
    &["undo", "LONG"],
    &["import", "LONG"],
    &["export", "LONG"],
    &["token", "revoke", "LONG"],
    &["schedules", "remove", "LONG"],
    &["LONG"],
    &["--LONG"],
];

#[test]
fn errors_do_not_repeat_long_values() {
    let cli = Cli::new();
    cli.run(&["create", "a", "--quiet"]).ok();
    // Several times as much as a message may have.
    let long = "x".repeat(20_000);
    for command in COMMANDS {
        for more in [&[][..], &["--json"]] {
            let args: Vec<String> = command.iter().map(|word| word.replace("LONG", &long)).collect();
            let args: Vec<&str> = args.iter().map(String::as_str).chain(more.iter().copied()).collect();
            let run = cli.run(&args);
            let bytes = run.stdout.len() + run.stderr.len();
            assert!(
                run.code != Some(0) && bytes < 4_096,
                "{command:?} {more:?}: {bytes} bytes, {:?}",
                run.code
            );
        }
    }
}

#[test]
fn lines_for_people_have_a_bound() {
    let cli = Cli::new();
    let long = "x".repeat(50_000);
    cli.run(&["create", "a", "--quiet", "--description", &long]).ok();
    cli.run(&["signal", "go", "--quiet", "--data", &json!(long).to_string()]).ok();
    for args in [&["show", "a"][..], &["signal", "--list"]] {
        let run = cli.run(args).ok();
        let longest = run.stdout.lines().map(str::len).max().unwrap();
        assert!((1_000..5_000).contains(&longest), "{args:?}: {longest}");
        assert!(cli.run(&[args, &["--json"]].concat()).ok().stdout.contains(&long));
    }
}
