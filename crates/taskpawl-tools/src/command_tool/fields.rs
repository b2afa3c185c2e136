//! Reads the fields of a definition.

use serde_json::Value;

use crate::command_tool::error::DefinitionError;
use crate::schema::nearest;

pub(crate) type Read<T> = Result<T, DefinitionError>;

/// Makes an error about a field.
pub(crate) fn wrong(at: &[&str], problem: impl Into<String>) -> DefinitionError {
    DefinitionError { at: at.iter().map(|step| (*step).to_owned()).collect(), problem: problem.into() }
}

/// Makes an error about an unknown field.
pub(crate) fn unknown(at: &[&str], name: &str, fields: &[&str]) -> DefinitionError {
    let all = || fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ");
    let problem = match nearest(name, fields.iter().copied()) {
        Some(near) => format!("is not a known field; did you mean `{near}`?"),
        None => format!("is not a known field; the fields are {}", all()),
    };
    wrong(at, problem)
}

pub(crate) fn text_of<'a>(value: &'a Value, at: &[&str]) -> Read<&'a str> {
    value.as_str().filter(|text| !text.is_empty()).ok_or_else(|| wrong(at, "has to be a text"))
}

pub(crate) fn bool_of(value: &Value, at: &[&str]) -> Read<bool> {
    value.as_bool().ok_or_else(|| wrong(at, "has to be true or false"))
}
