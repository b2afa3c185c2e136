//! Values in another type than their schema says.

use serde_json::{Map, Value, json};

use super::Reading;
use super::texts::{duration, items, object, seconds};
use super::words;
use crate::server::refusal::Refused;

/// Arguments for which an empty text means none.
const EMPTY_IS_ABSENT: &[&str] = &[
    "id",
    "agent",
    "request_id",
    "run_id",
    "parent",
    "plan",
    "name",
    "ttl",
    "dueDate",
    "call",
    "part",
    "text",
];

impl Reading<'_> {
    /// Reads the value of an argument, if its schema has one other type.
    pub(super) fn value(&mut self, name: &str, schema: &Value, value: &mut Value) -> Result<(), Refused> {
        let read = match schema["type"].as_str() {
            Some("integer" | "number") => self::number(name, schema, value),
            Some("boolean") => boolean(value),
            Some("array") => return self.list(name, schema, value),
            Some("object") => value.as_str().and_then(object),
            Some("string") => text(name, value),
            _ => schema["enum"].as_array().and_then(|allowed| of_enum(value, allowed)),
        };
        if let Some(read) = read {
            self.replace(name, value, read);
        }
        Ok(())
    }

    pub(super) fn replace(&mut self, place: &str, value: &mut Value, read: Value) {
        if !read.is_null() {
            self.tell(place, value, &read);
        }
        *value = read;
    }

    fn list(&mut self, name: &str, schema: &Value, value: &mut Value) -> Result<(), Refused> {
        if let Value::String(given) = value {
            let items = items(given);
            if given.is_empty() && name == "needs" {
                *value = Value::Null;
                return Ok(());
            }
            if items.is_empty() {
                let all = if matches!(name, "ids" | "needs") { "" } else { "; leave it out to mean all" };
                return Err(Refused::argument(name, format!("the list is empty{all}")));
            }
            self.replace(name, value, items.into());
        }
        let allowed = schema["items"]["enum"].as_array();
        for item in value.as_array_mut().into_iter().flatten() {
            let read = match (allowed, &item) {
                (Some(allowed), _) => of_enum(item, allowed),
                (None, Value::Number(number)) => Some(json!(number.to_string())),
                (None, _) => None,
            };
            if let Some(read) = read {
                self.replace(name, item, read);
            }
        }
        Ok(())
    }
}

fn number(name: &str, schema: &Value, value: &Value) -> Option<Value> {
    let given = match value {
        Value::String(text) if text.trim().is_empty() => return Some(Value::Null),
        Value::String(text) if name == "wait_s" => json!(seconds(text)?),
        Value::String(text) => json!(text.trim().parse::<u64>().ok()?),
        Value::Number(_) => value.clone(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let most = schema["maximum"].as_u64().filter(|most| given.as_u64().is_some_and(|given| given > *most));
    let read = most.map_or(given, |most| json!(most));
    (read != *value).then_some(read)
}

fn boolean(value: &Value) -> Option<Value> {
    match value.as_str()?.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" => Some(json!(true)),
        "false" | "no" => Some(json!(false)),
        _ => None,
    }
}

fn text(name: &str, value: &Value) -> Option<Value> {
    match value {
        Value::Number(given) if name == "ttl" => Some(json!(format!("{given}s"))),
        Value::Number(given) => Some(json!(given.to_string())),
        Value::String(given) if given.is_empty() && EMPTY_IS_ABSENT.contains(&name) => Some(Value::Null),
        Value::String(given) if name == "ttl" => duration(given).map(Value::from),
        // One id in a list is that id. Several need a call each.
        Value::Array(items) => match &items[..] {
            [Value::String(item)] => Some(json!(item)),
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Object(_) => None,
    }
}

/// Returns the allowed word that a value means; nothing if it is allowed as it is.
pub(super) fn of_enum(value: &Value, allowed: &[Value]) -> Option<Value> {
    let words: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
    let given = value.as_str().filter(|given| !words.contains(given))?;
    if given.trim().is_empty() {
        return Some(Value::Null);
    }
    words::of_enum(given, &words).map(Value::from)
}

/// Replaces a field by what it was read as.
pub(super) fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) -> bool {
    if fields.contains_key(to) {
        return false;
    }
    match fields.remove(from) {
        Some(value) => {
            fields.insert(to.to_owned(), value);
            true
        }
        None => false,
    }
}
