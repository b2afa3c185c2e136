//! Paths of values in a JSON text.

use std::fmt::{self, Write as _};

/// One step of a path: from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// Into the field of an object with this key, decoded and unshortened.
    Key(Box<str>),
    /// Into the element of a list with this index, counted from 0.
    Index(usize),
}

/// Returns a path for use in a message, such as `tasks[3].n`. Long keys are shortened, so two paths may have equal texts.
pub fn path_text(steps: &[PathStep]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            PathStep::Key(key) => push_key(&mut path, key),
            PathStep::Index(index) => push_index(&mut path, *index),
        }
    }
    path
}

/// Appends `.key` to the text of a path.
pub fn push_key(path: &mut String, key: &str) {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let dot = if path.is_empty() { "" } else { "." };
    if plain {
        append(path, format_args!("{dot}{key}"));
    } else {
        append(path, format_args!("[\"{}\"]", shortened(key)));
    }
}

/// Appends `[index]` to the text of a path.
pub fn push_index(path: &mut String, index: usize) {
    append(path, format_args!("[{index}]"));
}

/// Returns the first 40 characters of a text, with control characters escaped, for use in a message of one line.
pub fn shortened(text: &str) -> String {
    const MAX_SHOWN: usize = 40;
    let plain: String = text.chars().take(MAX_SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_SHOWN).is_some() { format!("{plain}…") } else { plain }
}

fn append(path: &mut String, arguments: fmt::Arguments<'_>) {
    path.write_fmt(arguments).expect("BUG: writing to a string failed");
}
