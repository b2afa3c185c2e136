//! Arguments of calls, and messages about wrong ones.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::brief::cut;
use super::refusal::Refused;

/// Maximum length of a wrong argument in a message, in characters.
const SHOWN_CHARS: usize = 80;

/// Maximum number of fields of an object for finding the wrong one.
const MAX_FIELDS: usize = 16;

/// Beginning of serde's message about a missing field.
const MISSING: &str = "missing field `";

/// Parses the arguments of a call.
///
/// # Errors
/// The refusal names the path of the first wrong argument, and the expected type.
pub(super) fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Refused> {
    // `null` counts as absent, because some clients send every field.
    let given: Map<String, Value> = arguments.into_iter().filter(|(_, value)| !value.is_null()).collect();
    let given = Value::Object(given);
    form(&given).map_err(|said| wrong::<T>(&given, &said))
}

fn form<T: DeserializeOwned>(given: &Value) -> Result<T, String> {
    T::deserialize(given).map_err(|error| error.to_string())
}

/// Returns a refusal with the path of the wrong argument. serde names no path, so each argument is parsed alone until
/// one fails.
fn wrong<T: DeserializeOwned>(given: &Value, said: &str) -> Refused {
    for (name, value) in given.as_object().into_iter().flatten() {
        if let Some(problem) = problem::<T>(name, value) {
            // serde also reads a struct from a list of its fields, and then reports the first element. An empty
            // object has no fault here, so an object is expected.
            if value.is_array() && self::problem::<T>(name, &Value::Object(Map::new())).is_none() {
                return no_object(name, value);
            }
            let (path, wrong) = place(name.clone(), value, &|value| self::problem::<T>(name, value));
            return Refused::argument(path, in_words(&problem, wrong));
        }
    }
    let Some(name) = said.strip_prefix(MISSING).and_then(|rest| rest.strip_suffix('`')) else {
        return Refused::argument("arguments", in_words(said, given));
    };
    match holder::<T>(given, said, name) {
        Some((field, value)) if value.is_array() => no_object(field, value),
        Some((field, _)) => Refused::argument(format!("{field}.{name}"), "it is missing"),
        None => Refused::argument(name, "it is missing"),
    }
}

pub(super) fn no_object(name: &str, wrong: &Value) -> Refused {
    Refused::argument(name, in_words("expected an object", wrong))
}

/// Returns the argument that lacks a field, if the same error occurs although an argument with the field's name is
/// given.
fn holder<'v, T: DeserializeOwned>(
    given: &'v Value,
    said: &str,
    name: &str,
) -> Option<(&'v String, &'v Value)> {
    let is_within = |(field, value): &(&String, &Value)| {
        let fields = [((*field).clone(), (*value).clone()), (name.to_owned(), Value::Bool(true))];
        let beside = Value::Object(Map::from_iter(fields));
        let can_hold = value.is_object() || value.is_array();
        can_hold && field.as_str() != name && form::<T>(&beside).is_err_and(|error| error == said)
    };
    given.as_object().into_iter().flatten().find(is_within)
}

/// Returns the fault of one argument that is parsed alone. Other arguments that are then missing do not count.
fn problem<T: DeserializeOwned>(name: &str, value: &Value) -> Option<String> {
    let alone = Map::from_iter([(name.to_owned(), value.clone())]);
    form::<T>(&Value::Object(alone)).err().filter(|said| !said.starts_with(MISSING))
}

/// Returns the fault of a value at a position, or `None` if it fits.
type Problem<'p> = dyn Fn(&Value) -> Option<String> + 'p;

/// Returns the path and the value of the fault: an element of a list or a field of an object, if that alone is wrong.
fn place<'v>(path: String, value: &'v Value, problem: &Problem<'_>) -> (String, &'v Value) {
    if let Some((index, element)) = wrong_element(value, problem) {
        return (format!("{path}[{index}]"), element);
    }
    match wrong_field(value, problem) {
        Some((field, inner)) => {
            place(format!("{path}.{field}"), inner, &|inner| problem(&with(value, field, inner)))
        }
        None => (path, value),
    }
}

fn wrong_element<'v>(value: &'v Value, problem: &Problem<'_>) -> Option<(usize, &'v Value)> {
    // A list that is wrong even when empty is wrong as a whole.
    let elements = value.as_array().filter(|_| problem(&Value::Array(Vec::new())).is_none())?;
    let is_wrong = |element: &Value| problem(&Value::Array(vec![element.clone()])).is_some();
    elements.iter().enumerate().find(|(_, element)| is_wrong(element))
}

/// Returns the wrong field of an object: replacing it by a value of another type repairs the object.
fn wrong_field<'v>(value: &'v Value, problem: &Problem<'_>) -> Option<(&'v String, &'v Value)> {
    // Each field needs several parses of the whole object.
    let fields = value.as_object().filter(|fields| fields.len() <= MAX_FIELDS)?;
    let others = [json!(""), json!(0), json!(true), json!([]), json!({})];
    let is_repaired = |field: &str| others.iter().any(|other| problem(&with(value, field, other)).is_none());
    fields.iter().find(|(field, _)| is_repaired(field)).or_else(|| wrong_word(value, problem))
}

/// A text that no list of allowed words contains.
const NO_WORD: &str = "?";

/// Returns a field that must be one of several words and is not.
fn wrong_word<'v>(value: &'v Value, problem: &Problem<'_>) -> Option<(&'v String, &'v Value)> {
    let is_unknown = |said: Option<String>, word: &str| {
        said.is_some_and(|said| said.starts_with(&format!("unknown variant `{word}`")))
    };
    let is_word = |field: &str| is_unknown(problem(&with(value, field, &json!(NO_WORD))), NO_WORD);
    let is_wrong = |inner: &Value| inner.as_str().is_none_or(|word| is_unknown(problem(value), word));
    value.as_object()?.iter().find(|(field, inner)| is_word(field) && is_wrong(inner))
}

/// Returns an object with one field replaced.
fn with(object: &Value, field: &str, value: &Value) -> Value {
    let mut object = object.clone();
    object[field] = value.clone();
    object
}

/// Describes a value in a message that expects another one.
pub(super) fn found(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => Value::from(cut(text, SHOWN_CHARS)).to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
    }
}

/// Translates a message of serde into the terms of JSON, without Rust types.
fn in_words(said: &str, wrong: &Value) -> String {
    let Some((found, expected)) = said.rsplit_once(", expected ") else {
        let is_expectation = said.starts_with("expected ");
        return if is_expectation { format!("{said}, not {}", self::found(wrong)) } else { said.to_owned() };
    };
    if found.starts_with("unknown field `") {
        return format!("there is no such argument, only {}", expected.trim_start_matches("one of "));
    }
    if found.starts_with('`') {
        // The message contains the found value already.
        return cut(&format!("{found}; expected {expected}"), 3 * SHOWN_CHARS);
    }
    let expected = match expected {
        "usize" | "u64" | "u32" => "a whole number that is not negative",
        "a string" | "string or map" | "variant identifier" => "text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        of if of.starts_with("struct ") || of.contains("tagged enum ") => "an object",
        other => other,
    };
    let found = ["invalid type: ", "invalid value: ", "unknown variant ", "integer ", "boolean "]
        .iter()
        .fold(found, |found, kind| found.strip_prefix(kind).unwrap_or(found));
    let found = match found {
        "sequence" => "a list",
        "map" => "an object",
        other => {
            other.strip_prefix("string ").or_else(|| other.strip_prefix("floating point ")).unwrap_or(other)
        }
    };
    format!("expected {expected}, not {}", cut(found, SHOWN_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "it is only read into")]
    struct Form {
        id: String,
        #[serde(default)]
        status: Vec<taskpawl::model::task::Status>,
        #[serde(default)]
        only: Vec<String>,
        #[serde(default)]
        limit: usize,
        #[serde(default)]
        cancel: bool,
        #[serde(default)]
        fields: Map<String, Value>,
        #[serde(default)]
        ttl: Option<taskpawl::model::value::Period>,
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place_and_in_words_of_json() {
        for (arguments, said) in [
            (json!({}), "argument `id`: it is missing"),
            (json!({"id": null}), "argument `id`: it is missing"),
            (json!({"id": ["a"]}), "argument `id`: expected text, not a list"),
            (json!({"id": "a", "status": [1]}), "argument `status[0]`: expected text, not `1`"),
            (
                json!({"id": "a", "ttl": "x"}),
                "argument `ttl`: `x` is not a valid duration; expected for example `10ms`, `0.5s`, `5m` or `2h`",
            ),
            (
                json!({"id": "a", "limit": -1}),
                "argument `limit`: expected a whole number that is not negative, not `-1`",
            ),
            (
                json!({"id": "a", "limit": "x"}),
                "argument `limit`: expected a whole number that is not negative, not \"x\"",
            ),
            (
                json!({"id": "a", "limit": 1.5}),
                "argument `limit`: expected a whole number that is not negative, not `1.5`",
            ),
            (
                json!({"limit": {}}),
                "argument `limit`: expected a whole number that is not negative, not an object",
            ),
            (json!({"id": "a", "cancel": "yes"}), "argument `cancel`: expected true or false, not \"yes\""),
            (json!({"id": "a", "fields": true}), "argument `fields`: expected an object, not `true`"),
            (json!({"id": "a", "status": "todo"}), "argument `status`: expected a list, not \"todo\""),
            (json!({"id": "a", "only": [1]}), "argument `only[0]`: expected text, not `1`"),
            (json!({"id": "a", "only": "x"}), "argument `only`: expected a list, not \"x\""),
        ] {
            let Value::Object(map) = arguments.clone() else { unreachable!() };
            assert_eq!(read::<Form>(map).unwrap_err().to_string(), said, "{arguments}");
        }
        let map = |value: Value| value.as_object().cloned().unwrap();
        let unknown = read::<Form>(map(json!({"id": "a", "status": ["todo", "nonsense"]}))).unwrap_err();
        let said = unknown.to_string();
        assert!(said.starts_with("argument `status[1]`: expected one of `todo`"), "{said}");
        assert!(said.ends_with("not `nonsense`"), "{said}");
        let field = read::<Form>(map(json!({"id": "a", "colour": "red"}))).unwrap_err().to_string();
        assert!(
            field.starts_with("argument `colour`: there is no such argument, only `id`, `status`"),
            "{field}"
        );
    }
}
