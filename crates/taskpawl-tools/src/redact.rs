//! Redaction of secrets in stored text: known values, and tokens that are recognised by their shape.
//!
//! Input and output of programs are never changed, only the stored and displayed copy. A text is read once, in chunks
//! of any size, and the result does not depend on the chunk boundaries. Only the end of a chunk that may begin a secret
//! is held back.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::{Map, Value};

mod forms;
mod removal;
mod shapes;
#[cfg(test)]
mod tests;

pub use removal::ValueRemoval;
use shapes::Verdict;

/// Shortest part of a value that is redacted where a text is cut off in the middle of a value.
const MIN_PART: usize = 8;

/// Redacts secrets in text. Cheap to clone.
///
/// Each secret is replaced by `[redacted:NAME]`. The name is that of the secret, or the kind of a token that was
/// recognised by its shape.
#[derive(Clone, Default)]
pub struct Redactor(Option<Arc<Known>>);

/// Compiled search patterns.
struct Known {
    /// Matcher for all encoded forms of the values; `None` if there are no values.
    values: Option<AhoCorasick>,
    /// Name of the secret for each form, in the order of the matcher.
    names: Vec<Arc<str>>,
    /// All forms and all token prefixes, sorted. An unfinished text may still become one of these.
    sorted: Vec<Vec<u8>>,
    /// Forms alone, sorted, each with the name of its secret.
    forms: Vec<(Vec<u8>, Arc<str>)>,
    /// First bytes of `sorted`, as a quick filter.
    firsts: [bool; 256],
    longest: usize,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The matchers contain the secrets in plain text, so that no field is printed.
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// Makes a redactor for secrets given by name and value, and for all tokens with a known shape.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(Some(Arc::new(Known::new(secrets))))
    }

    /// Makes a redactor that changes nothing.
    pub fn off() -> Self {
        Self::default()
    }

    /// Returns the text with secrets redacted.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(known) = self.0.as_deref() else { return Cow::Borrowed(text) };
        // The mark of a shortened text is set aside, so that a secret cut off in front of it is recognised at the end.
        let (body, mark) = text.strip_suffix('…').map_or((text, ""), |body| (body, "…"));
        if !known.may_change(body.as_bytes()) {
            return Cow::Borrowed(text);
        }
        let mut stream = self.stream();
        let mut bytes = Vec::with_capacity(text.len());
        stream.push(body.as_bytes(), &mut bytes);
        stream.finish(&mut bytes);
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        text.push_str(mark);
        Cow::Owned(text)
    }

    /// Redacts secrets in every string of a value, including the keys of objects.
    pub fn value(&self, value: &mut Value) {
        if self.0.is_none() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.text(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => self.map(map),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn map(&self, map: &mut Map<String, Value>) {
        map.values_mut().for_each(|value| self.value(value));
        if map.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
            let entries = std::mem::take(map);
            map.extend(entries.into_iter().map(|(key, value)| (self.text(&key).into_owned(), value)));
        }
    }

    /// Starts to redact a text that arrives in chunks.
    pub fn stream(&self) -> RedactorStream {
        RedactorStream {
            redactor: self.clone(),
            buffer: Vec::new(),
            before: None,
            hidden: 0,
            shapes_from: 0,
            no_jwt_until: 0,
        }
    }
}

impl Known {
    fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut forms: Vec<(Vec<u8>, Arc<str>)> = Vec::new();
        for (name, value) in secrets {
            let name: Arc<str> = name.into();
            forms.extend(forms::forms(value).into_iter().map(|form| (form, Arc::clone(&name))));
        }
        forms.sort();
        forms.dedup_by(|one, other| one.0 == other.0);
        let build = || {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(forms.iter().map(|(form, _)| form))
                .expect("BUG: the forms of secrets are not that many")
        };
        let values = (!forms.is_empty()).then(build);
        let prefixes = shapes::prefixes().map(|prefix| prefix.as_bytes().to_vec());
        let mut sorted: Vec<Vec<u8>> = forms.iter().map(|(form, _)| form.clone()).chain(prefixes).collect();
        sorted.sort();
        let mut firsts = [false; 256];
        for text in &sorted {
            firsts[usize::from(text[0])] = true;
        }
        let longest = sorted.iter().map(Vec::len).max().unwrap_or_default();
        let names = forms.iter().map(|(_, name)| Arc::clone(name)).collect();
        Self { values, names, sorted, forms, firsts, longest }
    }

    /// Returns whether a complete text may contain a secret. This is a cheap filter for texts without any, which are
    /// most.
    fn may_change(&self, text: &[u8]) -> bool {
        self.values.as_ref().is_some_and(|values| values.is_match(text))
            || shapes::PREFIXES.is_match(text)
            || self.cut(text, 0).is_some()
    }

    /// Returns the start of the longest suffix that may be the beginning of a secret; the length of the text if there
    /// is none.
    fn open_end(&self, text: &[u8]) -> usize {
        let from = text.len().saturating_sub(self.longest.saturating_sub(1));
        let goes_on = |at: &usize| {
            let end = &text[*at..];
            self.firsts[usize::from(end[0])] && {
                // In sorted order the forms that properly extend `end` follow directly after it, so that one lookup is
                // enough.
                let next = self.sorted.partition_point(|form| form.as_slice() <= end);
                self.sorted.get(next).is_some_and(|form| form.starts_with(end))
            }
        };
        (from..text.len()).find(goes_on).unwrap_or(text.len())
    }

    /// Returns the start and the name of a value that is cut off by the end of the text, searching from `from` on.
    ///
    /// At least a third of the value, and at least `MIN_PART` bytes of it, must be there.
    fn cut(&self, text: &[u8], from: usize) -> Option<(usize, &Arc<str>)> {
        if self.forms.is_empty() || text.len() < MIN_PART {
            return None;
        }
        let begin = text.len().saturating_sub(self.longest).max(from);
        (begin..=text.len() - MIN_PART).find_map(|at| {
            let end = &text[at..];
            if !self.firsts[usize::from(end[0])] {
                return None;
            }
            let next = self.forms.partition_point(|(form, _)| form.as_slice() <= end);
            let (form, name) = self.forms.get(next)?;
            (form.starts_with(end) && end.len() >= form.len() / 3).then_some((at, name))
        })
    }
}

/// Redaction of one text that arrives in chunks.
#[derive(Debug, Clone)]
pub struct RedactorStream {
    redactor: Redactor,
    /// Bytes that are not decided yet. The positions below are offsets into it.
    buffer: Vec<u8>,
    /// Last byte before the buffer; for some kinds of tokens it matters.
    before: Option<u8>,
    /// End of the part that belongs to an already redacted secret.
    hidden: usize,
    /// Start of the search for tokens.
    shapes_from: usize,
    /// Offset before which no JWT starts. It keeps a long text full of JWT prefixes from being scanned once for each.
    no_jwt_until: usize,
}

/// Match that has to be redacted.
#[derive(Debug)]
struct SecretMatch {
    start: usize,
    end: usize,
    name: Arc<str>,
}

/// State of the search for the next token.
#[derive(Debug)]
enum Next {
    None,
    Token {
        found: SecretMatch,
        /// Offset of the prefix; the secret part may start later.
        at: usize,
    },
    /// The buffer ends before it is decided whether a token starts here.
    Open(usize),
}

impl RedactorStream {
    /// Reads a chunk and appends the decided part of the text to `out`.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let Some(known) = self.redactor.0.clone() else { return out.extend_from_slice(piece) };
        self.buffer.extend_from_slice(piece);
        self.step(&known, false, out);
    }

    /// Ends the text and appends the rest to `out`.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        if let Some(known) = self.redactor.0.clone() {
            self.step(&known, true, out);
        }
    }

    fn step(&mut self, known: &Known, is_end: bool, out: &mut Vec<u8>) {
        let mut open = if is_end { self.buffer.len() } else { known.open_end(&self.buffer) };
        let mut done = 0;
        let mut value = self.next_value(known, 0);
        let mut shape = self.next_shape(open, is_end);
        loop {
            if let Next::Open(at) | Next::Token { at, .. } = &shape
                && (matches!(shape, Next::Open(_)) || self.starts_beyond(&shape, open))
            {
                open = open.min(*at);
            }
            let value_at = value.as_ref().map(|found| found.start).filter(|start| *start < open);
            let shape_at = match &shape {
                Next::Token { found, at } if *at < open => Some(found.start),
                Next::Token { .. } | Next::Open(_) | Next::None => None,
            };
            match (value_at, shape_at) {
                (None, None) => break,
                (Some(start), other) if other.is_none_or(|other| start <= other) => {
                    if let Some(found) = value.take() {
                        done = self.hide(&found, done, out);
                    }
                    value = self.next_value(known, start + 1);
                }
                (Some(_) | None, _) => {
                    if let Next::Token { found, .. } = std::mem::replace(&mut shape, Next::None) {
                        self.shapes_from = found.end;
                        done = self.hide(&found, done, out);
                    }
                    shape = self.next_shape(open, is_end);
                }
            }
        }
        if is_end && let Some((start, name)) = known.cut(&self.buffer, done.max(self.hidden)) {
            done =
                self.hide(&SecretMatch { start, end: self.buffer.len(), name: Arc::clone(name) }, done, out);
        }
        let from = done.max(self.hidden);
        if from < open {
            out.extend_from_slice(&self.buffer[from..open]);
        }
        self.forget(open);
    }

    /// Returns whether the secret part of a token starts in the undecided part of the buffer.
    #[expect(clippy::unused_self, reason = "it reads as one of the rules of a step")]
    fn starts_beyond(&self, shape: &Next, open: usize) -> bool {
        matches!(shape, Next::Token { found, .. } if found.start >= open)
    }

    /// Writes the text before a match and its mark; returns the offset up to which the text is written.
    fn hide(&mut self, found: &SecretMatch, done: usize, out: &mut Vec<u8>) -> usize {
        let from = done.max(self.hidden);
        // Overlapping matches share one mark.
        let is_apart = found.start >= self.hidden && found.end > from;
        if is_apart {
            out.extend_from_slice(&self.buffer[from..found.start.max(from)]);
            out.extend_from_slice(b"[redacted:");
            out.extend_from_slice(found.name.as_bytes());
            out.push(b']');
        }
        self.hidden = self.hidden.max(found.end);
        from.max(found.start.min(found.end))
    }

    fn next_value(&self, known: &Known, from: usize) -> Option<SecretMatch> {
        let rest = self.buffer.get(from..)?;
        let found = known.values.as_ref()?.find(rest)?;
        let name = Arc::clone(&known.names[found.pattern().as_usize()]);
        Some(SecretMatch { start: from + found.start(), end: from + found.end(), name })
    }

    /// Returns the next token with a prefix that starts before `open`.
    fn next_shape(&mut self, open: usize, is_end: bool) -> Next {
        loop {
            let from = self.shapes_from;
            let Some(found) = self.buffer.get(from..).and_then(|rest| shapes::PREFIXES.find(rest)) else {
                return Next::None;
            };
            let at = from + found.start();
            if at >= open {
                return Next::None;
            }
            let shape = &shapes::ALL[found.pattern().as_usize()];
            let before = at.checked_sub(1).map_or(self.before, |before| self.buffer.get(before).copied());
            if shape.is_jwt() && at < self.no_jwt_until {
                self.shapes_from = at + 1;
                continue;
            }
            match shape.look(&self.buffer, at, before, is_end) {
                Verdict::No => {
                    self.no_jwt_until = self.no_jwt_until.max(shape.no_until(&self.buffer, at));
                    self.shapes_from = at + 1;
                }
                Verdict::More => return Next::Open(at),
                Verdict::Found { start, end } => {
                    return Next::Token { found: SecretMatch { start, end, name: shape.name.into() }, at };
                }
            }
        }
    }

    /// Drops the decided bytes and shifts the offsets.
    fn forget(&mut self, decided: usize) {
        if let Some(last) = decided.checked_sub(1) {
            self.before = Some(self.buffer[last]);
        }
        self.buffer.drain(..decided);
        for offset in [&mut self.hidden, &mut self.shapes_from, &mut self.no_jwt_until] {
            *offset = offset.saturating_sub(decided);
        }
    }
}
