//! Paths of values in messages, such as `tasks[3].n`.

use std::fmt::{self, Write as _};

/// Appends `.key` to a path.
pub fn push_key(path: &mut String, key: &str) {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let dot = if path.is_empty() { "" } else { "." };
    if plain {
        append(path, format_args!("{dot}{key}"));
    } else {
        append(path, format_args!("[\"{}\"]", shortened(key)));
    }
}

/// Appends `[index]` to a path.
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
