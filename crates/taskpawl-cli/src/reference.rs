//! Writes `docs/cli.md`, the reference of all commands, from their definition.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command};

use crate::args::{GROUPS, tree};

/// Set to write the file instead of comparing it.
const RENEW: &str = "TASKPAWL_RENEW_DOCS";
/// The longest indented line of a help text that is part of a table or an example.
const MAX_BLOCK_WIDTH: usize = 110;
const HEAD: &str = "\
# The command line

Every command with its help, as `taskpawl COMMAND --help` prints it. [The README](../README.md) explains the concepts, \
[the tutorial](tutorial.md) shows the commands at work, and [the language of plans](plan-language.md) is the reference \
of plan files.

<!-- Generated from the definition of the commands: `TASKPAWL_RENEW_DOCS=1 cargo test -p taskpawl-cli reference` \
writes this file. -->
";

/// Returns the page.
fn page() -> String {
    let mut tree = tree().disable_help_subcommand(true);
    tree.build();
    let mut page = HEAD.to_owned();
    contents(&mut page, &tree);
    let _ = writeln!(page, "\n## Usage\n\n```text\n{}\n```", usage(&tree));
    options(&mut page, &tree, true);
    after(&mut page, &tree);
    for (group, names) in GROUPS {
        let _ = writeln!(page, "\n## {group}");
        for command in names.iter().filter_map(|name| tree.find_subcommand(name)) {
            section(&mut page, command, &format!("taskpawl {}", command.get_name()), 3);
        }
    }
    page
}

/// Adds a line for each group, with links to its commands.
fn contents(page: &mut String, tree: &Command) {
    page.push('\n');
    for (group, names) in GROUPS {
        let names = names.iter().filter(|name| tree.find_subcommand(name).is_some());
        let links: Vec<String> = names.map(|name| format!("[{name}](#taskpawl-{name})")).collect();
        let _ = writeln!(page, "- {group}: {}", links.join(" · "));
    }
}

/// Adds a command, and the commands below it.
fn section(page: &mut String, command: &Command, path: &str, level: usize) {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    let _ = writeln!(page, "\n{} {path}\n\n{}", "#".repeat(level), sentence(&about.unwrap_or_default()));
    let _ = writeln!(page, "\n```text\n{}\n```", usage(command));
    options(page, command, false);
    after(page, command);
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        section(page, below, &format!("{path} {}", below.get_name()), level + 1);
    }
}

fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    usage.trim_start_matches("Usage: ").trim().replace("\n       ", "\n")
}

/// Adds the arguments and options of a command, by their headings. Those of every command are listed once, at the
/// top.
fn options(page: &mut String, command: &Command, is_top: bool) {
    let is_help = |arg: &Arg| {
        matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        )
    };
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set() && !is_help(arg));
    let mut headings: Vec<(&str, Vec<&Arg>)> = Vec::new();
    for arg in shown.filter(|arg| is_top || !arg.is_global_set()) {
        let plain = if arg.is_positional() { "Arguments" } else { "Options" };
        let heading = arg.get_help_heading().unwrap_or(plain);
        match headings.iter_mut().find(|(name, _)| *name == heading) {
            Some((_, args)) => args.push(arg),
            None => headings.push((heading, vec![arg])),
        }
    }
    headings.sort_by_key(|(name, _)| {
        ["Arguments", "Options"].iter().position(|known| known == name).unwrap_or(2)
    });
    for (heading, args) in headings {
        let _ = writeln!(page, "\n{heading}:\n");
        for arg in args {
            option(page, arg);
        }
    }
}

fn option(page: &mut String, arg: &Arg) {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let _ = write!(page, "- `{}`: {}", spelling(arg), escaped(&help));
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    let takes_value = arg.get_action().takes_values();
    if takes_value && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        let _ = write!(page, " [default: {}]", defaults.join(", "));
    }
    page.push('\n');
    if !takes_value || arg.is_hide_possible_values_set() {
        return;
    }
    for value in arg.get_possible_values().iter().filter(|value| !value.is_hide_set()) {
        let help = value.get_help().map(|help| format!(": {}", escaped(&help.to_string())));
        let _ = writeln!(page, "  - `{}`{}", value.get_name(), help.unwrap_or_default());
    }
}

/// Returns the option as it is typed, with its short form and its value.
fn spelling(arg: &Arg) -> String {
    let short = arg.get_short().filter(|_| arg.get_long().is_some());
    format!("{}{arg}", short.map(|short| format!("-{short}, ")).unwrap_or_default())
}

/// Adds the text after the options: paragraphs, and indented lines as blocks.
fn after(page: &mut String, command: &Command) {
    let Some(text) = command.get_after_long_help().or(command.get_after_help()) else { return };
    let text = text.to_string();
    let mut is_block = false;
    let mut is_example = false;
    for line in text.lines() {
        // A long indented line is a paragraph, as clap wraps it.
        let is_indented = line.starts_with("  ") && line.len() <= MAX_BLOCK_WIDTH;
        if is_block && !is_indented {
            page.push_str("```\n");
        }
        if is_indented && !is_block {
            page.push_str(if is_example { "\n```sh\n" } else { "\n```text\n" });
        }
        if is_indented {
            let _ = writeln!(page, "{}", &line[2..]);
        } else if !line.is_empty() {
            let _ = writeln!(page, "\n{}", escaped(line.trim()));
        }
        is_example = line == "Examples:" || (is_example && is_indented);
        is_block = is_indented;
    }
    if is_block {
        page.push_str("```\n");
    }
}

/// Returns the text with a full stop.
fn sentence(text: &str) -> String {
    let end = if text.is_empty() || text.ends_with(['.', ':']) { "" } else { "." };
    format!("{}{end}", escaped(text))
}

/// Escapes what Markdown would read as a tag or as emphasis, outside code.
fn escaped(text: &str) -> String {
    let mut is_code = false;
    let mut escaped = String::new();
    for char in text.chars() {
        is_code ^= char == '`';
        if !is_code && matches!(char, '<' | '*') {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

#[test]
fn the_reference_of_commands_is_that_of_their_definition() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = page();
    if std::env::var_os(RENEW).is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = kept.lines().zip(page.lines()).position(|(kept, new)| kept != new);
    let line = differs.unwrap_or_else(|| kept.lines().count().min(page.lines().count())) + 1;
    assert!(kept == page, "line {line} differs; renew: {RENEW}=1 cargo test -p taskpawl-cli reference");
}

#[test]
fn every_command_of_the_tree_is_in_the_reference() {
    fn paths(command: &Command, path: &str, to: &mut Vec<String>) {
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            let path = format!("{path} {}", below.get_name());
            paths(below, &path, to);
            to.push(path);
        }
    }
    let mut all = Vec::new();
    paths(&tree(), "", &mut all);
    all.retain(|path| !path.starts_with(" todo-"));
    let page = page();
    let is_missing = |path: &String| {
        !page.lines().any(|line| line.trim_start_matches('#').strip_prefix(" taskpawl") == Some(path))
    };
    let missing: Vec<String> = all.into_iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
