//! The `--help` of every command.

use std::collections::BTreeSet;

use crate::harness::Cli;

/// Returns the commands that a help text lists: in groups, or under one heading.
fn commands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| !["Run:", "Commands:"].contains(line));
    let list = list.take_while(|line| *line != "Options:");
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

fn snapshot(cli: &Cli, path: &[String], seen: &mut BTreeSet<String>) {
    let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
    args.push("--help");
    let run = cli.run(&args).ok();
    let name = path.join("-");
    insta::assert_snapshot!(format!("help-{}", if name.is_empty() { "top" } else { &name }), run);
    for command in commands(&run.stdout) {
        let mut path = path.to_vec();
        path.push(command);
        seen.insert(path.join(" "));
        snapshot(cli, &path, seen);
    }
}

#[test]
fn the_version_is_the_same_with_and_without_the_tree_of_commands() {
    let cli = Cli::new();
    let grown = cli.run(&["--quiet", "--version"]).ok().stdout;
    assert!(grown.starts_with("taskpawl "), "{grown}");
    for quick in ["--version", "-V"] {
        assert_eq!(cli.run(&[quick]).ok().stdout, grown);
    }
}

#[test]
fn help_of_every_command() {
    let mut seen = BTreeSet::new();
    snapshot(&Cli::new(), &[], &mut seen);
    assert!(
        seen.contains("config list") && seen.contains("where") && seen.contains("todo lpush"),
        "{seen:?}"
    );
}

#[test]
fn every_command_has_examples_and_every_example_is_a_command_line() {
    let cli = Cli::new();
    let top = cli.run(&["--help"]).ok();
    for command in commands(&top.stdout) {
        let help = cli.run(&[&command, "--help"]).ok().stdout;
        let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        let examples: Vec<_> = examples.take_while(|line| line.starts_with("  ")).collect();
        assert!(!examples.is_empty(), "`{command}` shows no example");
        for example in examples {
            let words = words_of(example);
            let mut args: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
            args.push("--help");
            let run = cli.run(&args);
            assert_eq!((words[0].as_str(), run.code), ("taskpawl", Some(0)), "{example}\n{run}");
        }
    }
}

/// Returns the words of the first command of an example, split as a shell does. Four spaces start a remark.
fn words_of(example: &str) -> Vec<String> {
    let line = example.trim().split("    ").next().unwrap();
    let line = line.split(" && ").next().unwrap();
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match (quote, c) {
            (None, '>' | '<' | '|') => break,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            (None, ' ') if !word.is_empty() => words.push(std::mem::take(&mut word)),
            (None, ' ') => {}
            _ => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}
