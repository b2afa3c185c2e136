//! Text from servers, made fit for an error message.

use std::error::Error;

/// Returns text as one line without escape sequences and control characters, shortened.
pub(super) fn plain(text: &str, most_chars: usize) -> String {
    let mut plain = String::new();
    let mut chars = text.trim().chars();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' if chars.as_str().starts_with('[') => {
                chars.next();
                chars.find(|char| ('@'..='~').contains(char));
            }
            '\n' | '\t' => plain.push(' '),
            char if char.is_control() => {}
            char => plain.push(char),
        }
    }
    match plain.char_indices().nth(most_chars) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain,
    }
}

/// Returns the last lines that have something on them, as one.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<String> =
        text.lines().map(|line| plain(line, 200)).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

/// Returns an error with what caused it.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    plain(&text, 500)
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
