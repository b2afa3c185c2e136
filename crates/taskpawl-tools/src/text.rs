//! Sanitizes text from programs for error messages.

use std::fmt::Write as _;

const MAX_CHARS: usize = 200;

/// Returns the last line that is not blank, shortened and without escape sequences and control characters.
pub(crate) fn last_line(text: &str) -> String {
    text.lines().rev().map(one_line).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Returns `text` as one short line without escape sequences and deceptive characters.
pub(crate) fn one_line(text: &str) -> String {
    taskpawl_text::cut(&taskpawl_text::plain_line(text), MAX_CHARS)
}

/// Shortens a text that is longer than `most_bytes`, and appends its original length.
pub fn head_of_text(mut text: String, most_bytes: usize) -> String {
    let bytes = text.len();
    if bytes > most_bytes {
        text.truncate(taskpawl_text::head(&text, most_bytes).len());
        text.shrink_to_fit();
        let _ = write!(text, "… ({bytes} bytes)");
    }
    text
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
