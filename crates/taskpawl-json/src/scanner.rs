//! A single pass over a JSON text that a parser has already accepted.

use std::borrow::Cow;
use std::ops::Range;

use crate::{JsonFault, JsonProblem, PathStep, Position, exact_number, shortened};

/// Checks the keys and numbers of a valid JSON text. The result is meaningless for other texts.
///
/// # Errors
/// The first object, in the order of their ends, that contains a key twice, or the first number that cannot be
/// represented exactly.
pub fn check(text: &[u8]) -> Result<(), JsonFault> {
    faults(text, 1).pop().map_or(Ok(()), Err)
}

/// Returns the first faults of a valid JSON text, at most `most`, in the order in which [`check`] finds them. Of an object with several
/// duplicate keys it is the first one.
pub fn faults(text: &[u8], most: usize) -> Vec<JsonFault> {
    let scanner = Scanner { text, at: 0, open: Vec::new(), keys: Vec::new(), found: Vec::new() };
    scanner.scan(most)
}

/// An array or object whose end has not been reached.
enum Open {
    List { index: usize },
    Object { first_key: usize, expects_key: bool },
}

struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
    open: Vec<Open>,
    /// The keys of all open objects, as ranges without quotes. One shared vector, so that small objects need no
    /// allocation of their own.
    keys: Vec<Range<usize>>,
    found: Vec<JsonFault>,
}

impl Scanner<'_> {
    fn scan(mut self, most: usize) -> Vec<JsonFault> {
        while let Some(byte) = self.text.get(self.at).filter(|_| self.found.len() < most) {
            match byte {
                b'"' => self.string(),
                b'-' | b'0'..=b'9' => self.number(),
                b'{' => self.open.push(Open::Object { first_key: self.keys.len(), expects_key: true }),
                b'[' => self.open.push(Open::List { index: 0 }),
                b',' => self.next_item(),
                b'}' | b']' => self.close(),
                _ => {}
            }
            self.at += 1;
        }
        self.found
    }

    /// Moves to the closing quote. Records the string if it is a key.
    fn string(&mut self) {
        let start = self.at + 1;
        self.at = start;
        while let Some(byte) = self.text.get(self.at)
            && *byte != b'"'
        {
            self.at += if *byte == b'\\' { 2 } else { 1 };
        }
        let end = self.at.min(self.text.len());
        if let Some(Open::Object { expects_key, .. }) = self.open.last_mut()
            && std::mem::take(expects_key)
        {
            self.keys.push(start..end);
        }
    }

    /// Moves to the last byte of the number.
    fn number(&mut self) {
        let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
        let length = self.text[self.at..].iter().take_while(|byte| is_part(byte)).count();
        let text = String::from_utf8_lossy(&self.text[self.at..self.at + length]);
        if exact_number(&text).is_none() {
            let problem = JsonProblem::Number { text: shortened(&text) };
            let fault = self.fault(self.at, problem);
            self.found.push(fault);
        }
        self.at += length - 1;
    }

    fn next_item(&mut self) {
        match self.open.last_mut() {
            Some(Open::List { index }) => *index += 1,
            Some(Open::Object { expects_key, .. }) => *expects_key = true,
            None => {}
        }
    }

    fn close(&mut self) {
        if let Some(Open::Object { first_key, .. }) = self.open.pop() {
            self.check_keys(first_key);
            self.keys.truncate(first_key);
        }
    }

    fn check_keys(&mut self, first_key: usize) {
        let text = self.text;
        let keys = &mut self.keys[first_key..];
        // The sort is stable: among equal keys the first one in the text stays first.
        keys.sort_by(|one, other| key_text(text, one).cmp(&key_text(text, other)));
        let twice = |pair: &&[Range<usize>]| key_text(text, &pair[0]) == key_text(text, &pair[1]);
        // Sorting has changed the order of the keys, so the earliest repetition in the text has to be searched for.
        let Some([first, again]) = keys.windows(2).filter(twice).min_by_key(|pair| pair[1].start) else {
            return;
        };
        let first = Position::of(text, first.start - 1);
        let problem = JsonProblem::DuplicateKey { key: shortened(&key_text(text, again)), first };
        let at = again.start - 1;
        // The path of the error must end at this object, not at one of its keys.
        self.keys.truncate(first_key);
        let fault = self.fault(at, problem);
        self.found.push(fault);
    }

    fn fault(&self, at: usize, problem: JsonProblem) -> JsonFault {
        JsonFault { at: Position::of(self.text, at), path: self.path(), problem }
    }

    /// Returns the path of the current value.
    fn path(&self) -> Vec<PathStep> {
        let mut path = Vec::new();
        for (depth, open) in self.open.iter().enumerate() {
            match open {
                Open::List { index } => path.push(PathStep::Index(*index)),
                Open::Object { first_key, .. } => {
                    // The keys of an open object end where those of the next inner object begin.
                    let end = self.open[depth + 1..].iter().find_map(|inner| match inner {
                        Open::Object { first_key, .. } => Some(*first_key),
                        Open::List { .. } => None,
                    });
                    let own = self.keys.get(*first_key..end.unwrap_or(self.keys.len()));
                    let key = own.and_then(<[_]>::last).map(|key| key_text(self.text, key));
                    path.extend(key.map(|key| PathStep::Key(key.into())));
                }
            }
        }
        path
    }
}

/// Returns the decoded key, because equal keys may be spelled differently, with and without escapes.
fn key_text<'t>(text: &'t [u8], key: &Range<usize>) -> Cow<'t, str> {
    let raw = &text[key.clone()];
    let quoted = || text.get(key.start - 1..=key.end);
    if raw.contains(&b'\\')
        && let Some(meant) = quoted().and_then(|quoted| serde_json::from_slice::<String>(quoted).ok())
    {
        return Cow::Owned(meant);
    }
    String::from_utf8_lossy(raw)
}
