//! What a command line would run, read in two ways: exactly, for rules that allow, and with suspicion, for rules that ask or deny.

mod alias;
mod chain;
mod document;
mod family;
mod filled;
mod git;
mod input;
mod make;
mod options;
mod plain;
mod position;
mod reader;
mod runner;
mod suspect;
#[cfg(test)]
mod tests;
mod variable;
mod word;

use super::directory::Directory;
use super::start::StartOptions;
pub(crate) use options::{has_known_options, takes_value};
use plain::{is_plain, is_variable, plain};
pub(crate) use suspect::Suspect;
use suspect::Suspicion;
pub(crate) use word::{Certainty, Word};

/// How deep command lines are looked into that stand in others, as in `sh -c '…'`.
const DEPTH: usize = 8;

/// Words after which a command begins, some of them for `fish` alone.
const KEYWORDS: &[&str] = &[
    "!", "and", "begin", "do", "done", "elif", "else", "esac", "fi", "if", "not", "or", "then", "time",
    "until", "while", "{", "}",
];

/// A command that is understood to the last character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    /// The program with its arguments.
    pub(crate) argv: Vec<String>,
    /// The variables that are set for it.
    pub(crate) variables: Vec<String>,
    /// Whether other variables may be set for it: the `env` of its call cannot be read.
    pub(crate) has_unknown_env: bool,
    /// Whether it has standard input: that of its call, or a pipe.
    pub(crate) has_input: bool,
    /// The directories in which it may run, at least one; from where its line starts, until the call is known.
    pub(crate) directories: Vec<Directory>,
}

impl Plain {
    fn new(argv: Vec<String>, variables: Vec<String>) -> Self {
        Self {
            argv,
            variables,
            has_unknown_env: false,
            has_input: false,
            directories: vec![Directory::root()],
        }
    }

    /// Adds the start options of the call, which hold for each of its commands.
    fn start(&mut self, options: &StartOptions) {
        self.has_input |= options.has_input;
        self.has_unknown_env = options.names.is_none();
        self.variables.extend(options.names.iter().flatten().cloned());
        for directory in &mut self.directories {
            *directory = match directory {
                Directory::Within(path) => options.directory.join(path),
                Directory::Elsewhere => Directory::Elsewhere,
            };
        }
    }
}

/// What a call of a program would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commands {
    /// The commands one after the other; `None` where something in the line is not plain.
    pub(crate) plain: Option<Vec<Plain>>,
    /// Everything that may be a command of it.
    pub(crate) suspects: Vec<Suspect>,
}

/// A call of a program that is being read.
#[derive(Debug)]
pub(crate) struct Reading {
    plain: Option<Vec<Plain>>,
    suspicion: Suspicion,
}

impl Reading {
    /// Reads the argv of a program.
    pub(crate) fn of_argv(argv: &[String]) -> Self {
        let words: Vec<Word> = argv.iter().map(|word| Word::literal(word)).collect();
        let plain = vec![Plain::new(argv.to_vec(), Vec::new())];
        Self { plain: Some(plain), suspicion: Suspicion::default().with_words(&words) }
    }

    /// Reads a command line for `/bin/sh`.
    pub(crate) fn of_line(line: &str) -> Self {
        Self { plain: plain(line), suspicion: Suspicion::default().with_line(line) }
    }

    /// Adds the start options of the call.
    pub(crate) fn started(mut self, options: &StartOptions) -> Self {
        for command in self.plain.iter_mut().flatten() {
            command.start(options);
        }
        // A program that runs what it is told may be told by its input.
        let input = options.input.as_ref().filter(|_| self.suspicion.found.iter().any(Suspect::is_runner));
        if let Some(input) = input {
            self.suspicion = self.suspicion.with_input(input);
        }
        // Variables may say what a program runs.
        let word = |(name, value): &(String, String)| Word::literal(&format!("{name}={value}"));
        let words: Vec<Word> = options.variables.iter().map(word).collect();
        self.suspicion = self.suspicion.with_variables(&words);
        self
    }

    /// Returns what the call would run.
    pub(crate) fn commands(self) -> Commands {
        Commands { plain: self.plain, suspects: self.suspicion.finished() }
    }
}
