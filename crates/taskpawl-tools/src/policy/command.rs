//! Analysis of the commands that a call would run.
//!
//! A line is read in two ways: exactly, for rules that allow, and pessimistically, for rules that ask or deny. Each
//! error then leads to a question and never to an unwanted command.

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
mod plain_command;
mod position;
mod reader;
mod runner;
mod suspect;
mod syntax;
#[cfg(test)]
mod tests;
mod variable;
mod word;

use super::start::StartOptions;
pub(crate) use options::{has_known_options, takes_value};
use plain::plain;
pub(crate) use plain_command::Plain;
pub(crate) use suspect::Suspect;
use suspect::Suspicion;
pub(crate) use word::{Certainty, Word};

/// Commands that a call would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commands {
    /// Commands in order; `None` if a part of the line is not understood completely.
    pub(crate) plain: Option<Vec<Plain>>,
    /// All words that may begin a command.
    pub(crate) suspects: Vec<Suspect>,
}

/// Call whose commands are being collected.
#[derive(Debug)]
pub(crate) struct Reading {
    plain: Option<Vec<Plain>>,
    suspicion: Suspicion,
}

impl Reading {
    /// Reads the words of a program.
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
        // Input only matters if some program may run it; the input of `cat` is no command.
        let input = options.input.as_ref().filter(|_| self.suspicion.found.iter().any(Suspect::is_runner));
        if let Some(input) = input {
            self.suspicion = self.suspicion.with_input(input);
        }
        // Variables can name programs, as `GIT_SSH_COMMAND` does.
        let word = |(name, value): &(String, String)| Word::literal(&format!("{name}={value}"));
        let words: Vec<Word> = options.variables.iter().map(word).collect();
        self.suspicion = self.suspicion.with_variables(&words);
        self
    }

    /// Returns the commands that the call would run.
    pub(crate) fn commands(self) -> Commands {
        Commands { plain: self.plain, suspects: self.suspicion.finished() }
    }
}
