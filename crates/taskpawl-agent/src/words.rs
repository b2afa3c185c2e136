//! Makes text of agents fit for error messages and logs.

use serde_json::Value;
use taskpawl_text::{cut, plain_line};

/// Returns text as one line, without escape sequences and deceptive characters, cut to a length.
pub(crate) fn plain(text: &str, max_chars: usize) -> String {
    cut(&plain_line(text), max_chars)
}

/// Returns the last three lines that are not empty, joined to one.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<String> =
        text.lines().map(|line| plain(line, 200)).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

/// Returns the text of a field; empty without one.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
