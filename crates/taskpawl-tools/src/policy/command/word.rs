//! Words of a command line, and what is known of them.

use super::is_variable;

/// What stands in the text of a word for that which a shell puts in.
const EXPANSIONS: [char; 3] = ['$', '`', '<'];

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

    /// Returns the name of the program that it is, without its directory: also of `"$X/bin/tool"` and `$HOME/bin/tool`. `None` where
    /// nobody knows it.
    pub(crate) fn name(&self) -> Option<&str> {
        let (directory, name) = self.text.rsplit_once('/').unwrap_or(("", &self.text));
        let is_known = match self.certainty {
            Certainty::Literal => true,
            Certainty::OneWord => {
                directory.contains(EXPANSIONS) && !name.contains(EXPANSIONS) && !name.is_empty()
            }
            Certainty::AnyWords => self.rest_of_path().is_some_and(|rest| rest.chars().all(is_of_path)),
        };
        is_known.then_some(name)
    }

    /// Returns the variable that a path outside of quotes begins with, as in `$HOME/bin/tool`: it is one word as long as there is no
    /// blank in the variable.
    pub(super) fn splitting(&self) -> Option<&str> {
        let (variable, _) = self.text.strip_prefix('$')?.split_once('/')?;
        (self.certainty == Certainty::AnyWords && is_variable(variable)).then_some(variable)
    }

    fn rest_of_path(&self) -> Option<&str> {
        match self.splitting() {
            Some(variable) => self.text.get(variable.len() + 1..),
            None => self.text.strip_prefix('~').filter(|rest| rest.starts_with('/')),
        }
    }

    /// Returns whether it may come to a text.
    pub(crate) fn may_be(&self, text: &str) -> bool {
        match (self.certainty, self.name()) {
            (Certainty::Literal, _) => self.text == text,
            (Certainty::AnyWords, _) => true,
            (Certainty::OneWord, Some(name)) => text.rsplit_once('/').is_some_and(|(_, end)| end == name),
            (Certainty::OneWord, None) => {
                let begin = self.text.split_once(EXPANSIONS).map_or("", |(begin, _)| begin);
                text.starts_with(begin)
            }
        }
    }
}

/// Returns whether a character stands for itself at any place of a path: `@` and `+` may begin a pattern.
fn is_of_path(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/' | ':' | ',' | '%' | '=')
}
