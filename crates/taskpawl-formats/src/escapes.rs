//! Backslashes before words of a name that would be read as syntax of their format.

use std::borrow::Cow;

/// Returns a text with a backslash before it, if a reader would take it for syntax.
pub(crate) fn escaped(text: &str, is_syntax: impl Fn(&str) -> bool) -> Cow<'_, str> {
    // A backslash that is already there gets one, too, so that every text can be told from its escaped form.
    if is_syntax(text.trim_start_matches('\\')) { format!("\\{text}").into() } else { text.into() }
}

/// Returns the text that [`escaped`] was given.
pub(crate) fn unescaped(text: &str, is_syntax: impl Fn(&str) -> bool) -> &str {
    let bare = text.strip_prefix('\\').filter(|_| is_syntax(text.trim_start_matches('\\')));
    bare.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back() {
        let is_syntax = |text: &str| text.starts_with('+');
        for (text, written) in [("a", "a"), ("+a", "\\+a"), ("\\+a", "\\\\+a"), ("\\a", "\\a")] {
            assert_eq!(escaped(text, is_syntax), written);
            assert_eq!(unescaped(written, is_syntax), text);
        }
    }
}
