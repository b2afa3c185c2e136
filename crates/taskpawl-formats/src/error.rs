//! Errors in files of other programs, with their position.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use taskpawl_json::{JsonError, JsonFault, PathStep, path_text};
use taskpawl_model::advice::Hint;

/// An error in a file, with its position and a hint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", place(self))]
pub struct FormatError {
    /// The file, by its name within the [`Files`](crate::Files) that were read.
    pub file: String,
    /// The line, counted from 1; `None` if it is not known.
    pub line: Option<u32>,
    /// The record: its id, or its number in the file.
    pub record: String,
    /// The field; empty if the record as a whole is wrong.
    pub field: String,
    /// The fault, as a fragment that follows the position.
    pub problem: String,
    /// One thing to do about it.
    pub hint: Hint,
}

/// A position in a file, for errors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Position {
    pub(crate) file: String,
    pub(crate) line: Option<u32>,
    pub(crate) record: String,
    /// The path of the record in a JSON file. Its line is only looked up if it is needed.
    pub(crate) path: Vec<PathStep>,
    /// Duplicate keys and inexact numbers anywhere in the file. Each makes only its own record faulty.
    pub(crate) json_faults: Arc<Vec<JsonFault>>,
}

impl Position {
    pub(crate) fn of(file: &str) -> Self {
        Self { file: file.to_owned(), ..Self::default() }
    }

    /// Returns the position of an element of a list in the field `name`.
    pub(crate) fn element(&self, name: Option<&str>, place: usize, record: impl Into<String>) -> Self {
        let mut path = self.path.clone();
        path.extend(name.map(|name| PathStep::Key(name.into())));
        path.push(PathStep::Index(place));
        Self { record: record.into(), path, ..self.clone() }
    }

    pub(crate) fn error(
        &self,
        field: &str,
        problem: impl Into<String>,
        hint: impl Into<Hint>,
    ) -> FormatError {
        let Self { file, line, record, .. } = self.clone();
        FormatError {
            file,
            line,
            record,
            field: field.to_owned(),
            problem: problem.into(),
            hint: hint.into(),
        }
    }

    /// Returns the error for a text that is not JSON. `first` is the file's line on which the text begins.
    pub(crate) fn json(&self, error: &JsonError, first: u32) -> FormatError {
        let error = match error {
            JsonError::Syntax(error) => error,
            JsonError::Fault(fault) => return self.json_fault(fault, first),
        };
        let line = u32::try_from(error.line()).unwrap_or(u32::MAX).max(1);
        let place = Self { line: Some(first.saturating_add(line - 1)), ..self.clone() };
        let text = error.to_string();
        // `serde_json` appends its own line, which counts from the start of the text and not of the file.
        let text = text.split(" at line ").next().unwrap_or_default();
        let problem = format!("invalid JSON (column {}): {text}", error.column());
        place.error("", problem, "restore the file, or let its own program write it again")
    }

    /// Returns the error for the first duplicate key or inexact number in the record, apart from its fields `apart`.
    pub(crate) fn json_fault_in(&self, apart: &[&str]) -> Option<FormatError> {
        let is_apart =
            |rest: &[PathStep]| matches!(rest.first(), Some(PathStep::Key(key)) if apart.contains(&&**key));
        let (fault, rest) = self.json_faults.iter().find_map(|fault| {
            let rest = fault.path.strip_prefix(self.path.as_slice())?;
            (!is_apart(rest)).then_some((fault, rest))
        })?;
        Some(FormatError { field: path_text(rest), ..self.json_fault(fault, 1) })
    }

    pub(crate) fn json_fault(&self, fault: &JsonFault, first: u32) -> FormatError {
        let line = first.saturating_add(fault.at.line - 1);
        let place = Self { line: Some(line), ..self.clone() };
        place.error(&path_text(&fault.path), fault.problem.to_string(), "correct the file")
    }
}

/// Returns true if a path leads into an element of a list.
pub(crate) fn is_in_list(path: &[PathStep]) -> bool {
    path.iter().any(|step| matches!(step, PathStep::Index(_)))
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

/// The first characters of a text that may be long, on one line.
pub(crate) struct Short<'a>(pub(crate) &'a str);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_SHOWN: usize = 60;
        let line: String =
            // Control characters of a record would break the error out of its line.
            self.0.chars().take(MAX_SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(f, "{line}{}", if self.0.chars().nth(MAX_SHOWN).is_some() { "…" } else { "" })
    }
}
