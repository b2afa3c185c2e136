//! Faulty records. They are left out and listed; the others are still read.

use taskpawl_json::PathStep;

use crate::error::{FormatError, Position};
use crate::files::Files;
use crate::json_text::{Document, ast, span};
use crate::reading::LeftOut;

/// The faults of one reading.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    list: Vec<Fault>,
}

#[derive(Debug)]
struct Fault {
    error: FormatError,
    /// The path of the record in a JSON file.
    path: Vec<PathStep>,
    /// The position of the record with the same id that counts.
    first: Option<Position>,
}

impl Faults {
    /// Adds the fault of the record at `place`.
    pub(crate) fn add(&mut self, error: FormatError, place: &Position) {
        self.list.push(Fault { error, path: place.path.clone(), first: None });
    }

    /// Adds the fault of a record with the same id as the one at `first`, which counts.
    pub(crate) fn add_twice(&mut self, error: FormatError, place: &Position, first: Option<&Position>) {
        self.list.push(Fault { error, path: place.path.clone(), first: first.cloned() });
    }

    /// Adds the fault of a line or a file.
    pub(crate) fn add_line(&mut self, error: FormatError) {
        self.list.push(Fault { error, path: Vec::new(), first: None });
    }

    /// Returns the faults with their lines.
    pub(crate) fn into_left_out(self, files: &Files) -> Vec<LeftOut> {
        let has_paths = self.list.iter().any(|fault| fault.error.line.is_none() && !fault.path.is_empty());
        let text = files.first().1;
        // A large file is only parsed for the lines of its faults if it has some.
        let document = if has_paths { Document::parse(text).ok() } else { None };
        let lines = document.as_ref().map(|document| Lines::of(document.text()));
        let line = |path: &[PathStep]| {
            let root = document.as_ref().filter(|_| !path.is_empty())?.root()?;
            Some(lines.as_ref()?.line_of(start_of(root, path)?))
        };
        let one = |Fault { mut error, path, first }| {
            if let Some(first) = first {
                let line = first.line.or_else(|| line(&first.path));
                let at = line.map(|line| format!(" in line {line}")).unwrap_or_default();
                let file =
                    if first.file == error.file { String::new() } else { format!(" in `{}`", first.file) };
                error.problem = format!("{}; the first one{file}{at} counts", error.problem);
            }
            let line = error.line.or_else(|| line(&path));
            left_out(error, line)
        };
        self.list.into_iter().map(one).collect()
    }
}

fn left_out(error: FormatError, line: Option<u32>) -> LeftOut {
    let FormatError { file, record, field, problem, hint, .. } = error;
    let what = match (record.is_empty(), field.is_empty()) {
        (true, _) => file.clone(),
        (false, true) => record,
        (false, false) => format!("{record}: {field}"),
    };
    LeftOut { what, why: problem, file, line, is_fault: true, hint }
}

/// Returns the first byte of the value that a path leads to.
fn start_of(root: &ast::Value<'_>, path: &[PathStep]) -> Option<usize> {
    let mut node = root;
    for step in path {
        node = match (step, node) {
            (PathStep::Key(name), ast::Value::Object(object)) => {
                // Of equal keys the last one counts, as in the value that was read.
                &object.properties.iter().rev().find(|field| field.name.as_str() == &**name)?.value
            }
            (PathStep::Index(place), ast::Value::Array(array)) => array.elements.get(*place)?,
            _ => return None,
        };
    }
    Some(span(node).start)
}

/// The starts of the lines of a text.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    fn line_of(&self, at: usize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }
}

/// Returns the error for a file with an unresolved git conflict: its first marker.
pub(crate) fn conflict(file: &str, text: &str) -> Option<FormatError> {
    let regions = conflicts(text);
    let first = regions.first()?;
    let place = Position { line: Some(first.start), ..Position::of(file) };
    let problem = format!("it has an unresolved git conflict, lines {} to {}", first.start, first.end);
    Some(place.error("", problem, "resolve the conflict first"))
}

/// Lines of an unresolved git conflict, counted from 1, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// Returns the unresolved git conflicts of a text. Text of a document that only shows such markers has no complete set.
pub(crate) fn conflicts(text: &str) -> Vec<Conflict> {
    if !text.contains("<<<<<<< ") {
        return Vec::new();
    }
    let (mut found, mut start, mut has_middle) = (Vec::new(), None, false);
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("<<<<<<< ") {
            (start, has_middle) = (Some(number), false);
        } else if line.trim_end() == "=======" {
            has_middle = start.is_some();
        } else if line.starts_with(">>>>>>> ")
            && let Some(first) = start.take().filter(|_| has_middle)
        {
            found.push(Conflict { start: first, end: number });
        }
    }
    found
}

/// Adds the lines of unresolved conflicts as faults. Returns whether a line is part of one.
pub(crate) fn leave_out_conflicts(
    file: &str,
    text: &str,
    faults: &mut Faults,
) -> impl Fn(u32) -> bool + use<> {
    let regions = conflicts(text);
    for region in &regions {
        let lines = text.lines().zip(1..).skip(region.start as usize - 1);
        for (line, number) in lines.take_while(|(_, number)| *number <= region.end) {
            if line.trim().is_empty() {
                continue;
            }
            let place =
                Position { line: Some(number), record: format!("line {number}"), ..Position::of(file) };
            let problem =
                format!("it is part of an unresolved git conflict, lines {} to {}", region.start, region.end);
            faults.add_line(place.error("", problem, "resolve the conflict, and import the file again"));
        }
    }
    move |line| regions.iter().any(|region| (region.start..=region.end).contains(&line))
}
