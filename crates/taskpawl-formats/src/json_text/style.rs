//! The layout of JSON text, and values printed in it.

use serde_json::Value;

/// A value to print, with its fields in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// A value without elements.
    Plain(Value),
    /// A list.
    List(Vec<Json>),
    /// An object.
    Object(Vec<(String, Json)>),
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        match value {
            Value::Array(list) => Self::List(list.iter().map(Self::from).collect()),
            Value::Object(map) => {
                Self::Object(map.iter().map(|(name, value)| (name.clone(), Self::from(value))).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Self::Plain(value.clone()),
        }
    }
}

impl Json {
    /// Returns an object with fields in this order.
    pub fn object<N: Into<String>>(fields: impl IntoIterator<Item = (N, Json)>) -> Self {
        Self::Object(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// Returns the value. The order of fields is lost.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Plain(value) => value.clone(),
            Self::List(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), value.to_value())).collect()
            }
        }
    }

    /// Returns true for a list that contains no lists and no objects.
    fn is_plain_list(&self) -> bool {
        matches!(self, Self::List(items) if items.iter().all(|item| matches!(item, Self::Plain(_))))
    }
}

/// The placement of line breaks and blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The output of `JSON.stringify` and similar programs: every list on several lines, no blanks inside brackets.
    Machine,
    /// The usual form of configuration files: lists of plain values on one line, and blanks inside the brackets of other one-line containers.
    Hand,
}

/// The layout of a text, so that new parts look the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// The indentation of one level; empty if no line is indented.
    pub indent: String,
    /// The end of a line.
    pub end: &'static str,
    /// True if a space follows colons and commas.
    pub is_spaced: bool,
    /// The layout of inserted parts.
    pub layout: Layout,
}

impl Default for Style {
    fn default() -> Self {
        Self { indent: "  ".to_owned(), end: "\n", is_spaced: true, layout: Layout::Machine }
    }
}

impl Style {
    /// Returns the style of a text. The first indented line gives the indentation.
    pub fn of(text: &str) -> Self {
        let indents = text.lines().filter(|line| !line.trim().is_empty()).map(|line| indent_at(line, 0));
        let indent = indents.into_iter().find(|indent| !indent.is_empty()).unwrap_or_default().to_owned();
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Self { indent, end, is_spaced: is_spaced(text), layout: Layout::Machine }
    }

    /// Returns the style of a text that people edit; two spaces if no line is indented.
    pub fn by_hand(text: &str) -> Self {
        let Self { indent, end, .. } = Self::of(text);
        let indent = if indent.is_empty() { "  ".to_owned() } else { indent };
        Self { indent, end, is_spaced: true, layout: Layout::Hand }
    }

    pub(crate) fn colon(&self) -> &'static str {
        if self.is_spaced { ": " } else { ":" }
    }

    pub(crate) fn comma(&self) -> &'static str {
        if self.is_spaced { ", " } else { "," }
    }

    /// Returns a value as text: on one line, or on several lines if `indent`, the indentation of its first line, is given.
    pub fn print(&self, value: &Json, indent: Option<&str>) -> String {
        let is_flat = self.layout == Layout::Hand && value.is_plain_list();
        let indent = indent.filter(|_| !is_flat);
        let inside = indent.map(|indent| format!("{indent}{}", self.indent));
        let inside = inside.as_deref();
        let (open, close, parts): (_, _, Vec<String>) = match value {
            Json::Plain(value) => return value.to_string(),
            Json::List(items) => ('[', ']', items.iter().map(|item| self.print(item, inside)).collect()),
            Json::Object(fields) => {
                ('{', '}', fields.iter().map(|(name, value)| self.field(name, value, inside)).collect())
            }
        };
        if parts.is_empty() {
            return format!("{open}{close}");
        }
        if let Some((indent, inside)) = indent.zip(inside) {
            let between = format!("{}{inside}", self.end);
            return format!(
                "{open}{between}{}{}{indent}{close}",
                parts.join(&format!(",{between}")),
                self.end
            );
        }
        let pad = if self.layout == Layout::Hand && !is_flat { " " } else { "" };
        format!("{open}{pad}{}{pad}{close}", parts.join(self.comma()))
    }

    /// Returns a field of an object as text.
    pub(crate) fn field(&self, name: &str, value: &Json, indent: Option<&str>) -> String {
        format!("{}{}{}", Value::from(name), self.colon(), self.print(value, indent))
    }
}

/// Returns whether a space follows the first colon outside strings.
fn is_spaced(text: &str) -> bool {
    let (mut is_inside, mut is_escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_inside,
            '"' => is_inside = !is_inside,
            ':' if !is_inside => return text[at + 1..].starts_with(' '),
            _ => {}
        }
    }
    false
}

/// Returns the blanks at the start of the line that contains byte `at`.
pub(crate) fn indent_at(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}
