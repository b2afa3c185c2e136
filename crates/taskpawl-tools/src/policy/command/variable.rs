//! Commands that result from environment variables.

use std::collections::HashSet;

use super::family::{Holds, holds};
use super::git::{self, Run as GitRun, is_git, names_file};
use super::reader::Reader;
use super::runner::is_shell;
use super::syntax::is_plain;
use super::{Certainty, Word};

/// Maximum of combinations of git keys and values that are tried.
const PAIRS: usize = 1_000;

/// Command that a variable makes programs run.
pub(super) enum Run {
    /// Command line for a shell.
    Line(String),
    /// Unknown command.
    Unknown,
}

/// Shell commands that assign variables in other ways than `NAME=VALUE`.
const SETTING: &[&str] = &[
    "declare",
    "export",
    "for",
    "getopts",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "readonly",
    "select",
    "typeset",
];

/// Maximum of arguments of a shell that are searched for options.
const OPTIONS: usize = 64;

/// Variables of a call that affect its programs.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// Keys of git settings; git reads keys and values from separate variables.
    keys: Vec<Word>,
    values: Vec<Word>,
    /// Set if a variable names a file with git settings.
    has_git_file: bool,
    /// Set if a variable names a file that interactive shells run.
    has_shell_file: bool,
    /// Variables whose values may contain blanks.
    splitting: HashSet<String>,
    /// Set if a variable of unknown name is assigned, or the separator of words itself.
    is_any_splitting: bool,
}

impl Settings {
    /// Records variables that a command assigns by name, as `read` does, so that their values are unknown.
    pub(super) fn take_names(&mut self, words: &[Word]) -> Option<Run> {
        let at = words.iter().position(|word| SETTING.contains(&word.text.as_str()))?;
        let (command, args) = (words[at].text.as_str(), &words[at + 1..]);
        let args = match command {
            "for" | "select" => args.get(..1)?,
            "printf" => {
                args.iter().position(|word| word.text == "-v").and_then(|at| args.get(at + 1..at + 2))?
            }
            _ => args,
        };
        let mut run = None;
        for word in args {
            let name = word.text.split_once('=').map_or(word.text.as_str(), |(name, _)| name);
            if name.contains(['$', '`']) {
                self.is_any_splitting = true;
            } else if !word.text.contains('=') && !["export", "readonly"].contains(&command) {
                let unknown = Word { text: String::new(), certainty: Certainty::AnyWords };
                run = run.or(self.set(name, unknown));
            }
        }
        run
    }

    /// Records the assignment in a word, and returns the command that it causes.
    pub(super) fn take(&mut self, word: &Word) -> Option<Run> {
        let Some((name, value)) = word.text.split_once('=') else {
            // The variable gets its value in another way, as by `read`.
            return is_of_git(&word.text).then_some(Run::Unknown);
        };
        self.set(name.trim_end_matches('+'), Word { text: value.to_owned(), certainty: word.certainty })
    }

    fn set(&mut self, name: &str, value: Word) -> Option<Run> {
        let is_literal = value.certainty == Certainty::Literal;
        if !is_literal || !value.text.chars().all(is_plain) {
            self.splitting.insert(name.to_owned());
        }
        let has_file = names_file(&value);
        self.is_any_splitting |= name == "IFS" && has_file;
        self.has_git_file |= has_file && GIT_FILES.contains(&name);
        self.has_shell_file |= has_file && name == "ENV";
        if name.starts_with("GIT_CONFIG_VALUE_") {
            self.values.push(value);
        } else if name.starts_with("GIT_CONFIG_KEY_") {
            self.keys.push(value);
        } else if name == "GIT_CONFIG_PARAMETERS" {
            return self.take_parameters(&value);
        // Bash imports such a value as a function; old versions do so for a variable of any name.
        } else if value.text.starts_with("() {") {
            return Some(line(value));
        } else {
            return run_of(name, value);
        }
        None
    }

    /// Records settings in the form in which git passes them on: `'alias.x'='push'`, or `'alias.x=push'`.
    fn take_parameters(&mut self, value: &Word) -> Option<Run> {
        if value.certainty != Certainty::Literal {
            return Some(Run::Unknown);
        }
        for word in Reader::of(&value.text, 0).pieces.into_iter().flatten() {
            let (key, value) = word.text.split_once('=').unwrap_or((word.text.as_str(), ""));
            self.keys.push(Word { text: key.to_owned(), certainty: word.certainty });
            self.values.push(Word { text: value.to_owned(), certainty: word.certainty });
        }
        None
    }

    /// Returns whether a program runs content of a file that a variable names.
    pub(super) fn feed(&self, words: &[Word]) -> bool {
        let Some((program, args)) = words.split_first() else { return false };
        let may_be_git = || program.name().is_none() || is_git(program);
        let has_terminal = || args.iter().take(OPTIONS).any(|arg| is_for_terminal(&arg.text));
        (self.has_git_file && may_be_git()) || (self.has_shell_file && is_shell(program) && has_terminal())
    }

    /// Returns whether a variable may expand to more than one word.
    pub(super) fn may_split(&self, variable: &str) -> bool {
        self.is_any_splitting || self.splitting.contains(variable)
    }

    /// Returns the commands that git runs because of its settings. Keys and values are not matched by number, so that
    /// every combination counts.
    pub(super) fn runs(&mut self) -> Vec<GitRun> {
        let keys = std::mem::take(&mut self.keys);
        let is_running = |key: &&Word| key.certainty != Certainty::Literal || git::is_running(&key.text);
        let keys: Vec<Word> = keys.iter().filter(is_running).cloned().collect();
        let is_open = keys.iter().any(|key| key.certainty != Certainty::Literal) || self.values.is_empty();
        if !keys.is_empty() && (is_open || keys.len() * self.values.len() > PAIRS) {
            return vec![GitRun::Unknown];
        }
        keys.iter()
            .flat_map(|key| self.values.iter().filter_map(move |value| git::of_setting(&key.text, value)))
            .collect()
    }
}

/// Variables that name files with git settings, or directories of such files.
const GIT_FILES: &[&str] = &["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "HOME", "XDG_CONFIG_HOME"];

/// Returns whether an option makes a shell interactive.
fn is_for_terminal(option: &str) -> bool {
    let is_short = |letters: &str| !letters.starts_with('-') && letters.contains('i');
    option == "interactive" || option.strip_prefix('-').is_some_and(is_short)
}

fn is_of_git(name: &str) -> bool {
    ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_CONFIG_PARAMETERS"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

/// Returns the command that a variable causes by the kind of its value.
fn run_of(name: &str, value: Word) -> Option<Run> {
    match holds(name, &value) {
        Holds::Code => Some(Run::Unknown),
        Holds::Program => Some(line(value)),
        Holds::WordsOf(program) => {
            let text = format!("{program} {}", value.text);
            Some(line(Word { text, certainty: value.certainty }))
        }
        // Shells expand the values of some variables, such as `PS4`.
        Holds::Nothing if value.certainty == Certainty::Literal && is_expanded(&value.text) => {
            Some(Run::Line(value.text))
        }
        Holds::Nothing => None,
    }
}

/// Returns whether evaluating a text once more would run a command in it.
pub(super) fn is_expanded(text: &str) -> bool {
    text.contains("$(") || text.contains('`')
}

fn line(value: Word) -> Run {
    if value.certainty == Certainty::Literal { Run::Line(value.text) } else { Run::Unknown }
}
