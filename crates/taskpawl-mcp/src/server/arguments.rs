//! Arguments of calls.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::brief::cut;
use super::refusal::Refused;

/// How much of a wrong argument is said.
const SHOWN_CHARS: usize = 80;

/// How the message of a field begins that is not there.
const MISSING: &str = "missing field `";

/// Reads the arguments of a call into their form.
pub(super) fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Refused> {
    // What is `null` is not given: some clients send every field.
    let given: Map<String, Value> = arguments.into_iter().filter(|(_, value)| !value.is_null()).collect();
    let given = Value::Object(given);
    form(&given).map_err(|said| wrong::<T>(&given, &said))
}

fn form<T: DeserializeOwned>(given: &Value) -> Result<T, String> {
    T::deserialize(given).map_err(|error| error.to_string())
}

/// Returns which argument is wrong, and what was expected.
fn wrong<T: DeserializeOwned>(given: &Value, said: &str) -> Refused {
    for (name, value) in given.as_object().into_iter().flatten() {
        if let Some(problem) = problem::<T>(name, value) {
            let path = path::<T>(name, value);
            let element = path
                .strip_prefix(name.as_str())
                .and_then(|index| index.trim_matches(['[', ']']).parse().ok());
            let wrong = element.and_then(|index: usize| value.get(index)).unwrap_or(value);
            return Refused::argument(path, in_words(&problem, wrong));
        }
    }
    match said.strip_prefix(MISSING).and_then(|rest| rest.strip_suffix('`')) {
        Some(name) => Refused::argument(place_of::<T>(given, said, name), "it is missing"),
        None => Refused::argument("arguments", in_words(said, given)),
    }
}

/// Returns the place of a field that is missing: in an argument, where the same is said although there is an argument of that name.
fn place_of<T: DeserializeOwned>(given: &Value, said: &str, name: &str) -> String {
    let is_within = |(field, value): &(&String, &Value)| {
        let fields = [((*field).clone(), (*value).clone()), (name.to_owned(), Value::Bool(true))];
        let beside = Value::Object(Map::from_iter(fields));
        value.is_object() && field.as_str() != name && form::<T>(&beside).is_err_and(|error| error == said)
    };
    let holder = given.as_object().into_iter().flatten().find(is_within);
    holder.map_or_else(|| name.to_owned(), |(field, _)| format!("{field}.{name}"))
}

/// Returns what is wrong with one argument, alone: what else is missing then does not count.
fn problem<T: DeserializeOwned>(name: &str, value: &Value) -> Option<String> {
    let alone = Map::from_iter([(name.to_owned(), value.clone())]);
    form::<T>(&Value::Object(alone)).err().filter(|said| !said.starts_with(MISSING))
}

/// Returns where in an argument it is wrong: the element of a list, where that is wrong and the others are not to blame.
fn path<T: DeserializeOwned>(name: &str, value: &Value) -> String {
    let elements = value.as_array().into_iter().flatten().cloned();
    let mut lists = elements.map(|element| Value::Array(vec![element]));
    // A list that is wrong without elements is wrong as a list.
    let is_list = problem::<T>(name, &Value::Array(Vec::new())).is_none();
    match lists.position(|list| is_list && problem::<T>(name, &list).is_some()) {
        Some(index) => format!("{name}[{index}]"),
        None => name.to_owned(),
    }
}

/// Returns what there is instead of what is expected.
pub(super) fn found(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => Value::from(cut(text, SHOWN_CHARS)).to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
    }
}

/// Returns what a parser says of a value in the words of JSON.
fn in_words(said: &str, wrong: &Value) -> String {
    let Some((found, expected)) = said.rsplit_once(", expected ") else {
        let is_expectation = said.starts_with("expected ");
        return if is_expectation { format!("{said}, not {}", self::found(wrong)) } else { said.to_owned() };
    };
    if found.starts_with("unknown field `") {
        return format!("there is no such argument, only {}", expected.trim_start_matches("one of "));
    }
    let expected = match expected {
        "usize" | "u64" | "u32" => "a whole number that is not negative",
        "a string" => "text",
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

/// One word or several.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(untagged, expecting = "expected text, or a list of texts")]
pub(super) enum OneOrMore {
    #[default]
    None,
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    pub(super) fn into_vec(self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::One(text) => vec![text],
            Self::More(texts) => texts,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "it is only read into")]
    struct Form {
        id: String,
        #[serde(default)]
        status: Vec<taskpawl::model::Status>,
        #[serde(default)]
        only: OneOrMore,
        #[serde(default)]
        limit: usize,
        #[serde(default)]
        cancel: bool,
        #[serde(default)]
        fields: Map<String, Value>,
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place_and_in_words_of_json() {
        for (arguments, said) in [
            (json!({}), "argument `id`: it is missing"),
            (json!({"id": null}), "argument `id`: it is missing"),
            (json!({"id": ["a"]}), "argument `id`: expected text, not a list"),
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
            (
                json!({"id": "a", "only": [1]}),
                "argument `only[0]`: expected text, or a list of texts, not `1`",
            ),
            (json!({"id": "a", "only": 1}), "argument `only`: expected text, or a list of texts, not `1`"),
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
