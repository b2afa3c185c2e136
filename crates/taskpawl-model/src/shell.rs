//! Words of a shell. This is the only place that quotes them.

use std::fmt::Write;

use crate::visible::is_hidden;

/// Returns a word as a POSIX shell reads it back.
///
/// What does not show (line breaks, control characters, marks of direction) is written as the bytes of `$'…'`: a terminal would drop it,
/// and the pasted word would be another one. `bash`, `zsh` and `ksh` read that; `dash` does not.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-,:@/+%=".contains(c);
    // `zsh` looks for a program of the name that stands behind `=`.
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
                    // Three octal digits: a hexadecimal escape would swallow a digit that follows it in `zsh`.
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

/// Returns words as one line of a shell.
pub fn joined<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    words.into_iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_change_it() {
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
