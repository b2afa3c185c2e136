//! The forms of single values in a file.

use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use taskpawl::model::task::{Retry, unknown_failure};
use taskpawl::model::value::Period;

use crate::byte_size;

/// A value that is written as text.
#[derive(Debug)]
pub(super) struct Parsed<T>(pub(super) T);

impl<'de, T: FromStr> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // The message is not used: the error names the expected form of the key.
        text.parse().map(Self).map_err(|_| D::Error::custom("another form is expected"))
    }
}

/// A duration that is not zero.
#[derive(Debug)]
pub(super) struct Length(pub(super) Period);

impl FromStr for Length {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse().ok().filter(|period: &Period| !period.0.is_zero()).map(Self).ok_or(())
    }
}

/// A number of bytes, with a unit.
#[derive(Debug)]
pub(super) struct Size(pub(super) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        byte_size::parse(text).map(Self)
    }
}

/// The retry policy: the number of starts, or the table of a task.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Retries(pub(super) Retry);

impl TryFrom<Value> for Retries {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let table = if value.is_number() { json!({ "attempts": value }) } else { value };
        // Serde reads a list as the fields of a struct.
        let retry = Some(table).filter(Value::is_object).and_then(|table| serde_json::from_value(table).ok());
        let retry =
            retry.filter(|retry: &Retry| retry.attempts > 0 && unknown_failure(Some(retry)).is_none());
        retry.map(Self).ok_or("another form is expected")
    }
}
