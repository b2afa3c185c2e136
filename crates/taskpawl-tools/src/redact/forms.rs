//! Encoded forms of a secret value: the plain text and its common encodings.

use std::fmt::Write as _;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Shortest form that is searched for, in bytes.
const MIN_FORM: usize = 6;

/// Shortest line of a multi-line value that is searched for on its own, in bytes.
const MIN_LINE: usize = 8;

/// Usual line lengths of wrapped base64.
const LINES: [usize; 2] = [76, 64];

/// Longest value, in bytes, that is also found if its base64 is wrapped at an unusual position.
const WINDOWED: usize = 256;

/// Shortest part of such base64 that is searched for.
const WINDOW: usize = 12;

/// Returns all forms of a value, without duplicates.
pub(super) fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = written(value);
    if value.contains('\n') {
        // Programs indent lines or print only some of them. The first and last lines of keys are well known and thus no
        // secret.
        let lines = value.lines().map(str::trim);
        let lines = lines.filter(|line| line.len() >= MIN_LINE && !line.starts_with("-----"));
        forms.extend(lines.flat_map(written));
    }
    for alphabet in [STANDARD, URL_SAFE] {
        for offset in 0..3 {
            let form = base64(value.as_bytes(), offset, alphabet);
            if value.len() <= WINDOWED && form.len() > LINES[1] / 2 {
                // Matches of adjacent windows cover a whole line together.
                forms.extend(form.windows(WINDOW).map(<[u8]>::to_vec));
            }
            forms.push(form);
        }
        let whole = base64(value.as_bytes(), 0, alphabet);
        for length in LINES {
            forms.extend(whole.chunks(length).skip_while(|_| whole.len() <= length).map(<[u8]>::to_vec));
        }
    }
    forms.retain(|form| form.len() >= MIN_FORM);
    forms.sort();
    forms.dedup();
    forms
}

/// Returns a text in plain and as it is escaped in other formats.
fn written(value: &str) -> Vec<Vec<u8>> {
    let json = json(value, char::is_control);
    let ascii = json_ascii(value);
    let texts = [
        value.to_owned(),
        json.replace('/', "\\/"),
        self::json(&json, char::is_control),
        json,
        ascii,
        percent(value, b"", false),
        percent(value, b"", true),
        percent(value, b"/", false),
        percent(value, b"", false).replace("%20", "+"),
        percent(value, b"", true).replace("%20", "+"),
        value.replace('\'', r"'\''"),
        value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"),
        hexadecimal(value),
        hexadecimal(value).to_uppercase(),
    ];
    texts.into_iter().map(String::into_bytes).collect()
}

fn json(value: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(value.len());
    for char in value.chars() {
        match char {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            char if is_escaped(char) => push_escaped(char, &mut text),
            char => text.push(char),
        }
    }
    text
}

/// Escapes as encoders do that write only ASCII and nothing with a meaning in HTML.
fn json_ascii(value: &str) -> String {
    json(value, |char| char.is_control() || !char.is_ascii() || matches!(char, '<' | '>' | '&'))
}

fn push_escaped(char: char, text: &mut String) {
    for unit in char.encode_utf16(&mut [0; 2]) {
        write!(text, "\\u{unit:04x}").expect("BUG: writing to a string failed");
    }
}

fn percent(value: &str, kept: &[u8], is_lower: bool) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte) {
            text.push(char::from(byte));
        } else if is_lower {
            write!(text, "%{byte:02x}").expect("BUG: writing to a string failed");
        } else {
            write!(text, "%{byte:02X}").expect("BUG: writing to a string failed");
        }
    }
    text
}

fn hexadecimal(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("BUG: writing to a string failed");
        text
    })
}

/// Returns the part of the base64 of a value that does not depend on the neighbouring bytes. `offset` is the number of
/// bytes before it in its group of three.
///
/// Base64 encodes three bytes in four characters, so that a value inside of a longer text has one of three encodings.
fn base64(value: &[u8], offset: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let bits = |index: usize| -> u8 {
        // The six bits of the character at `index`.
        (0..6).fold(0, |bits, bit| {
            let at = index * 6 + bit;
            let byte = at / 8;
            let byte = if byte < offset { 0 } else { value[byte - offset] };
            bits << 1 | (byte >> (7 - at % 8) & 1)
        })
    };
    let first = (offset * 8).div_ceil(6);
    let end = (offset + value.len()) * 8 / 6;
    (first..end).map(|index| alphabet[usize::from(bits(index))]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_a_value_are_listed() {
        let forms = forms("pä\"s/ w<'1\n");
        let shown: Vec<String> =
            forms.iter().map(|form| String::from_utf8_lossy(form).escape_debug().to_string()).collect();
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn base64_is_recognised_at_every_offset() {
        // Output of `printf x:PASSWORD-1 | base64` and similar commands.
        let inside = [
            ("UEFTU1dPUkQtMQ==", 0),
            ("eDpQQVNTV09SRC0x", 2),
            ("eHBQQVNTV09SRC0xCg==", 2),
            ("eFBBU1NXT1JELTE=", 1),
        ];
        for (text, offset) in inside {
            let core = String::from_utf8(base64(b"PASSWORD-1", offset, STANDARD)).unwrap();
            assert!(text.contains(&core), "{text} has no {core}");
            assert!(core.len() + 4 >= 13, "{core}");
        }
    }
}
