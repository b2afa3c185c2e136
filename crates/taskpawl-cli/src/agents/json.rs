//! Additions to JSON files, with or without comments, and their removal. The text is edited, so that everything else
//! stays byte for byte.
//!
//! White space tells an added container from an existing one. A container that is created for the addition starts
//! with white space; an existing empty one gets the addition without it. Removal can thus restore the original file.

use std::ops::Range;

use taskpawl_formats::json_text::ast::{Array, Object, Value};
use taskpawl_formats::json_text::{Container, Document, Json, Style, span, splice, to_value};

use super::known::ALLOW;
use super::trouble::Trouble;

/// A value and its path in the file.
#[derive(Debug, Clone)]
pub(super) struct Addition {
    /// The fields that lead to the object or list which receives the value.
    pub(super) path: Vec<&'static str>,
    /// The value.
    pub(super) what: What,
}

/// A value in an object or in a list.
#[derive(Debug, Clone)]
pub(super) enum What {
    /// An object as a field. A field of the same name that taskpawl did not write stays untouched.
    Entry(&'static str, Vec<(&'static str, Json)>),
    /// An element of a list, with a text that identifies it.
    Element(Json, &'static str),
}

impl Addition {
    /// Returns the file with the addition. `None` stands for a missing file.
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

    /// Returns the file without the addition, or `None` if nothing else is left in it.
    pub(super) fn remove(&self, text: &str) -> Result<Option<String>, Trouble> {
        let (mark, text) = marked(text);
        if text.trim().is_empty() {
            return Ok(Some(format!("{mark}{text}")));
        }
        let left = Edited::parse(text)?.remove(self);
        Ok(if mark.is_empty() { left } else { Some(format!("{mark}{}", left.unwrap_or_default())) })
    }

    /// Returns whether the file has the addition, even with changed fields.
    pub(super) fn is_in(&self, text: &str) -> bool {
        Edited::parse(marked(text).1).is_ok_and(|document| document.find(self).is_some())
    }

    /// Returns whether the file has a field of this name, or an element with this text, that differs from the
    /// addition.
    pub(super) fn is_others(&self, text: &str) -> bool {
        Edited::parse(marked(text).1).is_ok_and(|document| document.has_others(self))
    }

    /// Returns the addition nested in the fields of its path, starting at `from`.
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
            // An entry that starts the same program with the same arguments is enough, even if a person wrote it.
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
            // The edit has moved all later offsets, so the text is parsed again.
            return Edited::parse(&changed)?.add(addition);
        }
        Ok(self.text.to_owned())
    }

    fn taken(&self, name: &'static str, at: usize) -> Trouble {
        let (line, column) = self.document.line_and_column(at);
        Trouble::Taken { name, line, column }
    }

    /// Returns whether a field of this name, or an element with this text, differs from the addition.
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

    /// Returns the position of an equal element, or else of one with the identifying text.
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
            // Containers that were created for the addition go with it, from the inside out.
            if !is_made {
                return Some(self.document.remove(&container, child));
            }
            if found.is_empty() {
                return self.emptied(container.range);
            }
        }
    }

    /// Returns the rest of the file without its root object, or `None` if that is empty.
    fn emptied(&self, Range { start, end }: Range<usize>) -> Option<String> {
        let rest = splice(self.text, &[(start..end, String::new())]);
        if start == 0 && rest == "\n" {
            None
        } else if rest.trim().is_empty() {
            Some(rest)
        } else {
            // A file of comments alone is not valid JSON, so an empty object stays.
            Some(splice(self.text, &[(start + 1..end - 1, String::new())]))
        }
    }

    /// Returns whether a container was created for its only child. White space before the child shows it.
    fn is_made_for(&self, container: &Container, child: usize) -> bool {
        let Range { start, end } = container.children[child].clone();
        let before = &self.text[container.range.start + 1..start];
        let after = self.text[end..container.range.end - 1].trim_start_matches(',');
        !before.is_empty() && before.trim().is_empty() && after.trim().is_empty()
    }

    /// Returns the containers on the path to the addition, each with the position of the next child.
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

/// Returns whether an entry has exactly the fields that taskpawl writes, with or without the optional arguments.
fn is_ours(there: serde_json::Value, fields: &[(&'static str, Json)]) -> bool {
    without_wishes(there) == without_wishes(Json::object(fields.iter().cloned()).to_value())
}

/// Removes the optional arguments from the lists of an entry.
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

/// Splits off the byte order mark, which some editors write.
fn marked(text: &str) -> (&str, &str) {
    let length = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    text.split_at(length)
}
