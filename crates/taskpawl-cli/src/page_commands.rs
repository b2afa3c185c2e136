//! The commands that the pages show exist, with each of their flags and values.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use crate::args::tree;

/// Returns every page for readers, except for the changelog: its commands are those of their version.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages_in = |directory: PathBuf| {
        let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect::<Vec<_>>()
    };
    let examples = fs::read_dir(root.join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let directories = ["", "docs", "docs/how-to", "crates"].map(|path| root.join(path));
    let all = directories.into_iter().chain(examples.filter(|path| path.is_dir())).flat_map(pages_in);
    all.filter(|path| !path.ends_with("CHANGELOG.md")).collect()
}

/// Splits a line of a shell into its commands, and those into their words. Redirections stay behind as commands of
/// one word.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    for char in line.chars() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(char);
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '|' | '&' | ';' | '<' | '>' | '(' | ')') => {
                let ended = word.take();
                let is_descriptor = |word: &String| char == '>' && word.parse::<u8>().is_ok();
                let command = all.last_mut().expect("BUG: there is always one");
                command.extend(ended.filter(|word| !is_descriptor(word)));
                if char != ' ' {
                    all.push(Vec::new());
                }
            }
            _ => word.get_or_insert_default().push(char),
        }
    }
    all.last_mut().expect("BUG: there is always one").extend(word);
    all
}

/// Returns the commands of taskpawl in a line, also those that `ssh` gives to another machine.
fn own_commands(line: &str) -> Vec<Vec<String>> {
    let mut own = Vec::new();
    for command in commands(line) {
        let first = command.iter().position(|word| !word.contains('=')).unwrap_or_default();
        match command.get(first).map(String::as_str) {
            Some("taskpawl") if command.len() > first + 1 => own.push(command[first..].to_vec()),
            Some("ssh") if command.len() > first + 1 => {
                own.extend(command.last().into_iter().flat_map(|line| own_commands(line)));
            }
            _ => {}
        }
    }
    own
}

/// Returns why the command line is wrong, if it is.
fn fault(command: &clap::Command, words: &[String]) -> Option<ErrorKind> {
    let kind = command.clone().try_get_matches_from(words).err()?.kind();
    (!matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)).then_some(kind)
}

/// Returns the lines of code blocks, and the pieces of code in sentences.
fn code(page: &str) -> (Vec<String>, Vec<&str>) {
    let mut lines = Vec::new();
    let mut spans = Vec::new();
    for (number, piece) in page.split("```").enumerate() {
        if number % 2 == 0 {
            spans.extend(piece.lines().flat_map(|line| line.split('`').skip(1).step_by(2)));
        } else {
            let block = piece.split_once('\n').map_or("", |(_, block)| block).replace("\\\n", " ");
            // Examples of a help have remarks after a gap.
            let bare = |line: &str| {
                let command = line.trim_start().trim_start_matches("$ ");
                command.split("   ").next().unwrap_or_default().to_owned()
            };
            lines.extend(block.lines().map(bare));
        }
    }
    (lines, spans)
}

/// Returns whether a line describes the form of command lines instead of being one.
fn is_form(line: &str) -> bool {
    [" [", "<", "COMMAND", "…", "..."].iter().any(|part| line.starts_with("taskpawl") && line.contains(part))
}

/// Returns the wrong commands of a page, and the number of all.
fn check(page: &str) -> (usize, Vec<String>) {
    let tree = tree();
    let (lines, spans) = code(page);
    let mut count = 0;
    let mut wrong = Vec::new();
    for line in lines.iter().filter(|line| !is_form(line)) {
        for words in own_commands(line) {
            count += 1;
            wrong.extend(fault(&tree, &words).map(|kind| format!("{kind:?}: {line}")));
        }
    }
    // A sentence may leave out what a command also needs, or stand in for a value.
    let is_unknown =
        |kind: &ErrorKind| matches!(kind, ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
    for span in spans.iter().filter(|span| !is_form(span)) {
        for words in own_commands(span) {
            count += 1;
            wrong.extend(fault(&tree, &words).filter(is_unknown).map(|kind| format!("{kind:?}: {span}")));
        }
    }
    (count, wrong)
}

#[test]
fn commands_of_the_pages_are_those_of_the_program() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for path in pages() {
        let (found, faults) = check(&fs::read_to_string(&path).unwrap());
        count += found;
        wrong.extend(faults.into_iter().map(|fault| format!("{}: {fault}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 300, "{count} commands");
}

#[test]
fn wrong_commands_of_pages_are_found() {
    let page = "`taskpawl undo --nowhere`, `taskpawl pln check`, `taskpawl init --agent`\n```sh\nA=1 taskpawl list --limit x \
                2>/dev/null | wc\ncd a && taskpawl show # taskpawl\nssh h 'cd a && taskpawl list --nowhere'\n```\n";
    let (count, wrong) = check(page);
    let expected = [
        "ValueValidation: A=1 taskpawl list --limit x 2>/dev/null | wc",
        "MissingRequiredArgument: cd a && taskpawl show # taskpawl",
        "UnknownArgument: ssh h 'cd a && taskpawl list --nowhere'",
        "UnknownArgument: taskpawl undo --nowhere",
        "InvalidSubcommand: taskpawl pln check",
    ];
    assert_eq!((count, wrong), (6, expected.map(str::to_owned).to_vec()));
    assert_eq!(commands("a 'b c' \"d\"e >f"), [vec!["a", "b c", "de"], vec!["f"]]);
}
