//! Access to the arguments of a call, which may be anything. `null` counts as absent.

use serde_json::{Map, Value};

/// Names under which models give the text of an item.
const TEXTS: [&str; 6] = ["title", "content", "text", "name", "subject", "step"];

/// Arguments of a call; without any if the value is not an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Args<'a>(Option<&'a Map<String, Value>>);

impl<'a> Args<'a> {
    pub(crate) fn of(value: &'a Value) -> Self {
        Self(value.as_object())
    }

    /// Returns an argument, or `None` if it is absent or `null`.
    pub(crate) fn get(self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    /// Returns the names that are not among the known ones, without those that are `null`.
    pub(crate) fn unknown(self, known: &[&str]) -> impl Iterator<Item = &'a str> {
        let given = self.0.into_iter().flatten().filter(|(_, value)| !value.is_null());
        given.map(|(name, _)| name.as_str()).filter(|name| !known.contains(name))
    }

    /// Returns a list under an unknown name, or an object, which may hold one. A list that is not found where it is looked
    /// for must not count as none.
    pub(crate) fn unknown_list(self, known: &[&str]) -> Option<&'a str> {
        let is_list = |name: &&str| match self.get(name) {
            Some(Value::Array(_) | Value::Object(_)) => true,
            Some(Value::String(text)) => text.trim_start().starts_with(['[', '{']),
            Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => false,
        };
        self.unknown(known).find(is_list)
    }

    /// Returns a string argument; a value of another type counts as absent.
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str()
    }

    /// Returns a string argument that contains more than white space.
    pub(crate) fn filled(self, name: &str) -> Option<&'a str> {
        self.text(name).filter(|text| !text.trim().is_empty())
    }

    /// Returns the text of an item.
    ///
    /// # Errors
    /// It is missing, with the field to rename if the item has it under another name.
    pub(crate) fn text_of_item(self, field: &str, problem: &str) -> Result<&'a str, String> {
        self.filled(field).ok_or_else(|| match TEXTS.iter().find(|name| self.filled(name).is_some()) {
            Some(other) => format!("{problem}: rename `{other}` to `{field}`"),
            None => format!("{problem}: give a short text"),
        })
    }
}
