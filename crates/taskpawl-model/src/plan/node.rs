//! A parsed text as a tree, with the position of every value and key.

use std::borrow::Cow;

use serde_json::{Number, Value};

use crate::value::Map;
use taskpawl_json::Position;

/// The maximum nesting of lists and objects in a text. Recursive code cannot exhaust the stack below it.
pub(super) const MAX_DEPTH: usize = 256;

/// The maximum nesting of a free value, such as arguments. JSON readers stop at 128 levels, and stored records wrap
/// such a value in a few more.
pub(super) const MAX_VALUE_DEPTH: usize = 64;

/// A value with its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node<'a> {
    pub(super) at: Position,
    pub(super) content: Content<'a>,
}

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Vec<Entry<'a>>),
}

/// A field of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry<'a> {
    pub(super) key: Cow<'a, str>,
    pub(super) key_at: Position,
    pub(super) value: Node<'a>,
}

impl<'a> Node<'a> {
    /// Converts a JSON value; `None` if it is more than [`MAX_DEPTH`] deep.
    pub(super) fn from_json(value: &'a Value, depth: usize) -> Option<Self> {
        let next = depth + 1;
        if next > MAX_DEPTH {
            return None;
        }
        let content = match value {
            Value::Null => Content::Null,
            Value::Bool(value) => Content::Bool(*value),
            Value::Number(number) => Content::Number(number.clone()),
            Value::String(text) => Content::Text(Cow::Borrowed(text)),
            Value::Array(items) => {
                Content::List(items.iter().map(|item| Self::from_json(item, next)).collect::<Option<_>>()?)
            }
            Value::Object(fields) => Content::Object(Self::entries_of(fields, next)?),
        };
        Some(Self { at: Position::default(), content })
    }

    /// Converts the fields of a JSON object.
    pub(super) fn entries_of(fields: &'a Map, depth: usize) -> Option<Vec<Entry<'a>>> {
        let entry = |(key, value): (&'a String, &'a Value)| {
            let value = Self::from_json(value, depth)?;
            Some(Entry { key: Cow::Borrowed(key.as_str()), key_at: Position::default(), value })
        };
        fields.iter().map(entry).collect()
    }

    /// Converts to a JSON value; `None` if lists and objects are nested more than `levels` deep.
    pub(super) fn to_json(&self, levels: usize) -> Option<Value> {
        Some(match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(*value),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) => Value::String(text.clone().into_owned()),
            Content::List(items) => {
                let below = levels.checked_sub(1)?;
                Value::Array(items.iter().map(|item| item.to_json(below)).collect::<Option<_>>()?)
            }
            Content::Object(entries) => {
                let below = levels.checked_sub(1)?;
                let field =
                    |entry: &Entry| Some((entry.key.clone().into_owned(), entry.value.to_json(below)?));
                Value::Object(entries.iter().map(field).collect::<Option<_>>()?)
            }
        })
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        if let Content::Text(text) = &self.content { Some(text) } else { None }
    }

    pub(super) fn as_number(&self) -> Option<&Number> {
        if let Content::Number(number) = &self.content { Some(number) } else { None }
    }

    pub(super) fn as_list(&self) -> Option<&[Self]> {
        if let Content::List(items) = &self.content { Some(items) } else { None }
    }

    pub(super) fn as_object(&self) -> Option<&[Entry<'a>]> {
        if let Content::Object(entries) = &self.content { Some(entries) } else { None }
    }

    pub(super) fn is_null(&self) -> bool {
        self.content == Content::Null
    }

    /// Describes the value for error messages.
    pub(super) fn describe(&self) -> String {
        match &self.content {
            Content::Null => "nothing".to_owned(),
            Content::Bool(value) => format!("`{value}`"),
            Content::Number(number) => format!("number `{number}`"),
            Content::Text(text) => format!("text `{}`", shortened(text)),
            Content::List(_) => "a list".to_owned(),
            Content::Object(_) => "an object".to_owned(),
        }
    }
}

pub(crate) use taskpawl_json::shortened;

/// Returns the object in a value; an empty one for other types.
pub(super) fn into_map(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}
