//! Commands that `make` runs because of its arguments.

use super::runner::{is_shell, name_of};
use super::{Certainty, Word};

/// Command that `make` runs.
pub(super) enum Run {
    /// Command line for a shell.
    Line(String),
    /// Program that is followed by words from a makefile.
    Program(String),
    /// Unknown command.
    Unknown,
}

/// Returns whether a word names `make`.
pub(super) fn is_make(word: &Word) -> bool {
    ["make", "gmake"].contains(&name_of(word))
}

/// Returns the commands in the arguments of `make`: values of variables, and of `--eval`.
///
/// An unknown value counts only for `SHELL`, which runs every line: otherwise each `make V=$X` would match every rule.
pub(super) fn runs(args: &[Word]) -> Vec<Run> {
    let mut found = Vec::new();
    for (at, word) in args.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |before| args[before].text.as_str());
        if ["--eval", "-E"].contains(&before) {
            found.push(line(word));
        } else if let Some((name, value)) = word.text.split_once('=') {
            let value = Word { text: value.to_owned(), certainty: word.certainty };
            found.extend(of_variable(name.trim_end_matches([':', '?', '+', '!']), &value));
        }
    }
    found
}

fn of_variable(name: &str, value: &Word) -> Option<Run> {
    match (name, value.certainty) {
        ("SHELL", Certainty::Literal) if is_shell(value) => None,
        ("SHELL", Certainty::Literal) => Some(Run::Program(value.text.clone())),
        ("SHELL" | "--eval", _) | (_, Certainty::Literal) => Some(line(value)),
        (_, Certainty::OneWord | Certainty::AnyWords) => None,
    }
}

fn line(word: &Word) -> Run {
    if word.certainty == Certainty::Literal { Run::Line(word.text.clone()) } else { Run::Unknown }
}
