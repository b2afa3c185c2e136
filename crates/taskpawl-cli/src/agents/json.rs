//! Adds to JSON files, with comments in them or without, and takes away again: as text, so that everything else stays byte for byte.
//!
//! What is added can be told from what was there by the blanks around it: an object or list that is made for it begins with a blank,
//! and one that was there and empty gets it without. So taking it away gives the file as it was before.

use std::ops::Range;

use taskpawl_formats::json_text::ast::{Array, Object, Value};
use taskpawl_formats::json_text::{Container, Document, Json, Style, span, splice, to_value};

use super::Trouble;
use super::known::ALLOW;

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
            return Ok(Style::by_hand("").print(&whole, Some("")) + "\n");
        };
        let (mark, text) = marked(text);
        if text.trim().is_empty() {
            return Ok(format!("{mark}{text}{}", Style::by_hand(text).print(&whole, Some(""))));
        }
        Ok(format!("{mark}{}", Edited::parse(text)?.add(self)?))
    }

    /// Returns the file without the addition, or `None` where nothing is left of it.
    pub(super) fn remove(&self, text: &str) -> Result<Option<String>, Trouble> {
        let (mark, text) = marked(text);
        if text.trim().is_empty() {
            return Ok(Some(format!("{mark}{text}")));
        }
        let left = Edited::parse(text)?.remove(self);
        Ok(if mark.is_empty() { left } else { Some(format!("{mark}{}", left.unwrap_or_default())) })
    }

    /// Returns whether the file has it, however it looks.
    pub(super) fn is_in(&self, text: &str) -> bool {
        Edited::parse(marked(text).1).is_ok_and(|document| document.find(self).is_some())
    }

    /// Returns whether the file has an entry of that name, or an element with these words, that is not as we write it.
    pub(super) fn is_others(&self, text: &str) -> bool {
        Edited::parse(marked(text).1).is_ok_and(|document| document.has_others(self))
    }

    /// Returns the addition within everything that leads to it, from this step of the path on.
    fn nested(&self, from: usize) -> Json {
        let inner = match &self.what {
            What::Entry(name, fields) => Json::object([(*name, Json::object(fields.iter().cloned()))]),
            What::Element(element, _) => Json::List(vec![element.clone()]),
        };
        self.path[from..].iter().rev().fold(inner, |inner, name| Json::object([(*name, inner)]))
    }
}

/// A parsed file with an object at its root.
struct Edited<'t> {
    document: Document<'t>,
    text: &'t str,
}

impl<'t> Edited<'t> {
    fn parse(text: &'t str) -> Result<Self, Trouble> {
        let document = Document::parse(text).map_err(|error| Trouble::Syntax {
            line: error.line,
            column: error.column,
            problem: error.problem,
        })?;
        if !matches!(document.root(), Some(Value::Object(_))) {
            return Err(Trouble::NoObject { path: String::new() });
        }
        Ok(Self { document: document.with_style(Style::by_hand(text)), text })
    }

    fn root(&self) -> &Object<'t> {
        self.document.root().and_then(Value::as_object).expect("BUG: the root is checked to be an object")
    }

    fn add(&self, addition: &Addition) -> Result<String, Trouble> {
        let mut object = self.root();
        for (step, name) in addition.path.iter().enumerate() {
            let is_last = step + 1 == addition.path.len();
            let Some(value) = object.get(name).map(|field| &field.value) else {
                let rest = addition.nested(step + 1);
                return Ok(self.document.insert(&Container::of_object(object), Some(name), &rest));
            };
            match (value, &addition.what) {
                (Value::Object(next), What::Entry(..)) => object = next,
                (Value::Object(next), What::Element(..)) if !is_last => object = next,
                (Value::Array(_), What::Element(element, _)) if is_last => {
                    return match self.find(addition) {
                        Some(_) => Ok(self.text.to_owned()),
                        None => Ok(self.document.insert(&self.container(value)?, None, element)),
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
        Container::of(value).ok_or_else(|| Trouble::NoObject { path: self.text[span(value)].to_owned() })
    }

    fn add_entry(
        &self,
        object: &Object<'_>,
        name: &'static str,
        fields: &[(&'static str, Json)],
        addition: &Addition,
    ) -> Result<String, Trouble> {
        let Some(field) = object.get(name) else {
            return Ok(self.document.insert(
                &Container::of_object(object),
                Some(name),
                &Json::object(fields.iter().cloned()),
            ));
        };
        let Value::Object(entry) = &field.value else {
            return Err(Trouble::NoObject { path: format!("{}.{name}", addition.path.join(".")) });
        };
        let there = to_value(&field.value);
        if fields.iter().all(|(name, wanted)| there.get(name) == Some(&wanted.to_value())) {
            // Whoever wrote it: it starts the same program with the same words.
            return Ok(self.text.to_owned());
        }
        if !is_ours(there, fields) {
            return Err(self.taken(name, span(field).start));
        }
        for (name, wanted) in fields {
            let changed = match entry.get(name) {
                None => self.document.insert(&Container::of_object(entry), Some(name), wanted),
                Some(field) if to_value(&field.value) == wanted.to_value() => continue,
                Some(field) => self.document.replace(field, wanted),
            };
            // The places of what comes after are others now.
            return Edited::parse(&changed)?.add(addition);
        }
        Ok(self.text.to_owned())
    }

    fn taken(&self, name: &'static str, at: usize) -> Trouble {
        let (line, column) = self.document.line_and_column(at);
        Trouble::Taken { name, line, column }
    }

    /// Returns whether there is an entry of the name of the addition, or an element with its words, that is not as we write it.
    fn has_others(&self, addition: &Addition) -> bool {
        let Some((last, above)) = addition.path.split_last() else { return false };
        let mut object = self.root();
        for step in above {
            let Some(Value::Object(next)) = object.get(step).map(|field| &field.value) else { return false };
            object = next;
        }
        match (&addition.what, object.get(last).map(|field| &field.value)) {
            (What::Entry(name, fields), Some(Value::Object(object))) => {
                object.get(name).is_some_and(|field| !is_ours(to_value(&field.value), fields))
            }
            (What::Element(element, known_by), Some(Value::Array(array))) => {
                let known = self.known_element(array, element, known_by);
                known.is_some_and(|known| to_value(&array.elements[known]) != element.to_value())
            }
            (What::Entry(..) | What::Element(..), _) => false,
        }
    }

    /// Returns the place of an element that is as we write it, or else of one that has its words.
    fn known_element(&self, list: &Array<'_>, element: &Json, known_by: &str) -> Option<usize> {
        let ours = element.to_value();
        let has_words = |element: &Value<'_>| self.text[span(element)].contains(known_by);
        let is_ours = list.elements.iter().position(|element| to_value(element) == ours);
        is_ours.or_else(|| list.elements.iter().position(has_words))
    }

    fn remove(&self, addition: &Addition) -> Option<String> {
        let Some(mut found) = self.find(addition).filter(|_| !self.has_others(addition)) else {
            return Some(self.text.to_owned());
        };
        loop {
            let (container, child) = found.pop().expect("BUG: something is found in something");
            let is_made = container.children.len() == 1 && self.is_made_for(&container, child);
            if !is_made {
                return Some(self.document.remove(&container, child));
            }
            if found.is_empty() {
                return self.emptied(container.range);
            }
        }
    }

    /// Returns what is left when nothing is left of the root.
    fn emptied(&self, Range { start, end }: Range<usize>) -> Option<String> {
        let rest = splice(self.text, &[(start..end, String::new())]);
        if start == 0 && rest == "\n" {
            None
        } else if rest.trim().is_empty() {
            Some(rest)
        } else {
            // A remark alone is no JSON.
            Some(splice(self.text, &[(start + 1..end - 1, String::new())]))
        }
    }

    /// Returns whether an object or list was made for the only thing in it.
    fn is_made_for(&self, container: &Container, child: usize) -> bool {
        let Range { start, end } = container.children[child].clone();
        let before = &self.text[container.range.start + 1..start];
        let after = self.text[end..container.range.end - 1].trim_start_matches(',');
        !before.is_empty() && before.trim().is_empty() && after.trim().is_empty()
    }

    /// Returns the way to the addition: each object or list, and which of its children is next.
    fn find(&self, addition: &Addition) -> Option<Vec<(Container, usize)>> {
        let mut way = Vec::new();
        let mut object = self.root();
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
}

/// Returns whether an entry has exactly the fields that we write, whatever was asked for then.
fn is_ours(there: serde_json::Value, fields: &[(&'static str, Json)]) -> bool {
    without_wishes(there) == without_wishes(Json::object(fields.iter().cloned()).to_value())
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

/// Parts a text from the mark of its encoding, which some editors put before it.
fn marked(text: &str) -> (&str, &str) {
    let length = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    text.split_at(length)
}
