//! Annotations of GitHub actions: workflow commands, which the runner reads from the output of a step.

use std::borrow::Cow;
use std::fmt::Write as _;

use taskpawl_text::{cut, plain_line};

use crate::log::{Outcome, RunLog, TaskLog};

/// GitHub shows at most this many errors of a step.
const MAX_ANNOTATIONS: usize = 10;

/// The most characters of a message; GitHub cuts longer ones.
const MAX_MESSAGE: usize = 2_000;

/// Returns an annotation for each failed task, at the line of the task in its plan file.
pub fn annotations(log: &RunLog) -> String {
    let mut text = String::new();
    let failures: Vec<&TaskLog> = log.failures().collect();
    for task in failures.iter().take(MAX_ANNOTATIONS) {
        text.push_str(&annotation(task));
    }
    if let Some(more) = failures.len().checked_sub(MAX_ANNOTATIONS).filter(|more| *more > 0) {
        let _ = writeln!(text, "::notice title=taskpawl::{more} more tasks did not succeed");
    }
    text
}

fn annotation(task: &TaskLog) -> String {
    let line = task.line.as_ref();
    let place =
        line.map(|line| format!("file={},line={},", property(&line.file), line.line)).unwrap_or_default();
    let how = if task.outcome() == Outcome::Failed { "failed" } else { "did not finish" };
    let title = property(&format!("{} {how}", cut(&plain_line(&task.name), 200)));
    format!("::error {place}title={title}::{}\n", message(task))
}

fn message(task: &TaskLog) -> String {
    let mut text = format!("{}: {}", task.id, task.failure());
    let output =
        task.calls.iter().rev().flat_map(|call| call.output.iter().rev()).find(|part| !part.text.is_empty());
    if let Some(part) = output {
        let printed = taskpawl_text::without_sequences(&part.text);
        let start = printed.trim_end().char_indices().rev().nth(MAX_MESSAGE / 2).map_or(0, |(at, _)| at);
        let _ = write!(text, "\n{}", printed[start..].trim_end());
    }
    data(&cut(&text, MAX_MESSAGE))
}

/// Escapes the message of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Returns text in which no line is a workflow command: the runner takes a command at the start of a line after blanks,
/// and in its older form anywhere.
pub fn without_commands(text: &str) -> Cow<'_, str> {
    let begins = |line: &str| line.trim_start().starts_with("::");
    if !text.contains("##[") && !text.split(['\n', '\r']).any(begins) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 8);
    for line in text.split_inclusive(['\n', '\r']) {
        if begins(line) {
            let (blank, rest) = line.split_at(line.len() - line.trim_start().len());
            clean.push_str(blank);
            clean.push_str(": :");
            clean.push_str(&rest[2..].replace("##[", "# #["));
        } else {
            clean.push_str(&line.replace("##[", "# #["));
        }
    }
    Cow::Owned(clean)
}
