//! Rewrites a JSON text for a new value: equal parts keep their bytes, new parts look like their neighbours.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use jsonc_parser::ast::{Array, Object, Value as Node};
use serde_json::{Map, Value};

use super::{Document, Json, Style, indent_at, span};

/// Keys that identify an object in a list. `uuid` comes first, because Taskwarrior gives every finished task the `id` 0.
const IDENTITY_KEYS: &[&str] = &["uuid", "id"];

/// Returns `text` with its value replaced. A text that is not JSON is replaced as a whole.
pub(crate) fn over(text: &str, value: &Value) -> String {
    // `serde_json` goes first: it refuses comments, and bounds the nesting before anything here recurses.
    let before = serde_json::from_str::<Value>(text).ok();
    let document = before.as_ref().and_then(|_| Document::parse(text).ok());
    let root = document.as_ref().and_then(|document| Some((document, document.root()?)));
    let Some((before, (document, root))) = before.zip(root) else { return pretty(value) + "\n" };
    let range = span(root);
    let inside = document.put(root, &before, value, document.is_multiline(&range));
    format!("{}{inside}{}", &text[..range.start], &text[range.end..])
}

/// Returns a value over several lines, as in a new file.
pub(crate) fn pretty(value: &Value) -> String {
    Style::default().print(&Json::from(value), Some(""))
}

/// An element of a list or a field of an object, as it is written.
struct Part {
    /// Its index in the text before the change; `None` for a new part.
    before: Option<usize>,
    text: String,
}

/// Text around the parts of a list or an object.
struct Frame {
    begin: String,
    between: String,
    end: String,
    is_multiline: bool,
}

impl Document<'_> {
    /// Returns the text for `value` in place of `node`. `is_multiline` tells whether the container of `node` has several lines.
    fn put(&self, node: &Node<'_>, before: &Value, value: &Value, is_multiline: bool) -> String {
        if before == value {
            return self.text[span(node)].to_owned();
        }
        match (node, before, value) {
            (Node::Object(object), Value::Object(before), Value::Object(value)) => {
                self.put_object(object, (before, value), is_multiline)
            }
            (Node::Array(array), Value::Array(before), Value::Array(value)) => {
                self.put_list(array, (before, value), is_multiline)
            }
            _ => {
                // The indentation of the line, not of the node: the node may follow a key on the same line.
                let indent = indent_at(self.text, span(node).start);
                self.fresh(value, (is_multiline && !self.style.indent.is_empty()).then_some(indent))
            }
        }
    }

    fn put_object(
        &self,
        object: &Object<'_>,
        (before, value): (&Map<String, Value>, &Map<String, Value>),
        is_multiline: bool,
    ) -> String {
        let fields = &object.properties;
        let spans: Vec<Range<usize>> = fields.iter().map(span).collect();
        let frame = self.frame(&span(object), &spans, is_multiline);
        let named = fields.iter().enumerate().map(|(index, field)| (field.name.as_str(), index));
        let mut last: BTreeMap<&str, usize> = named.collect();
        let mut parts = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            // A key that is given twice stays at its first position, with its last value.
            let Some(counts) = last.remove(field.name.as_str()) else { continue };
            let (Some(now), counts) = (value.get(field.name.as_str()), &fields[counts].value) else {
                continue;
            };
            let was = before.get(field.name.as_str()).unwrap_or(&Value::Null);
            // The text of the key is copied up to its value, so that escapes in it and blanks around the colon stay.
            let key = &self.text[spans[index].start..span(&field.value).start];
            let text = format!("{key}{}", self.put(counts, was, now, frame.is_multiline));
            parts.push(Part { before: Some(index), text });
        }
        let colon = fields.first().map(|field| &self.text[span(&field.name).end..span(&field.value).start]);
        let colon = colon.unwrap_or(self.style.colon());
        let indent = self.indent_inside(&frame, fields.iter().map(|field| &field.value));
        for (name, value) in value.iter().filter(|(name, _)| !before.contains_key(*name)) {
            let text = format!("{}{colon}{}", Value::from(name.as_str()), self.fresh(value, indent));
            parts.push(Part { before: None, text });
        }
        self.joined(&span(object), &spans, &frame, &parts)
    }

    fn put_list(
        &self,
        array: &Array<'_>,
        (before, value): (&[Value], &[Value]),
        is_multiline: bool,
    ) -> String {
        let spans: Vec<Range<usize>> = array.elements.iter().map(span).collect();
        let frame = self.frame(&span(array), &spans, is_multiline);
        let indent = self.indent_inside(&frame, array.elements.iter());
        let mut matches = Matches::of(before);
        let mut parts = Vec::new();
        for (index, value) in value.iter().enumerate() {
            let found = matches.take(index, value);
            let text = match found {
                Some(found) => self.put(&array.elements[found], &before[found], value, frame.is_multiline),
                None => self.fresh(value, indent),
            };
            parts.push(Part { before: found, text });
        }
        self.joined(&span(array), &spans, &frame, &parts)
    }

    fn joined(
        &self,
        container: &Range<usize>,
        spans: &[Range<usize>],
        frame: &Frame,
        parts: &[Part],
    ) -> String {
        let mut out = self.text[container.start..=container.start].to_owned();
        for (number, part) in parts.iter().enumerate() {
            // The gap before a part stays before it, even if another part precedes it now.
            let index = part.before.filter(|index| *index > 0);
            let gap = index.map(|index| &self.text[spans[index - 1].end..spans[index].start]);
            match gap {
                Some(gap) if number > 0 => out.push_str(gap),
                // This part moved to the front: its line break stays, but the comma before it would be a syntax error.
                Some(gap) if gap.contains('\n') => out.push_str(&gap.replacen(',', "", 1)),
                _ => out.push_str(if number == 0 { &frame.begin } else { &frame.between }),
            }
            out.push_str(&part.text);
        }
        if !parts.is_empty() {
            out.push_str(&frame.end);
        }
        out + &self.text[container.end - 1..container.end]
    }

    /// Returns the text around the parts of the list or object at `container`.
    fn frame(&self, container: &Range<usize>, spans: &[Range<usize>], is_multiline: bool) -> Frame {
        let comma = self.style.comma();
        let Some((first, last)) = spans.first().zip(spans.last()) else {
            // An empty container is filled over several lines if it has them, or if its own container has.
            if !self.is_multiline(container) && (!is_multiline || self.style.indent.is_empty()) {
                let (begin, end) = (String::new(), String::new());
                return Frame { begin, between: comma.to_owned(), end, is_multiline: false };
            }
            let indent = indent_at(self.text, container.start);
            let begin = format!("{}{indent}{}", self.style.end, self.style.indent);
            let (between, end) = (format!(",{begin}"), format!("{}{indent}", self.style.end));
            return Frame { begin, between, end, is_multiline: true };
        };
        let begin = self.text[container.start + 1..first.start].to_owned();
        let between = match spans.get(1) {
            Some(second) => self.text[first.end..second.start].to_owned(),
            None if begin.trim_start_matches(' ').is_empty() => comma.to_owned(),
            None => format!(",{begin}"),
        };
        let end = self.text[last.end..container.end - 1].to_owned();
        Frame { begin, between, end, is_multiline: self.is_multiline(container) }
    }

    fn is_multiline(&self, range: &Range<usize>) -> bool {
        self.text[range.clone()].contains('\n')
    }

    /// Returns the indentation of a new part, or `None` if it goes on one line, as its neighbours do.
    fn indent_inside<'f, 'n>(
        &self,
        frame: &'f Frame,
        mut neighbours: impl Iterator<Item = &'n Node<'n>>,
    ) -> Option<&'f str> {
        let is_filled = |node: &&Node<'_>| {
            node.as_array().is_some_and(|array| !array.elements.is_empty())
                || node.as_object().is_some_and(|object| !object.properties.is_empty())
        };
        let sample = neighbours.find(is_filled);
        let is_multiline = sample.map_or(frame.is_multiline, |node| self.is_multiline(&span(node)));
        // Without a line break between the parts there is no indentation to copy: the new part goes on the same line.
        let (_, indent) = frame.between.rsplit_once('\n')?;
        (is_multiline && !self.style.indent.is_empty()).then_some(indent)
    }

    fn fresh(&self, value: &Value, indent: Option<&str>) -> String {
        self.style.print(&Json::from(value), indent)
    }
}

/// Pairs the elements of a new list with those of the previous list, each at most once.
struct Matches<'v> {
    before: &'v [Value],
    by_identity: BTreeMap<String, VecDeque<usize>>,
    /// Elements without an identity, by their text.
    by_text: BTreeMap<String, VecDeque<usize>>,
    is_taken: Vec<bool>,
}

impl<'v> Matches<'v> {
    fn of(before: &'v [Value]) -> Self {
        let (mut by_identity, mut by_text) = (BTreeMap::new(), BTreeMap::new());
        for (index, value) in before.iter().enumerate() {
            let (map, key) = match identity(value) {
                Some(identity) => (&mut by_identity, identity),
                None => (&mut by_text, value.to_string()),
            };
            map.entry(key).or_insert_with(VecDeque::new).push_back(index);
        }
        Self { before, by_identity, by_text, is_taken: vec![false; before.len()] }
    }

    /// Returns the index of the previous element with the same identity. An element without identity is paired with an equal element, or
    /// else with the object at the same index.
    fn take(&mut self, index: usize, value: &Value) -> Option<usize> {
        let found = match identity(value) {
            Some(identity) => self.by_identity.get_mut(&identity).and_then(VecDeque::pop_front),
            None => self.take_equal(index, value),
        };
        if let Some(found) = found {
            self.is_taken[found] = true;
        }
        found
    }

    fn take_equal(&mut self, index: usize, value: &Value) -> Option<usize> {
        let is_taken = &self.is_taken;
        let is_free = |index: &usize| is_taken.get(*index) == Some(&false);
        if is_free(&index) && self.before[index] == *value {
            return Some(index);
        }
        // Elements that were paired by their index are still in the queue.
        let queue = self.by_text.get_mut(&value.to_string());
        let equal = queue.and_then(|queue| std::iter::from_fn(|| queue.pop_front()).find(is_free));
        let is_alike = |index: &usize| is_free(index) && self.before[*index].is_object();
        equal.or_else(|| Some(index).filter(|_| value.is_object()).filter(is_alike))
    }
}

fn identity(value: &Value) -> Option<String> {
    IDENTITY_KEYS.iter().find_map(|key| match value.get(key)? {
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
    fn fields_keep_their_order_and_new_ones_follow() {
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
    fn new_parts_are_laid_out_like_their_neighbours() {
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
            (
                r#"[{"a":"\"b\": 1"}]"#,
                json!([{"a": "\"b\": 1"}, {"c": 1, "d": 2}]),
                r#"[{"a":"\"b\": 1"},{"c":1,"d":2}]"#,
            ),
            ("[\"\\ud83d\\ude00\", 1]", json!(["😀", 2]), "[\"\\ud83d\\ude00\", 2]"),
            ("{\"a\":1e3,\"b\":-0.10}", json!({"a": 1000.0, "b": 1}), "{\"a\":1e3,\"b\":1}"),
        ];
        for (before, value, after) in cases {
            let text = over(before, &value);
            assert_eq!(text, after);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }

    #[test]
    fn deep_nesting_is_replaced_without_recursion() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(over(&deep, &json!([1])), "[\n  1\n]\n");
    }
}
