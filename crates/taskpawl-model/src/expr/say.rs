//! Descriptions of values for messages.

use serde_json::Value;
use taskpawl_text::nearest;

use crate::value::Map;

/// Returns the type of a value in words.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "none",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns a description of a value: the value itself if it is short, otherwise its type.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(value) => format!("`{value}`"),
        Value::Number(number) => format!("the number `{number}`"),
        Value::String(text) if text.is_empty() => "an empty text".to_owned(),
        Value::String(text) => format!("the text {}", quoted(text)),
        Value::Array(list) => format!("a list of {}", items(list.len())),
        Value::Object(map) => format!("an object with {}", fields(map)),
    }
}

/// Returns a text in backticks, escaped to one line and shortened.
pub(super) fn quoted(text: &str) -> String {
    const MAX: usize = 40;
    let mut shown: String = text.chars().take(MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// Returns a text for a message, shortened if it is long.
pub(super) fn shortened(text: &str) -> String {
    const MAX: usize = 60;
    let mut shown: String = text.chars().take(MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

pub(super) fn items(count: usize) -> String {
    match count {
        0 => "no items".to_owned(),
        1 => "1 item".to_owned(),
        count => format!("{count} items"),
    }
}

/// Returns the names of the fields of an object.
pub(super) fn fields(map: &Map) -> String {
    const MAX: usize = 8;
    if map.is_empty() {
        return "no fields".to_owned();
    }
    let shown: Vec<String> = map.keys().take(MAX).map(|key| quoted(key)).collect();
    let more = match map.len().saturating_sub(MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

pub(super) fn near(name: &str, map: &Map) -> Option<String> {
    // The search runs for every missing value, even if `default` replaces it, so it is limited.
    const MAX: usize = 64;
    nearest(name, map.keys().take(MAX).map(String::as_str)).map(|near| format!("did you mean `{near}`?"))
}
