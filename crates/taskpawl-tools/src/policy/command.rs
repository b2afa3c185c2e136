//! What a command line would run, read in two ways: exactly, for rules that allow, and with suspicion, for rules that ask or deny.

mod alias;
mod chain;
mod document;
mod filled;
mod git;
mod input;
mod plain;
mod reader;
mod runner;
mod suspect;
#[cfg(test)]
mod tests;
mod variable;

use plain::{is_plain, is_variable, plain};
pub(crate) use suspect::Suspect;
use suspect::Suspicion;

/// How deep command lines are looked into that stand in others, as in `sh -c '…'`.
const DEPTH: usize = 8;

/// Words after which a command begins.
const KEYWORDS: &[&str] =
    &["!", "if", "then", "else", "elif", "do", "while", "until", "time", "{", "}", "fi", "done", "esac"];

/// One word of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its text, without quotes.
    pub(crate) text: String,
    /// What the shell puts in its place is not known.
    pub(crate) certainty: Certainty,
}

/// How much is known about a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// It is its text.
    Literal,
    /// It is one word, and another one than its text.
    OneWord,
    /// It is any number of words, none too.
    AnyWords,
}

impl Word {
    pub(crate) fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), certainty: Certainty::Literal }
    }
}

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

impl Commands {
    /// Reads the argv of a program.
    pub(crate) fn of_argv(argv: &[String]) -> Self {
        let words: Vec<Word> = argv.iter().map(|word| Word::literal(word)).collect();
        let plain = vec![Plain { argv: argv.to_vec(), variables: Vec::new() }];
        Self { plain: Some(plain), suspects: Suspicion::default().with_words(&words).found }
    }

    /// Reads a command line for `/bin/sh`.
    pub(crate) fn of_line(line: &str) -> Self {
        Self { plain: plain(line), suspects: Suspicion::default().with_line(line).found }
    }

    /// A program that runs what it is told may be told by its input.
    pub(crate) fn with_input(mut self, input: &str) -> Self {
        if self.suspects.iter().any(Suspect::is_runner) {
            self.suspects.extend(Suspicion::default().with_input(input).found);
        }
        self
    }

    /// Variables may say what a program runs.
    pub(crate) fn with_variables<'a>(mut self, set: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let words: Vec<Word> = set.map(|(name, value)| Word::literal(&format!("{name}={value}"))).collect();
        self.suspects.extend(Suspicion::default().with_words(&words).found);
        self
    }
}
