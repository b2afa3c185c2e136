//! Hints: suggested next steps, as parts that the terminal and MCP each format in their own way.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::advice::Advice;
use crate::advice::command_line::CommandLine;
use crate::value::bounded;

/// A short sentence with one thing to do.
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
    /// Fixed text. It is never parsed.
    Text(Cow<'static, str>),
    /// An action to take now.
    Advice(Advice),
    /// An action for later, under a condition stated in the text before it. It is not offered as an action now.
    Later(Advice),
    /// A value from the store or from the caller, shown in quotes.
    Data(String),
    /// An option of the command or MCP call that was refused.
    Option(HintOption),
    /// A terminal command that is not an [`Advice`], because the reader has to fill in values or make a decision.
    Command {
        /// Words after the program name, in shell syntax.
        words: Cow<'static, str>,
        /// Arguments after these words, not quoted yet.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
    },
}

/// An option named in a hint: a flag on the terminal, an argument in MCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HintOption {
    /// Also start the dependents over that already ran.
    Cascade,
    /// Start changed tasks over, with everything that ran after them.
    RedoChanged,
    /// Keep the results of finished tasks whose work changed.
    KeepChanged,
    /// Dependencies of a task.
    Needs,
    /// Apply the plan as a separate instance under another name.
    Instance,
    /// Declare that the file of a plan has moved.
    Moved,
    /// Give imported tasks ids with a prefix.
    Prefix,
    /// Treat imported tasks as the existing ones with the same ids.
    Adopt,
    /// Set a parameter of a plan.
    Param {
        /// Name of the parameter.
        name: String,
    },
}

/// Formats the parts of a hint for one interface.
pub trait HintWords {
    /// Formats an action.
    fn advice(&self, advice: &Advice) -> String;

    /// Formats an option.
    fn option(&self, option: &HintOption) -> String;

    /// Formats a terminal command: `words` after the program name, then `args`.
    fn command(&self, words: &str, args: &[String]) -> String;
}

impl Hint {
    /// Returns a hint that begins with text.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self::default().text(text)
    }

    /// Appends text.
    #[must_use]
    pub fn text(self, text: impl Into<Cow<'static, str>>) -> Self {
        self.part(HintPart::Text(text.into()))
    }

    /// Appends an action to take now.
    #[must_use]
    pub fn advice(self, advice: Advice) -> Self {
        self.part(HintPart::Advice(advice))
    }

    /// Appends an action for later, under a condition stated in the text before it.
    #[must_use]
    pub fn later(self, advice: Advice) -> Self {
        self.part(HintPart::Later(advice))
    }

    /// Appends a value, which is shown in quotes.
    #[must_use]
    pub fn data(self, value: impl fmt::Display) -> Self {
        self.part(HintPart::Data(value.to_string()))
    }

    /// Appends an option.
    #[must_use]
    pub fn option(self, option: HintOption) -> Self {
        self.part(HintPart::Option(option))
    }

    /// Appends a terminal command, given as the words after the program name.
    #[must_use]
    pub fn command(self, words: &'static str) -> Self {
        self.command_of(words, [])
    }

    /// Appends a terminal command with arguments, which the terminal quotes for a shell.
    #[must_use]
    pub fn command_of(self, words: &'static str, args: impl IntoIterator<Item = String>) -> Self {
        self.part(HintPart::Command { words: words.into(), args: args.into_iter().collect() })
    }

    /// Appends the parts of another hint.
    #[must_use]
    pub fn hint(mut self, other: Self) -> Self {
        self.parts.extend(other.parts);
        self
    }

    /// Returns whether the hint has no parts.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Appends the first [`bounded::MAX_ITEMS`] values, separated by commas, and the number of the others.
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

    /// Returns the parts in order.
    pub fn parts(&self) -> &[HintPart] {
        &self.parts
    }

    /// Returns the actions to take now, in order. Actions for later are left out.
    pub fn advised(&self) -> impl Iterator<Item = &Advice> {
        self.parts
            .iter()
            .filter_map(|part| if let HintPart::Advice(advice) = part { Some(advice) } else { None })
    }

    /// Formats the hint for an interface, with the length limit of every message.
    pub fn format_with(&self, words: &impl HintWords) -> String {
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

/// Formats the hint for the terminal, without flags.
impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format_with(&CommandLine::default()))
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
