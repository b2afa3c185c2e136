//! Variables that say what programs run.

use std::collections::HashSet;

use super::family::{Holds, holds};
use super::git::{self, Run as GitRun, is_git, names_file};
use super::reader::Reader;
use super::runner::is_shell;
use super::{Certainty, Word, is_plain};

/// How many settings of git are looked at, each with each value.
const PAIRS: usize = 1_000;

/// What a variable makes a program run.
pub(super) enum Run {
    /// A line for a shell.
    Line(String),
    /// Nobody knows what.
    Unknown,
}

/// Commands of shells that give variables a value which does not stand behind their names.
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

/// How many arguments of a shell are looked at for options.
const OPTIONS: usize = 64;

/// What variables say about programs.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// Settings of git: keys in some variables, values in others.
    keys: Vec<Word>,
    values: Vec<Word>,
    /// One names a file with settings of git.
    has_git_file: bool,
    /// One names a file that shells with a terminal read.
    has_shell_file: bool,
    /// Variables that may hold blanks.
    splitting: HashSet<String>,
    /// One is set whose name is not known, or what separates words.
    is_any_splitting: bool,
}

impl Settings {
    /// Takes what a command says about variables that get their values in another way, as by `read`.
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

    /// Takes what a word says about a variable, and returns what that runs by itself.
    pub(super) fn take(&mut self, word: &Word) -> Option<Run> {
        let Some((name, value)) = word.text.split_once('=') else {
            // It gets its value in another way, as by `read`.
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
        } else if value.text.starts_with("() {") {
            return Some(line(value));
        } else {
            return run_of(name, value);
        }
        None
    }

    /// Takes settings as git hands them on: `'alias.x'='push'`, or `'alias.x=push'`.
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

    /// Returns whether a program runs what stands in a file that a variable names.
    pub(super) fn feed(&self, words: &[Word]) -> bool {
        let Some((program, args)) = words.split_first() else { return false };
        let may_be_git = || program.name().is_none() || is_git(program);
        let has_terminal = || args.iter().take(OPTIONS).any(|arg| is_for_terminal(&arg.text));
        (self.has_git_file && may_be_git()) || (self.has_shell_file && is_shell(program) && has_terminal())
    }

    /// Returns whether a variable may hold more than one word.
    pub(super) fn may_split(&self, variable: &str) -> bool {
        self.is_any_splitting || self.splitting.contains(variable)
    }

    /// Returns what git runs because of them: nobody says which value is that of which key, so each may be.
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

/// Variables that name files in which settings of git stand, or where such files lie.
const GIT_FILES: &[&str] = &["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "HOME", "XDG_CONFIG_HOME"];

/// Returns whether an option says that a shell has a terminal.
fn is_for_terminal(option: &str) -> bool {
    let is_short = |letters: &str| !letters.starts_with('-') && letters.contains('i');
    option == "interactive" || option.strip_prefix('-').is_some_and(is_short)
}

fn is_of_git(name: &str) -> bool {
    ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_CONFIG_PARAMETERS"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

/// Returns what a variable makes programs run by the kind of its value.
fn run_of(name: &str, value: Word) -> Option<Run> {
    match holds(name, &value) {
        Holds::Code => Some(Run::Unknown),
        Holds::Program => Some(line(value)),
        Holds::WordsOf(program) => {
            let text = format!("{program} {}", value.text);
            Some(line(Word { text, certainty: value.certainty }))
        }
        // Shells expand what some variables hold, as `PS4`.
        Holds::Nothing if value.certainty == Certainty::Literal && is_expanded(&value.text) => {
            Some(Run::Line(value.text))
        }
        Holds::Nothing => None,
    }
}

/// Returns whether a shell that reads a text once more would run something in it.
pub(super) fn is_expanded(text: &str) -> bool {
    text.contains("$(") || text.contains('`')
}

fn line(value: Word) -> Run {
    if value.certainty == Certainty::Literal { Run::Line(value.text) } else { Run::Unknown }
}
