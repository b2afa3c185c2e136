//! Shell quoting for commands that people copy. This is the only home of it.

use std::fmt::Write;
use std::path::Path;

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
    let is_escaped = |c: char| is_hidden(c) || byte_of(c).is_some();
    if !word.contains(is_escaped) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut quoted = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            c if is_escaped(c) => {
                let mut buffer = [0; 4];
                let own = byte_of(c).map(|byte| [byte]);
                let bytes =
                    own.as_ref().map_or_else(|| c.encode_utf8(&mut buffer).as_bytes(), |own| &own[..]);
                for byte in bytes {
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

/// The first of the characters that stand for bytes which are not UTF-8, in the words of [`path_word`]. They are at the end of a
/// plane for private use, so that hardly any name has them.
const FIRST_BYTE: u32 = 0x10_FF00;

/// Returns a path as a word, to be [`quoted`]: it is no flag, and bytes that are not UTF-8 come back when it is quoted.
pub fn path_word(path: &Path) -> String {
    let mut word = String::new();
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.starts_with(b"-") && bytes != b"-" {
        word.push_str("./");
    }
    for chunk in bytes.utf8_chunks() {
        word.push_str(chunk.valid());
        word.extend(chunk.invalid().iter().filter_map(|byte| char::from_u32(FIRST_BYTE + u32::from(*byte))));
    }
    word
}

/// Returns the byte that a character of [`path_word`] stands for.
fn byte_of(c: char) -> Option<u8> {
    u8::try_from(u32::from(c).checked_sub(FIRST_BYTE)?).ok().filter(|byte| !byte.is_ascii())
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

    #[test]
    fn a_path_is_no_flag_and_keeps_bytes_that_are_not_utf_8() {
        use std::os::unix::ffi::OsStrExt as _;
        let word = |bytes: &[u8]| quoted(&path_word(Path::new(std::ffi::OsStr::from_bytes(bytes))));
        assert_eq!(word(b"-x.yaml"), "./-x.yaml");
        assert_eq!(word(b"-"), "-");
        assert_eq!(word(b"caf\xe91.yaml"), r"$'caf\3511.yaml'");
        assert_eq!(word("café.yaml".as_bytes()), "'café.yaml'");
    }
}
