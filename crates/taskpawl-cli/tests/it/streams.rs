//! Tests of streams: closed pipes, colours, and text with control sequences.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::harness::Cli;

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let cli = Cli::new();
    // More output than a pipe holds, so that the program still writes when the reader closes its end.
    let tasks: Vec<String> =
        (0..3000).map(|number| format!("{{id: task-{number:04}, name: a name to fill the pipe}}")).collect();
    cli.file("many.yaml", &format!("tasks: [{}]", tasks.join(", ")));
    cli.run(&["apply", "many.yaml"]).ok();
    for args in [&["list", "--limit", "0"][..], &["list", "--limit", "0", "--json"], &["completions", "bash"]]
    {
        let mut command = cli.command(&cli.path("work"), args);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(!first.is_empty());
        assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
    }
}

#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let cli = Cli::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = cli.command(&cli.path("work"), &["completions", "bash"]);
    let output = command.stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(8));
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @"error: failed to write to standard output: No space left on device (os error 28)");
}

const HOSTILE: &str = "a\u{1b}[2J\u{1b}]0;title\u{7}b\u{9b}31mc\u{202e}d\re\u{8}f";

#[test]
fn text_from_tasks_does_nothing_to_a_terminal() {
    let cli = Cli::new();
    for args in [
        &[
            "create",
            HOSTILE,
            "--id",
            "x",
            "--description",
            HOSTILE,
            "--assignee",
            HOSTILE,
            "--label",
            HOSTILE,
        ][..],
        &["update", "x", "--context", &format!("k={HOSTILE}"), "--metadata", &format!("{HOSTILE}=1")],
        &["update", "x", "--set", &format!("x-{HOSTILE}={{\"{HOSTILE_KEY}\": 1}}")],
        &["note", "x", HOSTILE],
        &["block", "x", "--reason", HOSTILE],
        &["add-tool-call", "x", "--tool", HOSTILE],
        &["show", "x"],
        &["show", "x", "--json"],
        &["list"],
        &["list", "--json"],
        &["show", HOSTILE],
        &["show", HOSTILE, "--json"],
        &["list", "--plan", HOSTILE, "--limit", "1"],
        &["create", "A", "--id", HOSTILE],
        &["apply", HOSTILE],
        &["fail", "x", "--note", HOSTILE],
        &["config", "get", HOSTILE],
    ] {
        let run = cli.run(args);
        let is_harmful = |c: char| c != '\n' && taskpawl::model::value::is_deceptive(c);
        let text = format!("{}{}", run.stdout, run.stderr);
        assert!(!text.contains(is_harmful), "{args:?}: {text:?}");
    }
    insta::assert_snapshot!(cli.run(&["show", "x"]).ok());
    let json = cli.run(&["show", "x", "--json"]).ok().json();
    assert_eq!(json["data"]["name"], HOSTILE, "JSON keeps what was given");
}

const HOSTILE_KEY: &str = "key\u{202e}";

#[test]
fn colours_are_for_terminals_unless_asked_for() {
    let cli = Cli::new().with("TERM", "xterm");
    cli.run(&["create", "A", "--id", "a"]).ok();
    let has_colours = |cli: &Cli, args: &[&str]| cli.run(args).stdout.contains('\u{1b}');
    assert!(!has_colours(&cli, &["list"]), "standard output is no terminal");
    assert!(has_colours(&cli, &["list", "--color", "always"]));
    let cli = cli.with("TASKPAWL_COLOR", "always");
    assert!(has_colours(&cli, &["list"]));
    assert!(!has_colours(&cli, &["list", "--color", "never"]));
    assert!(!has_colours(&cli.with("NO_COLOR", "1"), &["list", "--color", "auto"]));
}

/// The type that escapes text for terminals protects only if no other module writes to the streams.
#[test]
fn one_module_writes_to_the_streams() {
    let mut directories = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    let mut writers = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let locks = ["io::stdout().lock", "io::stderr().lock", "stdout().write", "stderr().write"];
            let macros =
                ["print!(", "println!(", "execute!(", "queue!(", "writeln!(io::", "writeln!(std::io::"];
            // Unit tests may print.
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            if locks.iter().chain(&macros).any(|word| code.contains(word)) {
                writers.push(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    assert_eq!(writers, ["output.rs"]);
}
