//! Shell quoting for commands that people copy. This is the only home of it.

use std::fmt::Write;

use taskpawl_text::is_hidden;

/// Quotes a word so that a POSIX shell reads it back unchanged.
///
/// Invisible characters (line breaks, control characters, direction marks) are written as bytes in `$'…'`. A terminal
/// would drop them, and the pasted word would differ. `bash`, `zsh` and `ksh` support this syntax; `dash` does not.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-,:@/+%=".contains(c);
    // `zsh` replaces `=name` by the path of that program.
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.contains(is_hidden) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut quoted = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            c if is_hidden(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    // Octal escapes have a fixed length of three digits. In `zsh` a hexadecimal escape would swallow a
                    // following digit.
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

/// Joins words to a line for a shell.
pub fn joined<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    words.into_iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_if_a_shell_would_change_them() {
        for (word, written) in [
            ("build-lib_2.0", "build-lib_2.0"),
            ("label:nightly", "label:nightly"),
            ("ann@host", "ann@host"),
            ("", "''"),
            ("left right", "'left right'"),
            ("it's", r"'it'\''s'"),
            ("$(rm -rf ~)", "'$(rm -rf ~)'"),
            ("`taskpawl cancel b`", "'`taskpawl cancel b`'"),
            ("a\nb'\\", r"$'a\012b\'\\'"),
            ("a\u{202e}b", r"$'a\342\200\256b'"),
            ("~", "'~'"),
            ("a=b", "a=b"),
            ("=b", "'=b'"),
        ] {
            assert_eq!(quoted(word), written, "{word:?}");
        }
        assert_eq!(joined(["a", "b c"]), "a 'b c'");
    }
}
