//! Adds to JSON files, with comments in them or without, and takes away again: as text, so that everything else stays byte for byte.
//!
//! What is added can be told from what was there by the blanks around it: an object or list that is made for it begins with a blank,
//! and one that was there and empty gets it without. So taking it away gives the file as it was before.

use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};

use super::Trouble;
use super::known::ALLOW;
use super::lines::Lines;

/// A value to write, its fields in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Bool(bool),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

/// What is put where.
#[derive(Debug, Clone)]
pub(super) struct Addition {
    /// The fields that lead to the object or list that it is put into.
    pub(super) path: Vec<&'static str>,
    /// What.
    pub(super) what: What,
}

/// What is put into an object or a list.
#[derive(Debug, Clone)]
pub(super) enum What {
    /// An object as a field. One of the same name that we did not write is left alone.
    Entry(&'static str, Vec<(&'static str, Json)>),
    /// An element, known by a text that nobody else's has.
    Element(Json, &'static str),
}

impl Addition {
    /// Returns the file with the addition; `None` stands for no file.
    pub(super) fn add(&self, text: Option<&str>) -> Result<String, Trouble> {
        let whole = self.nested(0);
        let Some(text) = text else {
            return Ok(whole.pretty("", &Lines::default()) + "\n");
        };
        let (mark, text) = marked(text);
        if text.trim().is_empty() {
            return Ok(format!("{mark}{text}{}", whole.pretty("", &Lines::of(text))));
        }
        Ok(format!("{mark}{}", Document::parse(text)?.add(self)?))
    }

    /// Returns the file without the addition, or `None` where nothing is left of it.
    pub(super) fn remove(&self, text: &str) -> Result<Option<String>, Trouble> {
        let (mark, text) = marked(text);
        if text.trim().is_empty() {
            return Ok(Some(format!("{mark}{text}")));
        }
        let left = Document::parse(text)?.remove(self);
        Ok(if mark.is_empty() { left } else { Some(format!("{mark}{}", left.unwrap_or_default())) })
    }

    /// Returns whether the file has it, however it looks.
    pub(super) fn is_in(&self, text: &str) -> bool {
        Document::parse(marked(text).1).is_ok_and(|document| document.find(self).is_some())
    }

    /// Returns whether the file has an entry of that name, or an element with these words, that is not as we write it.
    pub(super) fn is_others(&self, text: &str) -> bool {
        Document::parse(marked(text).1).is_ok_and(|document| document.has_others(self))
    }

    /// Returns the addition within everything that leads to it, from this step of the path on.
    fn nested(&self, from: usize) -> Json {
        let inner = match &self.what {
            What::Entry(name, fields) => Json::Object(vec![(name, Json::Object(fields.clone()))]),
            What::Element(element, _) => Json::List(vec![element.clone()]),
        };
        self.path[from..].iter().rev().fold(inner, |inner, name| Json::Object(vec![(name, inner)]))
    }
}

impl Json {
    /// Returns the value over several lines, of which the first has no indentation.
    fn pretty(&self, indent: &str, lines: &Lines) -> String {
        let deeper = format!("{indent}{}", lines.indent);
        let spread = |open: char, items: Vec<String>, close: char| {
            let items: Vec<String> =
                items.into_iter().map(|item| format!("{}{deeper}{item}", lines.end)).collect();
            format!("{open}{}{}{indent}{close}", items.join(","), lines.end)
        };
        match self {
            Self::Object(fields) => {
                let field =
                    |(name, value): &(&str, Self)| format!("\"{name}\": {}", value.pretty(&deeper, lines));
                spread('{', fields.iter().map(field).collect(), '}')
            }
            Self::List(items) if items.iter().any(|item| matches!(item, Self::Object(_))) => {
                spread('[', items.iter().map(|item| item.pretty(&deeper, lines)).collect(), ']')
            }
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::compact).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Bool(_) | Self::Text(_) => self.compact(),
        }
    }

    /// Returns the value on one line. Blanks inside tell that it was made as a whole.
    fn compact(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Self::List(items) => {
                let has_objects = items.iter().any(|item| matches!(item, Self::Object(_)));
                let items: Vec<String> = items.iter().map(Self::compact).collect();
                let blank = if has_objects { " " } else { "" };
                format!("[{blank}{}{blank}]", items.join(", "))
            }
            Self::Object(fields) => {
                let field = |(name, value): &(&str, Self)| format!("\"{name}\": {}", value.compact());
                format!("{{ {} }}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn to_value(&self) -> serde_json::Value {
        match self {
            Self::Bool(value) => (*value).into(),
            Self::Text(text) => text.as_str().into(),
            Self::List(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(fields) => {
                fields.iter().map(|(name, value)| ((*name).to_owned(), value.to_value())).collect()
            }
        }
    }
}

/// A file that was understood.
struct Document<'t> {
    text: &'t str,
    lines: Lines,
    /// Comments are among them.
    tokens: Vec<TokenAndRange<'t>>,
    root: Object<'t>,
}

/// An object or a list, with the places of what is in it.
struct Container {
    range: Range,
    children: Vec<Range>,
}

impl Container {
    fn of(value: &Value<'_>) -> Option<Self> {
        let range = value.range();
        let children = match value {
            Value::Object(object) => object.properties.iter().map(|field| field.range).collect(),
            Value::Array(array) => array.elements.iter().map(Ranged::range).collect(),
            Value::StringLit(_) | Value::NumberLit(_) | Value::BooleanLit(_) | Value::NullKeyword(_) => {
                return None;
            }
        };
        Some(Self { range, children })
    }

    fn of_object(object: &Object<'_>) -> Self {
        Self { range: object.range, children: object.properties.iter().map(|field| field.range).collect() }
    }
}

impl<'t> Document<'t> {
    fn parse(text: &'t str) -> Result<Self, Trouble> {
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let parsed = parse_to_ast(text, &collect, &options).map_err(|error| Trouble::Syntax {
            line: error.line_display(),
            column: error.column_display(),
            problem: error.kind().to_string(),
        })?;
        let Some(Value::Object(root)) = parsed.value else {
            return Err(Trouble::NoObject { path: String::new() });
        };
        Ok(Self { text, lines: Lines::of(text), tokens: parsed.tokens.unwrap_or_default(), root })
    }

    fn add(&self, addition: &Addition) -> Result<String, Trouble> {
        let mut object = &self.root;
        for (step, name) in addition.path.iter().enumerate() {
            let is_last = step + 1 == addition.path.len();
            let Some(value) = object.get(name).map(|field| &field.value) else {
                let rest = addition.nested(step + 1);
                return Ok(self.insert(&Container::of_object(object), Some(name), &rest));
            };
            match (value, &addition.what) {
                (Value::Object(next), What::Entry(..)) => object = next,
                (Value::Object(next), What::Element(..)) if !is_last => object = next,
                (Value::Array(_), What::Element(element, _)) if is_last => {
                    return match self.find(addition) {
                        Some(_) => Ok(self.text.to_owned()),
                        None => Ok(self.insert(&self.container(value)?, None, element)),
                    };
                }
                _ => return Err(Trouble::NoObject { path: addition.path[..=step].join(".") }),
            }
        }
        match &addition.what {
            What::Entry(name, fields) => self.add_entry(object, name, fields, addition),
            What::Element(..) => Err(Trouble::NoObject { path: addition.path.join(".") }),
        }
    }

    fn container(&self, value: &Value<'_>) -> Result<Container, Trouble> {
        let place =
            || Trouble::NoObject { path: self.text[value.range().start..value.range().end].to_owned() };
        Container::of(value).ok_or_else(place)
    }

    fn add_entry(
        &self,
        object: &Object<'_>,
        name: &'static str,
        fields: &[(&'static str, Json)],
        addition: &Addition,
    ) -> Result<String, Trouble> {
        let Some(field) = object.get(name) else {
            return Ok(self.insert(
                &Container::of_object(object),
                Some(name),
                &Json::Object(fields.to_vec()),
            ));
        };
        let Value::Object(entry) = &field.value else {
            return Err(Trouble::NoObject { path: format!("{}.{name}", addition.path.join(".")) });
        };
        let there = plain(&field.value);
        if fields.iter().all(|(name, wanted)| there.get(name) == Some(&wanted.to_value())) {
            // Whoever wrote it: it starts the same program with the same words.
            return Ok(self.text.to_owned());
        }
        if !is_ours(there, fields) {
            return Err(self.taken(name, field.range.start));
        }
        for (name, wanted) in fields {
            let changed = match entry.get(name) {
                None => self.insert(&Container::of_object(entry), Some(name), wanted),
                Some(field) if self.value_of(field).as_ref() == Some(&wanted.to_value()) => continue,
                Some(field) => {
                    let Range { start, end } = field.value.range();
                    let indent = self.indent_of(field.range.start);
                    splice(self.text, &[(start, end, wanted.pretty(&indent, &self.lines))])
                }
            };
            // The places of what comes after are others now.
            return Document::parse(&changed)?.add(addition);
        }
        Ok(self.text.to_owned())
    }

    fn taken(&self, name: &'static str, at: usize) -> Trouble {
        let before = &self.text[..at];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let (line, column) = (before.matches('\n').count() + 1, before[start..].chars().count() + 1);
        Trouble::Taken { name, line, column }
    }

    /// Returns whether there is an entry of the name of the addition, or an element with its words, that is not as we write it.
    fn has_others(&self, addition: &Addition) -> bool {
        let Some((last, above)) = addition.path.split_last() else { return false };
        let mut object = &self.root;
        for step in above {
            let Some(Value::Object(next)) = object.get(step).map(|field| &field.value) else { return false };
            object = next;
        }
        match (&addition.what, object.get(last).map(|field| &field.value)) {
            (What::Entry(name, fields), Some(Value::Object(object))) => {
                object.get(name).is_some_and(|field| !is_ours(plain(&field.value), fields))
            }
            (What::Element(element, known_by), Some(Value::Array(array))) => {
                let known = self.known_element(array, element, known_by);
                known.is_some_and(|known| plain(&array.elements[known]) != element.to_value())
            }
            (What::Entry(..) | What::Element(..), _) => false,
        }
    }

    /// Returns the place of an element that is as we write it, or else of one that has its words.
    fn known_element(&self, list: &Array<'_>, element: &Json, known_by: &str) -> Option<usize> {
        let ours = element.to_value();
        let has_words = |element: &Value<'_>| {
            let Range { start, end } = element.range();
            self.text[start..end].contains(known_by)
        };
        let is_ours = list.elements.iter().position(|element| plain(element) == ours);
        is_ours.or_else(|| list.elements.iter().position(has_words))
    }

    fn value_of(&self, field: &ObjectProp<'_>) -> Option<serde_json::Value> {
        let Range { start, end } = field.value.range();
        serde_json::from_str(&self.text[start..end]).ok()
    }

    /// Puts something at the end of an object or list.
    fn insert(&self, into: &Container, name: Option<&str>, value: &Json) -> String {
        let named = |value: String| name.map_or_else(|| value.clone(), |name| format!("\"{name}\": {value}"));
        let Some(last) = into.children.last() else {
            let at = into.range.start + 1;
            return splice(self.text, &[(at, at, named(value.compact()))]);
        };
        let comma = self.next_token(last.end).filter(|token| token.token == Token::Comma);
        let end = comma.map_or(last.end, |comma| comma.range.end);
        let (before, after) = if comma.is_some() { ("", ",") } else { (",", "") };
        if !self.text[into.range.start..into.range.end].contains('\n') {
            let blank = format!("{before} {}{after}", named(value.compact()));
            return splice(self.text, &[(end, end, blank)]);
        }
        let indent = self.indent_of(last.start);
        // Behind what is remarked on the last one.
        let place = self.last_token_before(into.range.end - 1).max(end);
        let line = format!("{}{indent}{}{after}", self.lines.end, named(value.pretty(&indent, &self.lines)));
        splice(self.text, &[(last.end, last.end, before.to_owned()), (place, place, line)])
    }

    fn remove(&self, addition: &Addition) -> Option<String> {
        let Some(mut found) = self.find(addition).filter(|_| !self.has_others(addition)) else {
            return Some(self.text.to_owned());
        };
        loop {
            let (container, child) = found.pop().expect("BUG: something is found in something");
            let is_made = container.children.len() == 1 && self.is_made_for(&container, child);
            if !is_made {
                return Some(self.without(&container, child));
            }
            if found.is_empty() {
                return self.emptied(container.range);
            }
        }
    }

    /// Returns what is left when nothing is left of the root.
    fn emptied(&self, Range { start, end }: Range) -> Option<String> {
        let rest = splice(self.text, &[(start, end, String::new())]);
        if start == 0 && rest == "\n" {
            None
        } else if rest.trim().is_empty() {
            Some(rest)
        } else {
            // A remark alone is no JSON.
            Some(splice(self.text, &[(start + 1, end - 1, String::new())]))
        }
    }

    /// Returns whether an object or list was made for the only thing in it.
    fn is_made_for(&self, container: &Container, child: usize) -> bool {
        let Range { start, end } = container.children[child];
        let before = &self.text[container.range.start + 1..start];
        let after = self.text[end..container.range.end - 1].trim_start_matches(',');
        !before.is_empty() && before.trim().is_empty() && after.trim().is_empty()
    }

    /// Takes something out of an object or list, with its comma.
    fn without(&self, container: &Container, child: usize) -> String {
        let Range { start, end } = container.children[child];
        let before = self.last_token_before(start);
        let comma = self.next_token(end).filter(|token| token.token == Token::Comma);
        if let Some(comma) = comma {
            let from = if container.children.len() == 1 { start } else { before };
            return splice(self.text, &[(from, comma.range.end, String::new())]);
        }
        if child == 0 {
            return splice(self.text, &[(start, end, String::new())]);
        }
        let earlier = container.children[child - 1].end;
        let comma = self.next_token(earlier).map_or(earlier, |comma| comma.range.end);
        let from = before.max(comma);
        splice(self.text, &[(comma - 1, comma, String::new()), (from, end, String::new())])
    }

    /// Returns the way to the addition: each object or list, and which of its children is next.
    fn find(&self, addition: &Addition) -> Option<Vec<(Container, usize)>> {
        let mut way = Vec::new();
        let mut object = &self.root;
        let mut list = None;
        for name in &addition.path {
            let child = object.properties.iter().position(|field| field.name.as_str() == *name)?;
            way.push((Container::of_object(object), child));
            let value = &object.properties[child].value;
            if let Value::Object(next) = value {
                object = next;
            } else {
                list = Some(value);
            }
        }
        match (&addition.what, list) {
            (What::Entry(name, _), None) => {
                let child = object.properties.iter().position(|field| field.name.as_str() == *name)?;
                way.push((Container::of_object(object), child));
            }
            (What::Element(element, known_by), Some(list)) => {
                let Value::Array(array) = list else { return None };
                way.push((Container::of(list)?, self.known_element(array, element, known_by)?));
            }
            (What::Entry(..), Some(_)) | (What::Element(..), None) => return None,
        }
        Some(way)
    }

    /// Returns the first token from `position` on that is no comment.
    fn next_token(&self, position: usize) -> Option<&TokenAndRange<'t>> {
        let is_comment = |token: &Token<'_>| matches!(token, Token::CommentLine(_) | Token::CommentBlock(_));
        let mut tokens = self.tokens.iter().filter(|token| !is_comment(&token.token));
        tokens.find(|token| token.range.start >= position)
    }

    /// Returns where the last token or comment ends before `position`.
    fn last_token_before(&self, position: usize) -> usize {
        let ends = self.tokens.iter().map(|token| token.range.end);
        ends.take_while(|end| *end <= position).last().unwrap_or_default()
    }

    /// Returns what stands before `position` in its line, if that is blank.
    fn indent_of(&self, position: usize) -> String {
        let start = self.text[..position].rfind('\n').map_or(0, |end| end + 1);
        let line = &self.text[start..position];
        let blank = line.len() - line.trim_start().len();
        line[..blank].to_owned()
    }
}

/// Returns whether an entry has exactly the fields that we write, whatever was asked for then.
fn is_ours(there: serde_json::Value, fields: &[(&'static str, Json)]) -> bool {
    without_wishes(there) == without_wishes(Json::Object(fields.to_vec()).to_value())
}

/// Takes the words out of lists that are there or not, as it was asked for.
fn without_wishes(mut entry: serde_json::Value) -> serde_json::Value {
    let fields = entry.as_object_mut().into_iter().flat_map(|fields| fields.values_mut());
    for list in fields.filter_map(serde_json::Value::as_array_mut) {
        let at = list.windows(ALLOW.len()).position(|words| words.iter().eq(&ALLOW));
        if let Some(at) = at {
            list.drain(at..at + ALLOW.len());
        }
    }
    entry
}

/// Returns a value without its comments.
fn plain(value: &Value<'_>) -> serde_json::Value {
    match value {
        Value::StringLit(text) => text.value.as_ref().into(),
        Value::NumberLit(number) => serde_json::from_str(number.value).unwrap_or_default(),
        Value::BooleanLit(value) => value.value.into(),
        Value::NullKeyword(_) => serde_json::Value::Null,
        Value::Array(array) => array.elements.iter().map(plain).collect(),
        Value::Object(object) => {
            let field = |field: &ObjectProp<'_>| (field.name.as_str().to_owned(), plain(&field.value));
            object.properties.iter().map(field).collect()
        }
    }
}

/// Parts a text from the mark of its encoding, which some editors put before it.
fn marked(text: &str) -> (&str, &str) {
    let length = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    text.split_at(length)
}

/// Returns the text with pieces replaced; they stand in order.
fn splice(text: &str, pieces: &[(usize, usize, String)]) -> String {
    let (mut result, mut at) = (String::with_capacity(text.len()), 0);
    for (start, end, new) in pieces {
        result.push_str(&text[at..*start]);
        result.push_str(new);
        at = *end;
    }
    result.push_str(&text[at..]);
    result
}
