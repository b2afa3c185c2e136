//! What a command line would run, read in two ways: exactly, for rules that allow, and with suspicion, for rules that ask or deny.

mod alias;
mod chain;
mod document;
mod filled;
mod git;
mod input;
mod make;
mod options;
mod plain;
mod reader;
mod runner;
mod suspect;
#[cfg(test)]
mod tests;
mod variable;
mod word;

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
        let plain = vec![Plain { argv: argv.to_vec(), variables: Vec::new() }];
        Self { plain: Some(plain), suspicion: Suspicion::default().with_words(&words) }
    }

    /// Reads a command line for `/bin/sh`.
    pub(crate) fn of_line(line: &str) -> Self {
        Self { plain: plain(line), suspicion: Suspicion::default().with_line(line) }
    }

    /// A program that runs what it is told may be told by its input.
    pub(crate) fn with_input(mut self, input: &str) -> Self {
        if self.suspicion.found.iter().any(Suspect::is_runner) {
            self.suspicion = self.suspicion.with_input(input);
        }
        self
    }

    /// Variables may say what a program runs.
    pub(crate) fn with_variables<'a>(mut self, set: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let words: Vec<Word> = set.map(|(name, value)| Word::literal(&format!("{name}={value}"))).collect();
        self.suspicion = self.suspicion.with_variables(&words);
        self
    }

    /// Returns what the call would run.
    pub(crate) fn commands(self) -> Commands {
        Commands { plain: self.plain, suspects: self.suspicion.finished() }
    }
}
