//! The tutorial, the README and pages of `docs/how-to` do what they show: their files are written, their commands run in order, and
//! their output is compared. `<!-- run: COMMAND -->` in a page prepares what its text assumes.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Cli, may_decide};

/// Set to write the output of the commands into the page instead of comparing it.
const RENEW: &str = "TASKPAWL_RENEW_DOCS";

/// A page with commands.
struct Page {
    path: &'static str,
    /// The directory of the reader, as the page has it.
    directory: &'static str,
    /// True if every block is a file with a name, or commands with their output.
    is_complete: bool,
}

const TUTORIAL: Page = Page { path: "docs/tutorial.md", directory: "/home/user/greeter", is_complete: true };
const README: Page = Page { path: "README.md", directory: "/home/user/words", is_complete: false };

const CI: Page = Page { path: "docs/how-to/ci.md", directory: "/home/user/shop", is_complete: false };
const AGENTS: Page =
    Page { path: "docs/how-to/agents-in-worktrees.md", directory: "/home/user/app", is_complete: false };
const EDITOR: Page =
    Page { path: "docs/how-to/editor.md", directory: "/home/user/plans", is_complete: false };

impl Page {
    fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(self.path)
    }
}

/// A part of the page.
enum Part<'a> {
    Text(&'a str),
    /// A block of code: the words after its fence, and its lines.
    Block(&'a str, &'a str),
}

fn parts(page: &str) -> Vec<Part<'_>> {
    let pieces = page.split("```").enumerate();
    pieces
        .map(|(number, piece)| match piece.split_once('\n') {
            Some((info, block)) if number % 2 == 1 => Part::Block(info, block),
            _ => Part::Text(piece),
        })
        .collect()
}

/// Runs the commands of a block, and returns the block with what they print.
fn played(cli: &Cli, block: &str, directory: &str) -> String {
    let mut shown = String::new();
    for command in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let output = cli.shell(command).replace("[HOME]/work", directory).replace("[HOME]", "/home/user");
        let _ = write!(shown, "$ {command}\n{output}");
    }
    shown
}

/// Runs the commands that prepare what the text assumes.
fn prepare(cli: &Cli, text: &str) {
    for part in text.split("<!-- run: ").skip(1) {
        let (command, _) = part.split_once(" -->").expect("a comment has an end");
        let output = cli.shell(&format!("set -e; {command}; echo prepared"));
        assert!(output.ends_with("prepared\n"), "{command}:\n{output}");
    }
}

/// Returns the text without what differs from run to run: durations, times, ids of runs and projects, revisions, and the order
/// of tasks that ended at the same time.
fn stable(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(stable_line).collect();
    let both_ended = |a: &String, b: &String| a.starts_with('✓') && b.starts_with('✓');
    let groups = lines.chunk_by(both_ended).map(|group| {
        let mut group = group.to_vec();
        group.sort();
        group.join("\n")
    });
    groups.collect::<Vec<_>>().join("\n")
}

fn stable_line(line: &str) -> String {
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let mut words: Vec<&str> = Vec::new();
    // Commits of one run may be joined, so revisions in a history differ.
    let is_event = line.contains(" user@host ");
    for word in line.split_whitespace() {
        let bare = word.trim_end_matches([',', ':']);
        match words.last_mut() {
            Some(last) if matches!(bare, "ms" | "s") && is_number(last) => *last = "TIME",
            _ if bare.len() == 8 && bare.bytes().all(|byte| byte.is_ascii_hexdigit()) => words.push("RUN"),
            _ if bare.contains('T') && bare.ends_with('Z') && bare.len() == 24 => words.push("TIME"),
            None if is_event && is_number(word) => words.push("REVISION"),
            _ => words.push(word),
        }
    }
    let indent = line.len() - line.trim_start().len();
    format!("{}{}", " ".repeat(indent), without_ids(&words.join(" ")))
}

/// Returns the line with `ID` for each id of a project.
fn without_ids(line: &str) -> String {
    let is_id = |part: &str| part.len() == 36 && part.matches('-').count() == 4;
    let without = |part| if is_id(part) { "ID" } else { part };
    let words = line.split(' ').map(|word| word.split('/').map(without).collect::<Vec<_>>().join("/"));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_tutorial_prints_what_it_shows() {
    if may_decide() {
        assert!(play(&TUTORIAL) > 10);
    }
}

#[test]
fn the_readme_prints_what_it_shows() {
    if may_decide() {
        assert_eq!(play(&README), 4);
    }
}

#[test]
fn pages_for_ci_agents_and_editors_print_what_they_show() {
    if may_decide() {
        assert_eq!([&CI, &AGENTS, &EDITOR].map(play), [3, 14, 1]);
    }
}

/// Compares the commands of a page with their output, or renews them. Returns the number of commands.
fn play(page: &Page) -> usize {
    let cli = Cli::without_store().with_programs().with_clock().at_a_terminal();
    let page_text = fs::read_to_string(page.path()).unwrap();
    let mut renewed = String::new();
    let mut commands = 0;
    for part in parts(&page_text) {
        let (info, block) = match part {
            Part::Text(text) => {
                prepare(&cli, text);
                renewed.push_str(text);
                continue;
            }
            Part::Block(info, block) => (info, block),
        };
        let mut block = block.to_owned();
        if let Some((_, file)) = info.split_once(' ') {
            cli.file(file, &block);
        } else if info == "console" && block.starts_with("$ ") {
            let found = played(&cli, &block, page.directory);
            commands += found.lines().filter(|line| line.starts_with("$ ")).count();
            if std::env::var_os(RENEW).is_none() {
                assert_eq!(
                    stable(&found),
                    stable(&block),
                    "renew: {RENEW}=1 cargo test -p taskpawl-cli tutorial"
                );
            } else if stable(&found) != stable(&block) {
                block = found;
            }
        } else {
            assert!(!page.is_complete, "a block is a file with a name, or commands:\n{block}");
        }
        let _ = write!(renewed, "```{info}\n{block}```");
    }
    if renewed != page_text {
        fs::write(page.path(), renewed).unwrap();
    }
    commands
}
