//! Words and characters of command lines.

/// Deepest nesting of command lines within command lines that is analysed, as in `sh -c '…'`.
pub(super) const DEPTH: usize = 8;

/// Words after which a command begins; some of them exist in `fish` only.
pub(super) const KEYWORDS: &[&str] = &[
    "!", "and", "begin", "do", "done", "elif", "else", "esac", "fi", "if", "not", "or", "then", "time",
    "until", "while", "{", "}",
];

/// Options of `find` and `fd` that are followed by a command.
pub(super) const EXEC: &[&str] =
    &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

pub(super) fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/' | ':' | ',' | '@' | '%' | '+' | '=')
}

pub(super) fn is_variable(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|char| char.is_ascii_alphanumeric() || char == '_')
}
