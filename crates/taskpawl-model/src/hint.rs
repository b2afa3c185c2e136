//! Hints: what to do instead, in parts that each border words itself.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::advice::Advice;
use crate::bounded;
use crate::command_line::CommandLine;

/// What to do instead: a short sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hint {
    parts: Vec<HintPart>,
}

/// A part of a hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HintPart {
    /// Words. They are never searched for anything.
    Text(Cow<'static, str>),
    /// Something to do.
    Advice(Advice),
    /// Something to do under a condition that the words before it name: no action now.
    Later(Advice),
    /// A value of the store or of the caller, shown as such.
    Data(String),
    /// An option of the command or the call that was refused.
    Option(HintOption),
    /// A command of the terminal that is no advice, because the reader has to fill it in or to decide about it.
    Command {
        /// Its words behind the name of the program, as a shell takes them.
        words: Cow<'static, str>,
        /// Values behind them, not quoted yet.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
    },
}

/// An option that a hint names: a flag of the terminal, an argument or something else elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HintOption {
    /// Start over what ran after the task as well.
    Cascade,
    /// Start a plan over.
    Fresh,
    /// The dependencies of a task.
    Needs,
    /// Apply a plan as an instance of another name.
    Instance,
    /// The file of a plan has moved.
    Moved,
    /// Give imported tasks ids of their own.
    Prefix,
    /// Take imported tasks for those that are there.
    Adopt,
    /// A value for a parameter of a plan.
    Param {
        /// The parameter.
        name: String,
    },
}

/// The words of a border.
pub trait HintWords {
    /// Words something to do.
    fn advice(&self, advice: &Advice) -> String;

    /// Words an option.
    fn option(&self, option: &HintOption) -> String;

    /// Words a command of the terminal: `words` behind the name of the program, and `args` behind these.
    fn command(&self, words: &str, args: &[String]) -> String;
}

impl Hint {
    /// Returns a hint that begins with words.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self::default().text(text)
    }

    /// Adds words.
    #[must_use]
    pub fn text(self, text: impl Into<Cow<'static, str>>) -> Self {
        self.part(HintPart::Text(text.into()))
    }

    /// Adds something to do.
    #[must_use]
    pub fn advice(self, advice: Advice) -> Self {
        self.part(HintPart::Advice(advice))
    }

    /// Adds something to do under a condition that the words before it name.
    #[must_use]
    pub fn later(self, advice: Advice) -> Self {
        self.part(HintPart::Later(advice))
    }

    /// Adds a value, which is shown in quotes.
    #[must_use]
    pub fn data(self, value: impl fmt::Display) -> Self {
        self.part(HintPart::Data(value.to_string()))
    }

    /// Adds an option.
    #[must_use]
    pub fn option(self, option: HintOption) -> Self {
        self.part(HintPart::Option(option))
    }

    /// Adds a command of the terminal: its words behind the name of the program.
    #[must_use]
    pub fn command(self, words: &'static str) -> Self {
        self.command_of(words, [])
    }

    /// Adds a command of the terminal with values, which the terminal quotes for a shell.
    #[must_use]
    pub fn command_of(self, words: &'static str, args: impl IntoIterator<Item = String>) -> Self {
        self.part(HintPart::Command { words: words.into(), args: args.into_iter().collect() })
    }

    /// Adds the parts of another hint.
    #[must_use]
    pub fn hint(mut self, other: Self) -> Self {
        self.parts.extend(other.parts);
        self
    }

    /// Returns whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds values with commas between them: the first [`bounded::MAX_ITEMS`], and how many more there are.
    #[must_use]
    pub fn list<T: ToString>(self, values: &[T]) -> Self {
        let shown = values.iter().take(bounded::MAX_ITEMS).enumerate();
        let hint = shown.fold(self, |hint, (index, value)| {
            let hint = if index > 0 { hint.text(", ") } else { hint };
            hint.data(value.to_string())
        });
        match values.len().saturating_sub(bounded::MAX_ITEMS) {
            0 => hint,
            more => hint.text(format!(", and {more} more")),
        }
    }

    fn part(mut self, part: HintPart) -> Self {
        self.parts.push(part);
        self
    }

    /// Returns its parts.
    pub fn parts(&self) -> &[HintPart] {
        &self.parts
    }

    /// Returns the actions that it advises now, in the order of its words.
    pub fn advised(&self) -> impl Iterator<Item = &Advice> {
        self.parts
            .iter()
            .filter_map(|part| if let HintPart::Advice(advice) = part { Some(advice) } else { None })
    }

    /// Returns it in the words of a border, bounded as every message is.
    pub fn worded(&self, words: &impl HintWords) -> String {
        let each = self.parts.iter().map(|part| match part {
            HintPart::Text(text) => text.to_string(),
            HintPart::Advice(advice) | HintPart::Later(advice) => words.advice(advice),
            HintPart::Data(value) => bounded::data(value),
            HintPart::Option(option) => words.option(option),
            HintPart::Command { words: command, args } => words.command(command, args),
        });
        bounded::cut(&each.collect::<String>()).into_owned()
    }
}

/// As the terminal words it, without flags.
impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.worded(&CommandLine::default()))
    }
}

impl From<&'static str> for Hint {
    fn from(text: &'static str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<Advice> for Hint {
    fn from(advice: Advice) -> Self {
        Self::default().advice(advice)
    }
}
