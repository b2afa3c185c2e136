//! Deceptive characters: their definition, and escapes that make them visible.
//!
//! This is their only definition. A character that is escaped in one place and passed on in another would be a hole in
//! both.

/// Returns `text` with deceptive characters escaped, such as `\u{1b}` for an escape character. These act on a terminal,
/// change the reading direction or have no width. Line breaks and tabs stay.
pub fn escaped(text: &str) -> String {
    escape(text, is_deceptive)
}

/// Escapes like [`escaped`], and also characters that look like a space: a person must see exactly the work that an
/// approval covers.
pub fn revealed(text: &str) -> String {
    escape(text, is_hidden)
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if !matches!(c, '\n' | '\t') && is_escaped(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Returns whether a character acts on a terminal, changes the reading direction, breaks a line without being a line
/// break, or has no width. Line breaks and tabs are control characters and included; callers treat them separately.
///
/// The variation selectors U+FE00 to U+FE0F are excluded, although they have no width: many emoji need them.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns whether a character looks like nothing or like a space.
pub fn is_hidden(c: char) -> bool {
    is_deceptive(c) || is_lookalike(c)
}

/// Returns whether a character looks like a space without being one, or selects the rendering of the previous
/// character.
fn is_lookalike(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{fe00}'..='\u{fe0f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_revealed() {
        let text = "rm \u{202e}a\u{200b}b\u{a0}\u{feff}\u{1b}[2J\n\tü 漢 👍";
        let shown = "rm \\u{202e}a\\u{200b}b\\u{a0}\\u{feff}\\u{1b}[2J\n\tü 漢 👍";
        assert_eq!(revealed(text), shown);
    }

    #[test]
    fn text_in_any_language_stays_as_it_is() {
        let text = "une\u{a0}espace, 全角\u{3000}空白, ❤\u{fe0f}, עברית, ไทย\n\ttab";
        assert_eq!(escaped(text), text);
        assert_eq!(escaped("tag\u{e0041}, bell\u{7}"), "tag\\u{e0041}, bell\\u{7}");
    }
}
