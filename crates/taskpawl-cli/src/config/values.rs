//! Conversion of configuration values: from TOML to text, and from text to settings.

use std::path::Path;

use serde_json::{Value, json};
use taskpawl::model::task::{Retry, unknown_failure};
use taskpawl::model::value::Period;
use toml::Spanned;
use toml::de::DeValue;

use super::{ConfigError, Key, Origin};

/// The expected form of `run.retry`.
pub(super) const RETRY: &str = "a number of at least 1, or a table such as { attempts = 3, delay = \"1s\" }";

pub(super) fn length(text: &str, expected: &'static str) -> Result<Period, &'static str> {
    text.parse::<Period>().ok().filter(|period| !period.0.is_zero()).ok_or(expected)
}

pub(super) fn retry(text: &str) -> Option<Retry> {
    let value = match text.parse::<u32>() {
        Ok(attempts) => json!({ "attempts": attempts }),
        Err(_) => serde_json::from_str(text).ok()?,
    };
    serde_json::from_value::<Retry>(value)
        .ok()
        .filter(|retry| retry.attempts > 0 && unknown_failure(Some(retry)).is_none())
}

pub(super) fn line(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

pub(super) fn number_of(
    path: &Path,
    text: &str,
    name: &str,
    meaning: &'static str,
    at: usize,
    value: &Spanned<DeValue<'_>>,
    expected: &'static str,
) -> Result<u32, ConfigError> {
    let number = value.get_ref().as_integer().and_then(|number| number.to_string().parse().ok());
    number.ok_or_else(|| wrong(path, text, name, meaning, at, value, expected))
}

pub(super) fn wrong(
    path: &Path,
    text: &str,
    name: &str,
    meaning: &'static str,
    at: usize,
    value: &Spanned<DeValue<'_>>,
    expected: &'static str,
) -> ConfigError {
    ConfigError::Value {
        origin: Origin::File(path.to_owned()),
        line: Some(line(text, at)),
        name: name.to_owned(),
        meaning,
        value: text[value.span()].to_owned(),
        expected,
    }
}

/// Returns a value of the right type as text; a list or a table as JSON.
pub(super) fn text_of(value: &DeValue<'_>, key: Key) -> Option<String> {
    match (key, value) {
        (Key::RunRetry, DeValue::Table(_)) | (Key::RunNotify, DeValue::Array(_)) => {
            Some(json_of(value)?.to_string())
        }
        (Key::RunNotify, _) => None,
        (Key::RunRetry, _) => Some(value.as_integer()?.to_string()),
        (key, value) if key.is_number() => Some(value.as_integer()?.to_string()),
        (_, value) => Some(value.as_str()?.to_owned()),
    }
}

/// Returns a value as JSON, or `None` if it contains a date, which JSON lacks.
pub(super) fn json_of(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => json!(number.to_string().parse::<i64>().ok()?),
        DeValue::Float(number) => json!(number.to_string().parse::<f64>().ok()?),
        DeValue::Boolean(is_so) => Value::Bool(*is_so),
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| json_of(item.get_ref())).collect::<Option<_>>()?)
        }
        DeValue::Table(table) => {
            let entries = table
                .iter()
                .map(|(name, value)| Some((name.get_ref().to_string(), json_of(value.get_ref())?)));
            Value::Object(entries.collect::<Option<_>>()?)
        }
        DeValue::Datetime(_) => return None,
    })
}
