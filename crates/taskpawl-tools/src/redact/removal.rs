//! Removes a value that should never have been stored, in all its known encodings, from texts, JSON and files.

use std::fmt;
use std::io::{self, Read, Write};

use aho_corasick::{AhoCorasick, MatchKind};
use serde::de::IgnoredAny;

use super::forms;

/// The most passes over a text. Removing one form can only reveal parts of longer ones, which are few.
const MAX_PASSES: usize = 4;

/// Replaces a leaked value and its encodings by [`MARK`](Self::MARK).
///
/// Encodings are: plain, with the escapes of JSON, shells and HTML, base64 at each offset, hexadecimal, and percent encoding.
pub struct ValueRemoval {
    /// Finds the longest form at each place.
    longest: AhoCorasick,
    /// Finds some form at each place, also in a stream.
    any: AhoCorasick,
}

impl fmt::Debug for ValueRemoval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The matchers contain the value.
        f.debug_struct("ValueRemoval").finish_non_exhaustive()
    }
}

impl ValueRemoval {
    /// The text in place of the value. It is valid within ids, addresses and JSON.
    pub const MARK: &str = "PURGED";

    /// The shortest value, in bytes. A shorter one would be found in texts that have nothing to do with it.
    pub const MIN_BYTES: usize = 8;

    /// Returns the removal of a value; `None` if it is too short.
    #[expect(clippy::missing_panics_doc, reason = "a bug of ours, never of the caller")]
    pub fn new(value: &str) -> Option<Self> {
        if value.len() < Self::MIN_BYTES {
            return None;
        }
        let forms: Vec<Vec<u8>> =
            forms::forms(value).into_iter().filter(|form| form.len() >= Self::MIN_BYTES).collect();
        let build = |kind| {
            let matcher = AhoCorasick::builder().match_kind(kind).build(&forms);
            matcher.expect("BUG: the forms of a value are not that many")
        };
        Some(Self { longest: build(MatchKind::LeftmostLongest), any: build(MatchKind::Standard) })
    }

    /// Returns whether bytes have the value in one of its forms.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.any.is_match(bytes)
    }

    /// Returns whether the value is in a stream.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub fn is_in_stream(&self, from: impl Read) -> io::Result<bool> {
        self.any.stream_find_iter(from).next().transpose().map(|found| found.is_some())
    }

    /// Returns a text without the value; `None` if it does not have it.
    ///
    /// JSON stays valid: in texts and names the mark replaces the value, and a number that has it becomes 0.
    pub fn text(&self, text: &str) -> Option<String> {
        if !self.is_in(text.as_bytes()) && !text.contains('\\') {
            return None;
        }
        let is_json = text.trim_start().starts_with(['{', '[', '"']);
        if is_json && serde_json::from_str::<IgnoredAny>(text).is_ok() {
            return self.json(text);
        }
        let lines = || text.lines().filter(|line| !line.trim().is_empty());
        if is_json && lines().all(|line| serde_json::from_str::<IgnoredAny>(line).is_ok()) {
            let changed: Vec<Option<String>> =
                text.split_inclusive('\n').map(|line| self.json(line)).collect();
            let is_changed = changed.iter().any(Option::is_some);
            let lines = changed.into_iter().zip(text.split_inclusive('\n'));
            return is_changed
                .then(|| lines.map(|(new, old)| new.unwrap_or_else(|| old.to_owned())).collect());
        }
        self.plain(text)
    }

    fn plain(&self, text: &str) -> Option<String> {
        let mut found = None;
        for _ in 0..MAX_PASSES {
            let text = found.as_deref().unwrap_or(text);
            if !self.is_in(text.as_bytes()) {
                break;
            }
            // A form can end within a character of a text, as base64 can within no text at all.
            let mut bytes = Vec::with_capacity(text.len());
            self.longest.replace_all_with_bytes(text.as_bytes(), &mut bytes, |_, _, to| {
                to.extend_from_slice(Self::MARK.as_bytes());
                true
            });
            found = Some(String::from_utf8_lossy(&bytes).into_owned());
        }
        found
    }

    /// Replaces within valid JSON, token by token, so that order and layout stay.
    fn json(&self, text: &str) -> Option<String> {
        let mut to = String::with_capacity(text.len());
        let mut is_changed = false;
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
            to.push_str(&rest[..at]);
            rest = &rest[at..];
            let length = if rest.starts_with('"') { end_of_text(rest) } else { end_of_number(rest) };
            let (token, after) = rest.split_at(length);
            let new = if token.starts_with('"') { self.json_text(token) } else { self.number(token) };
            is_changed |= new.is_some();
            to.push_str(new.as_deref().unwrap_or(token));
            rest = after;
        }
        to.push_str(rest);
        is_changed.then_some(to)
    }

    fn json_text(&self, token: &str) -> Option<String> {
        let decoded: String = serde_json::from_str(token).ok()?;
        // A text may be JSON itself, as arguments and output often are.
        let new =
            self.text(&decoded).or_else(|| self.is_in(token.as_bytes()).then(|| Self::MARK.to_owned()))?;
        let new = serde_json::Value::String(new).to_string();
        let is_left = self.is_in(new.as_bytes());
        Some(if is_left { format!("\"{}\"", Self::MARK) } else { new })
    }

    fn number(&self, token: &str) -> Option<String> {
        self.is_in(token.as_bytes()).then(|| "0".to_owned())
    }

    /// Copies a stream without the value, and returns whether it had it. Bytes that are no text keep their length.
    ///
    /// # Errors
    /// The stream cannot be read, or the copy not be written.
    pub fn stream(&self, from: impl Read, to: impl Write, is_text: bool) -> io::Result<bool> {
        let mut is_changed = false;
        self.any.try_stream_replace_all_with(from, to, |found, _, to| {
            is_changed = true;
            let filler;
            let mark = if is_text {
                Self::MARK.as_bytes()
            } else {
                filler = vec![b'*'; found.len()];
                &filler
            };
            to.write_all(mark)
        })?;
        Ok(is_changed)
    }
}

/// Returns the length of the text in quotes at the start of valid JSON.
fn end_of_text(json: &str) -> usize {
    let bytes = json.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn end_of_number(json: &str) -> usize {
    let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
    json.find(|c| !is_of_number(c)).unwrap_or(json.len())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_encoding_goes_and_json_stays_valid() {
        let value = "canary-7\"q/ü";
        let removal = ValueRemoval::new(value).unwrap();
        let nested = json!({"args": json!({"deep": json!([value]).to_string()}).to_string()}).to_string();
        for text in [
            value.to_owned(),
            json!({"a": [value, 1], value: null}).to_string(),
            nested,
            r#"{"a": "canary-7\u0022q\/\u00FC"}"#.to_owned(),
            format!("{{\"a\": 1}}\n{}\n", json!({"b": value})),
            "63616e6172792d372271 2fc3bc".replace(' ', ""),
            "canary-7%22q%2F%C3%BC".to_owned(),
        ] {
            let new = removal.text(&text).expect(&text);
            assert!(!removal.is_in(new.as_bytes()) && new.contains("PURGED"), "{text}: {new}");
            for (old, new) in text.lines().zip(new.lines()) {
                assert_eq!(
                    serde_json::from_str::<Value>(old).is_ok(),
                    serde_json::from_str::<Value>(new).is_ok()
                );
            }
        }
        for other in ["canary-7", "{\"a\": \"\\u00fc\"}", "1", ""] {
            assert_eq!(removal.text(other), None, "{other}");
        }
    }

    #[test]
    fn a_number_becomes_a_number() {
        let removal = ValueRemoval::new("4929123412341234").unwrap();
        let text = r#"{"card": 4929123412341234, "at":  -1.5e3, "text": "4929123412341234"}"#;
        let expected = r#"{"card": 0, "at":  -1.5e3, "text": "PURGED"}"#;
        assert_eq!(removal.text(text).as_deref(), Some(expected));
    }

    #[test]
    fn streams_are_cleaned_and_short_values_refused() {
        assert!(ValueRemoval::new("1234567").is_none());
        let removal = ValueRemoval::new("canary-77").unwrap();
        let from = [b"x".repeat(70_000), b"canary-77".to_vec(), b"y".to_vec()].concat();
        assert!(removal.is_in_stream(&from[..]).unwrap());
        for (is_text, length) in [(true, 70_007), (false, 70_010)] {
            let mut to = Vec::new();
            assert!(removal.stream(&from[..], &mut to, is_text).unwrap());
            assert_eq!((to.len(), removal.is_in(&to)), (length, false));
        }
    }
}
