//! What is wrong in a file.

use std::fmt::{self, Write as _};

use taskpawl_json::{JsonError, JsonFault};
use taskpawl_model::Hint;

/// A file cannot be read: where, what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", place(self))]
pub struct FormatError {
    /// The file, by its name within what was read.
    pub file: String,
    /// The line, from 1, where it is known.
    pub line: Option<u32>,
    /// The record: an id, or its number in the file.
    pub record: String,
    /// The field; empty where the record itself is wrong.
    pub field: String,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub hint: Hint,
}

/// A place in a file, for errors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Position {
    pub(crate) file: String,
    pub(crate) line: Option<u32>,
    pub(crate) record: String,
}

impl Position {
    pub(crate) fn of(file: &str) -> Self {
        Self { file: file.to_owned(), ..Self::default() }
    }

    pub(crate) fn error(
        &self,
        field: &str,
        problem: impl Into<String>,
        hint: impl Into<Hint>,
    ) -> FormatError {
        let Self { file, line, record } = self.clone();
        FormatError {
            file,
            line,
            record,
            field: field.to_owned(),
            problem: problem.into(),
            hint: hint.into(),
        }
    }

    /// Returns the error of a text that is no JSON; `first` is the line that the text begins at.
    pub(crate) fn json(&self, error: &JsonError, first: u32) -> FormatError {
        let error = match error {
            JsonError::Syntax(error) => error,
            JsonError::Fault(fault) => return self.json_fault(fault, first),
        };
        let line = u32::try_from(error.line()).unwrap_or(u32::MAX).max(1);
        let place = Self { line: Some(first.saturating_add(line - 1)), ..self.clone() };
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or_default();
        let problem = format!("it is no JSON (column {}): {text}", error.column());
        place.error("", problem, "restore the file, or write it anew with its own program")
    }

    fn json_fault(&self, fault: &JsonFault, first: u32) -> FormatError {
        let line = first.saturating_add(fault.at.line - 1);
        let place = Self { line: Some(line), ..self.clone() };
        place.error(&fault.path, fault.problem.to_string(), "correct the file")
    }
}

fn place(error: &FormatError) -> String {
    let FormatError { file, line, record, field, .. } = error;
    let mut text = file.clone();
    if let Some(line) = line {
        let _ = write!(text, ":{line}");
    }
    for part in [record, field].into_iter().filter(|part| !part.is_empty()) {
        let _ = write!(text, ": `{}`", Short(part));
    }
    text + ": "
}

/// The beginning of a text that may be long.
pub(crate) struct Short<'a>(pub(crate) &'a str);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_SHOWN: usize = 60;
        let line: String =
            self.0.chars().take(MAX_SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(f, "{line}{}", if self.0.chars().nth(MAX_SHOWN).is_some() { "…" } else { "" })
    }
}
