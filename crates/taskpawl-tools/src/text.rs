//! Sanitizes text from programs for error messages.

use std::fmt::Write as _;

const MAX_CHARS: usize = 200;

/// Returns the last line that is not blank, shortened and without escape sequences and control characters.
pub(crate) fn last_line(text: &str) -> String {
    text.lines().rev().map(one_line).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Returns `text` as one short line without escape sequences and control characters.
pub(crate) fn one_line(text: &str) -> String {
    let plain = without_escapes(text);
    let line = plain.trim();
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Shortens a text that is longer than `most_bytes`, and appends its original length.
pub fn head_of_text(mut text: String, most_bytes: usize) -> String {
    let bytes = text.len();
    if bytes > most_bytes {
        text.truncate(text.floor_char_boundary(most_bytes));
        text.shrink_to_fit();
        let _ = write!(text, "… ({bytes} bytes)");
    }
    text
}

/// Removes `ESC [ … letter` and `ESC ] … BEL` completely, so that no remainder such as `[31m` is left.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => skip_sequence(&mut chars),
            '\n' | '\t' => plain.push(' '),
            _ if char.is_control() || is_reordering(char) => {}
            _ => plain.push(char),
        }
    }
    plain
}

fn skip_sequence(chars: &mut std::str::Chars<'_>) {
    match chars.next() {
        Some('[') => {
            chars.find(|char| ('@'..='~').contains(char));
        }
        Some(']') => {
            chars.find(|char| matches!(char, '\u{7}' | '\u{9c}' | '\\'));
        }
        Some(_) | None => {}
    }
}

/// Returns whether a character changes the direction of the following text, which can make a line read as something
/// else.
fn is_reordering(char: char) -> bool {
    matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_line_is_plain_and_short() {
        assert_eq!(
            last_line("first\n\u{1b}[31merror\u{1b}[0m: no\tway\u{8}\n\n  \u{1b}[0m\n"),
            "error: no way"
        );
        assert_eq!(last_line("\u{1b}]0;title\u{7}text \u{202e}txet"), "text txet");
        assert_eq!(last_line(""), "");
        assert_eq!(last_line(&"x".repeat(300)).chars().count(), MAX_CHARS + 1);
    }

    #[test]
    fn a_shortened_text_names_its_original_length() {
        assert_eq!(head_of_text("äöü".to_owned(), 6), "äöü");
        assert_eq!(head_of_text("äöü".to_owned(), 5), "äö… (6 bytes)");
    }
}
