//! Words of a command line, with the certainty of their values.

use super::syntax::is_variable;

/// Characters that represent expansions in the text of a word.
const EXPANSIONS: [char; 3] = ['$', '`', '<'];

/// Word of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Text without quotes.
    pub(crate) text: String,
    /// Relation of the text to the value for the shell.
    pub(crate) certainty: Certainty,
}

/// Certainty about the value of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// The value is the text.
    Literal,
    /// The value is exactly one word, but not the text.
    OneWord,
    /// The value is any number of words, including none.
    AnyWords,
}

impl Word {
    pub(crate) fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), certainty: Certainty::Literal }
    }

    /// Returns the name of the program that the word denotes, without its directory; `None` if it is unknown.
    ///
    /// The name of `"$X/bin/tool"` and `$HOME/bin/tool` is known as well.
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

    /// Returns the variable at the start of an unquoted path such as `$HOME/bin/tool`. The path is one word as long as
    /// the variable contains no blank.
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

    /// Returns whether the value may be `text`.
    pub(crate) fn may_be(&self, text: &str) -> bool {
        match (self.certainty, self.name()) {
            (Certainty::Literal, _) => self.text == text,
            (Certainty::AnyWords, _) => true,
            // Only the last component is known, so that any path with it may be meant.
            (Certainty::OneWord, Some(name)) => text.rsplit_once('/').is_some_and(|(_, end)| end == name),
            (Certainty::OneWord, None) => {
                let begin = self.text.split_once(EXPANSIONS).map_or("", |(begin, _)| begin);
                text.starts_with(begin)
            }
        }
    }
}

/// Returns whether a character is literal at any position of a path; `@` and `+` may begin a pattern.
fn is_of_path(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/' | ':' | ',' | '%' | '=')
}
