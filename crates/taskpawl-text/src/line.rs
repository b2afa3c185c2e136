//! Text from other programs, as one line.

use crate::visible::{is_deceptive, revealed};

/// Returns text as one trimmed line without escape sequences and deceptive characters, for messages and lists.
pub fn plain_line(text: &str) -> String {
    let plain = without_sequences(text);
    let plain = plain.chars().filter(|c| c.is_whitespace() || !is_deceptive(*c));
    let line: String = plain.map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    line.trim().to_owned()
}

/// Returns text as one line in which every hidden character is escaped, so that a person sees exactly the text of an approval.
pub fn revealed_line(text: &str) -> String {
    revealed(text).replace(['\n', '\t'], " ")
}

/// Returns at most `max_chars` characters of a text, and `…` if there are more.
pub fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the beginning of a text: at most `most` bytes, and only whole characters.
pub fn head(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the end of a text: at most `most` bytes, and only whole characters.
pub fn tail(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Returns the output of a program without its escape sequences: most are colors, which would be noise if they were escaped.
pub fn without_sequences(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            skip_sequence(&mut chars);
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Skips the rest of a sequence after its `ESC`: `[ … letter`, `] … BEL` and similar strings, or a single character.
fn skip_sequence(chars: &mut std::str::Chars<'_>) {
    let mut ahead = chars.clone();
    match ahead.next() {
        Some('[') => {
            // A control sequence ends at its first character from `@` to `~`.
            ahead.find(|c| ('@'..='~').contains(c));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            // A string sequence ends at BEL or at the string terminator. An unclosed one ends with its line, so that it cannot hide the
            // rest of the text.
            let mut is_escaped = false;
            ahead.find(|c| {
                let is_end = matches!(c, '\u{7}' | '\u{9c}' | '\n') || (is_escaped && *c == '\\');
                is_escaped = *c == '\u{1b}';
                is_end
            });
        }
        // A sequence never swallows the end of a line.
        Some('\n') | None => return,
        Some(_) => {}
    }
    *chars = ahead;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_tails_have_whole_characters() {
        assert_eq!([3, 2, 1, 0, 9].map(|most| head("aé", most)), ["aé", "a", "a", "", "aé"]);
        assert_eq!([3, 2, 1, 0, 9].map(|most| tail("éa", most)), ["éa", "a", "a", "", "éa"]);
    }

    #[test]
    fn a_plain_line_has_neither_sequences_nor_hidden_characters() {
        assert_eq!(plain_line("\u{1b}[31merror\u{1b}[0m: no\tway\u{8}"), "error: no way");
        assert_eq!(plain_line(" a\n\u{1b}[31mb\u{1b}[0m\u{7}c "), "a bc");
        assert_eq!(plain_line("\u{1b}]0;title\u{7}text \u{202e}txet"), "text txet");
        assert_eq!(plain_line("a\u{2028}b\u{a0}c"), "a b c");
        assert_eq!(plain_line(" \u{1b}[0m\n"), "");
    }

    #[test]
    fn a_revealed_line_hides_nothing() {
        assert_eq!(revealed_line("rm\t\u{202e}a\n\u{1b}[2J\r"), "rm \\u{202e}a \\u{1b}[2J\\u{d}");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöü", 2), "äö…");
    }

    #[test]
    fn escape_sequences_are_removed_whole() {
        let printed = "a\u{1b}[2Jb\u{1b}]0;title\u{7}c\u{1b}P1\u{1b}\\d\u{1b}[1;31me";
        assert_eq!(without_sequences(printed), "abcde");
        assert_eq!(without_sequences("\u{1b}"), "");
        assert_eq!(without_sequences("\u{1b}]never closed\nnext"), "next");
    }
}
