//! JSON as it stands in a file: what says the same is written as it stood, with every space; what is new as what stands beside it.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value};

/// Names by which an object of a list is found again: the `id` of Taskwarrior is 0 for all that is over.
const NAMES: &[&str] = &["uuid", "id"];

/// Returns a text with another value in it; one that is no JSON gives way to the value alone.
pub(crate) fn over(text: &str, value: &Value) -> String {
    let Ok(before) = serde_json::from_str::<Value>(text) else { return pretty(value) + "\n" };
    let piece = Scanner { text, at: 0 }.value();
    let page = Page { text, style: Style::of(text) };
    let inside = page.put(&piece, &before, value, page.is_multi(&piece.span));
    format!("{}{inside}{}", &text[..piece.span.start], &text[piece.span.end..])
}

/// Returns a value in several lines, as in a file that is not there yet.
pub(crate) fn pretty(value: &Value) -> String {
    Page { text: "", style: Style { unit: "  ".to_owned(), end: "\n", is_spaced: true } }
        .fresh(value, Some(""))
}

/// A value by its place in a text.
struct Piece {
    span: Range<usize>,
    inner: Inner,
}

enum Inner {
    /// A text, a number or a word.
    Plain,
    List(Vec<Piece>),
    Object(Vec<Entry>),
}

struct Entry {
    name: String,
    key: Range<usize>,
    value: Piece,
}

/// Finds the pieces of a text that is known to be JSON.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl Scanner<'_> {
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count();
        self.text.as_bytes().get(self.at).copied()
    }

    fn value(&mut self) -> Piece {
        let first = self.peek();
        let begin = self.at;
        let inner = match first {
            Some(b'{') => Inner::Object(self.entries()),
            Some(b'[') => Inner::List(self.items()),
            Some(b'"') => {
                self.string();
                Inner::Plain
            }
            _ => {
                let is_end = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
                let rest = &self.text.as_bytes()[self.at..];
                self.at += rest.iter().position(is_end).unwrap_or(rest.len());
                Inner::Plain
            }
        };
        Piece { span: begin..self.at, inner }
    }

    fn string(&mut self) -> Range<usize> {
        let begin = self.at;
        self.at += 1;
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == b'"' {
                break;
            }
        }
        begin..self.at
    }

    fn items(&mut self) -> Vec<Piece> {
        let mut items = Vec::new();
        self.at += 1;
        while self.is_more() {
            items.push(self.value());
        }
        items
    }

    fn entries(&mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        self.at += 1;
        while self.is_more() {
            let key = self.string();
            let name = serde_json::from_str(&self.text[key.clone()]).unwrap_or_default();
            self.peek();
            self.at += 1;
            entries.push(Entry { name, key, value: self.value() });
        }
        entries
    }

    /// Goes to what follows within a list or an object, or behind its end.
    fn is_more(&mut self) -> bool {
        if self.peek() == Some(b',') {
            self.at += 1;
        }
        let is_more = !matches!(self.peek(), None | Some(b']' | b'}'));
        self.at += usize::from(!is_more);
        is_more
    }
}

/// How a text is laid out.
struct Style {
    /// How far something is set in; empty where nothing is.
    unit: String,
    /// What ends a line.
    end: &'static str,
    /// A space follows a colon.
    is_spaced: bool,
}

impl Style {
    fn of(text: &str) -> Self {
        let lead = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
        let unit =
            text.lines().filter(|line| !line.trim().is_empty()).map(lead).find(|lead| !lead.is_empty());
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Self { unit: unit.unwrap_or_default(), end, is_spaced: text.contains("\": ") }
    }
}

/// A text that values are written into.
struct Page<'t> {
    text: &'t str,
    style: Style,
}

/// One part of a list or an object that is written.
struct Slot {
    /// Its place there before.
    before: Option<usize>,
    text: String,
}

impl Page<'_> {
    /// Returns a value in the place of another one; `is_multi` says whether what it stands in has several lines.
    fn put(&self, piece: &Piece, before: &Value, value: &Value, is_multi: bool) -> String {
        if before == value {
            return self.text[piece.span.clone()].to_owned();
        }
        match (&piece.inner, before, value) {
            (Inner::Object(entries), Value::Object(before), Value::Object(value)) => {
                self.put_object(piece, entries, (before, value), is_multi)
            }
            (Inner::List(items), Value::Array(before), Value::Array(value)) => {
                self.put_list(piece, items, (before, value), is_multi)
            }
            _ => {
                let lead = self.lead(piece.span.start);
                self.fresh(value, (is_multi && !self.style.unit.is_empty()).then_some(lead))
            }
        }
    }

    fn put_object(
        &self,
        piece: &Piece,
        entries: &[Entry],
        (before, value): (&Map<String, Value>, &Map<String, Value>),
        is_multi: bool,
    ) -> String {
        let spans: Vec<Range<usize>> =
            entries.iter().map(|entry| entry.key.start..entry.value.span.end).collect();
        let frame = self.frame(piece, &spans, is_multi);
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        last.extend(entries.iter().enumerate().map(|(place, entry)| (entry.name.as_str(), place)));
        let mut slots = Vec::new();
        for (place, entry) in entries.iter().enumerate() {
            // A name that is there twice stands where it stood first, and says what it said last.
            let Some(counts) = last.remove(entry.name.as_str()) else { continue };
            let (Some(now), counts) = (value.get(&entry.name), &entries[counts].value) else { continue };
            let was = before.get(&entry.name).unwrap_or(&Value::Null);
            let name = &self.text[entry.key.start..entry.value.span.start];
            let text = format!("{name}{}", self.put(counts, was, now, frame.is_multi));
            slots.push(Slot { before: Some(place), text });
        }
        let colon = entries.first().map(|entry| &self.text[entry.key.end..entry.value.span.start]);
        let colon = colon.unwrap_or(if self.style.is_spaced { ": " } else { ":" });
        let samples = || entries.iter().map(|entry| &entry.value);
        for (name, value) in value.iter().filter(|(name, _)| !before.contains_key(*name)) {
            let name = Value::String(name.clone());
            let text = format!("{name}{colon}{}", self.fresh(value, self.lead_inside(&frame, samples())));
            slots.push(Slot { before: None, text });
        }
        self.joined(piece, &spans, &frame, &slots)
    }

    fn put_list(
        &self,
        piece: &Piece,
        items: &[Piece],
        (before, value): (&[Value], &[Value]),
        is_multi: bool,
    ) -> String {
        let spans: Vec<Range<usize>> = items.iter().map(|item| item.span.clone()).collect();
        let frame = self.frame(piece, &spans, is_multi);
        let mut matches = Matches::of(before);
        let mut slots = Vec::new();
        for (place, value) in value.iter().enumerate() {
            let found = matches.take(place, value);
            let text = match found {
                Some(found) => self.put(&items[found], &before[found], value, frame.is_multi),
                None => self.fresh(value, self.lead_inside(&frame, items.iter())),
            };
            slots.push(Slot { before: found, text });
        }
        self.joined(piece, &spans, &frame, &slots)
    }

    fn joined(&self, piece: &Piece, spans: &[Range<usize>], frame: &Frame, slots: &[Slot]) -> String {
        let span = &piece.span;
        let (open, close) = (&self.text[span.start..=span.start], &self.text[span.end - 1..span.end]);
        let mut out = open.to_owned();
        let mut is_first = true;
        for slot in slots {
            // What stood before a part stays before it, whatever stands before that now.
            let place = slot.before.filter(|place| *place > 0);
            let gap = place.map(|place| &self.text[spans[place - 1].end..spans[place].start]);
            match gap {
                Some(gap) if !is_first => out.push_str(gap),
                Some(gap) if gap.contains('\n') => out.push_str(&gap.replacen(',', "", 1)),
                _ => out.push_str(if is_first { &frame.begin } else { &frame.between }),
            }
            out.push_str(&slot.text);
            is_first = false;
        }
        if !slots.is_empty() {
            out.push_str(&frame.end);
        }
        out + close
    }

    /// Returns what stands around the parts of a list or an object.
    fn frame(&self, piece: &Piece, spans: &[Range<usize>], is_multi: bool) -> Frame {
        let comma = if self.style.is_spaced { ", " } else { "," };
        let Some((first, last)) = spans.first().zip(spans.last()) else {
            // An empty one says by its own lines, or by what it stands in, how it is filled.
            if !self.is_multi(&piece.span) && (!is_multi || self.style.unit.is_empty()) {
                let (begin, end) = (String::new(), String::new());
                return Frame { begin, between: comma.to_owned(), end, is_multi: false };
            }
            let lead = self.lead(piece.span.start);
            let begin = format!("{}{lead}{}", self.style.end, self.style.unit);
            let (between, end) = (format!(",{begin}"), format!("{}{lead}", self.style.end));
            return Frame { begin, between, end, is_multi: true };
        };
        let begin = self.text[piece.span.start + 1..first.start].to_owned();
        let between = match spans.get(1) {
            Some(second) => self.text[first.end..second.start].to_owned(),
            None if begin.trim_start_matches(' ').is_empty() => comma.to_owned(),
            None => format!(",{begin}"),
        };
        let end = self.text[last.end..piece.span.end - 1].to_owned();
        Frame { begin, between, end, is_multi: self.is_multi(&piece.span) }
    }

    fn is_multi(&self, span: &Range<usize>) -> bool {
        self.text[span.clone()].contains('\n')
    }

    /// Returns what stands before the first word of a line.
    fn lead(&self, at: usize) -> &str {
        let begin = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let line = &self.text[begin..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// Returns how far something new is set in; `None` where it stands in one line, as what stands beside it.
    fn lead_inside<'f, 'p>(
        &self,
        frame: &'f Frame,
        mut samples: impl Iterator<Item = &'p Piece>,
    ) -> Option<&'f str> {
        let is_sample = |piece: &&Piece| match &piece.inner {
            Inner::Plain => false,
            Inner::List(items) => !items.is_empty(),
            Inner::Object(entries) => !entries.is_empty(),
        };
        let sample = samples.find(is_sample);
        let is_multi = sample.map_or(frame.is_multi, |piece| self.is_multi(&piece.span));
        let (_, lead) = frame.between.rsplit_once('\n')?;
        (is_multi && !self.style.unit.is_empty()).then_some(lead)
    }

    /// Returns a value that was not there: in several lines where it is said how far they are set in.
    fn fresh(&self, value: &Value, lead: Option<&str>) -> String {
        let inside = lead.map(|lead| format!("{lead}{}", self.style.unit));
        let inside = inside.as_deref();
        let colon = if self.style.is_spaced { ": " } else { ":" };
        match value {
            Value::Array(list) if !list.is_empty() => {
                let items: Vec<_> = list.iter().map(|value| self.fresh(value, inside)).collect();
                format!("[{}]", self.lines(&items, lead))
            }
            Value::Object(map) if !map.is_empty() => {
                let entry = |(name, value): (&String, &Value)| {
                    format!("{}{colon}{}", Value::String(name.clone()), self.fresh(value, inside))
                };
                format!("{{{}}}", self.lines(&map.iter().map(entry).collect::<Vec<_>>(), lead))
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => value.to_string(),
        }
    }

    fn lines(&self, parts: &[String], lead: Option<&str>) -> String {
        let Some(lead) = lead else { return parts.join(if self.style.is_spaced { ", " } else { "," }) };
        let Style { unit, end, .. } = &self.style;
        let between = format!("{end}{lead}{unit}");
        format!("{between}{}{end}{lead}", parts.join(&format!(",{between}")))
    }
}

/// What stands around the parts of a list or an object.
struct Frame {
    begin: String,
    between: String,
    end: String,
    is_multi: bool,
}

/// The values of a list, each of which is found again once.
struct Matches<'v> {
    before: &'v [Value],
    by_name: BTreeMap<String, usize>,
    is_taken: Vec<bool>,
}

impl<'v> Matches<'v> {
    fn of(before: &'v [Value]) -> Self {
        let by_name = before.iter().enumerate().filter_map(|(place, value)| Some((name_of(value)?, place)));
        Self { before, by_name: by_name.collect(), is_taken: vec![false; before.len()] }
    }

    /// Returns the place of the one that is the same, or of an object without a name that stands at the same place.
    fn take(&mut self, place: usize, value: &Value) -> Option<usize> {
        let is_free = |place: &usize| self.is_taken.get(*place) == Some(&false);
        let found = if let Some(name) = name_of(value) {
            self.by_name.get(&name).copied().filter(is_free)
        } else {
            let is_same = |place: &usize| is_free(place) && self.before[*place] == *value;
            let is_alike = |place: &usize| is_free(place) && self.before[*place].is_object();
            let same = Some(place).filter(is_same).or_else(|| (0..self.before.len()).find(is_same));
            same.or_else(|| Some(place).filter(|_| value.is_object()).filter(is_alike))
        };
        if let Some(found) = found {
            self.is_taken[found] = true;
        }
        found
    }
}

fn name_of(value: &Value) -> Option<String> {
    NAMES.iter().find_map(|name| match value.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::{over, pretty};
    use serde_json::{Value, json};

    #[test]
    fn fields_stand_where_they_stood_and_new_ones_behind() {
        let before =
            r#"{"z":1,"list":[{"id":"b","y":1,"x":1},{"id":2,"b":1,"a":1},{"k":1,"j":2}],"a":1,"z":2}"#;
        let value = json!({
            "a": 2, "new": null, "z": 3, "also": {"b": 1, "a": 1},
            "list": [{"a": 1, "b": 1, "id": 2}, {"id": "b", "x": 1, "y": 1}, {"j": 1, "k": 1}, {"id": "c", "y": 1, "x": 1}],
        });
        assert_eq!(
            over(before, &value),
            r#"{"z":3,"list":[{"id":2,"b":1,"a":1},{"id":"b","y":1,"x":1},{"k":1,"j":1},{"id":"c","x":1,"y":1}],"a":2,"also":{"a":1,"b":1},"new":null}"#
        );
        assert_eq!(over("no JSON", &value), serde_json::to_string_pretty(&value).unwrap() + "\n");
        assert_eq!(pretty(&json!({"a": [], "b": {}})), "{\n  \"a\": [],\n  \"b\": {}\n}");
    }

    #[test]
    fn what_is_new_stands_as_what_is_beside_it() {
        let cases = [
            (
                "{\n\t\"a\": [\n\t\t1\n\t]\n}\n",
                json!({"a": [1, 2]}),
                "{\n\t\"a\": [\n\t\t1,\n\t\t2\n\t]\n}\n",
            ),
            (
                "{\r\n  \"a\": []\r\n}",
                json!({"a": [{"b": 1}]}),
                "{\r\n  \"a\": [\r\n    {\r\n      \"b\": 1\r\n    }\r\n  ]\r\n}",
            ),
            ("{ \"a\": [1, 2] }", json!({"a": [2], "b": [3, 4]}), "{ \"a\": [2], \"b\": [3, 4] }"),
            (
                "[\n{\"a\":1},\n{\"a\":2}\n]\n",
                json!([{"a": 1}, {"a": 2}, {"b": [1]}]),
                "[\n{\"a\":1},\n{\"a\":2},\n{\"b\":[1]}\n]\n",
            ),
            ("{\n  \"a\": 1,\n  \"b\": 2\n}", json!({"a": {"c": 1}}), "{\n  \"a\": {\n    \"c\": 1\n  }\n}"),
            (
                " {\"a\":\"\\u0041\\\"]\",\"b\":[ ]} ",
                json!({"a": "A\"]", "b": []}),
                " {\"a\":\"\\u0041\\\"]\",\"b\":[ ]} ",
            ),
            ("[1, 1, 2]", json!([1, 2, 1]), "[1, 2, 1]"),
            ("[1]", json!([]), "[]"),
            ("[]", json!([1, [2]]), "[1,[2]]"),
            ("[\r\n]\r\n", json!([{"a": 1}, 2]), "[\r\n{\"a\":1},\r\n2\r\n]\r\n"),
            ("[\n1,\n  2,\n   3]", json!([1, 3]), "[\n1,\n   3]"),
            ("[\n1,\n  2, 3]", json!([2, 3]), "[\n  2, 3]"),
            ("{\"a\":1,\n  \"b\":2 ,\"c\":3}", json!({"a": 1, "c": 3}), "{\"a\":1 ,\"c\":3}"),
            ("[1, 2,\n 3]", json!([4, 2, 3]), "[4, 2,\n 3]"),
            ("{\n  \"a\": 1\n}", json!(7), "7"),
        ];
        for (before, value, after) in cases {
            let text = over(before, &value);
            assert_eq!(text, after);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }
}
