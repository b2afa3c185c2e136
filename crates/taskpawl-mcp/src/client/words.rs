//! Makes text of servers fit for error messages.

use std::error::Error;

use taskpawl_text::{cut, error_chain, plain_line};

/// Returns text as one line, without escape sequences and deceptive characters, cut to a length.
pub(super) fn plain(text: &str, max_chars: usize) -> String {
    cut(&plain_line(text), max_chars)
}

/// Returns the last three lines that are not empty, joined to one.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<String> =
        text.lines().map(|line| plain(line, 200)).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

/// Returns an error with its causes, shortened.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    plain(&error_chain(error), 500)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_made_plain_and_short() {
        assert_eq!(plain(" a\n\u{1b}[31mb\u{1b}[0m\u{7}c ", 10), "a bc");
        assert_eq!(plain("abcdef", 3), "abc…");
        assert_eq!(last_lines("1\n\n2\n3\n \n4\n"), "2 | 3 | 4");
        assert_eq!(last_lines(""), "");
    }
}
