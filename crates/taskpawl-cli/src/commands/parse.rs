//! Parsers for command-line values.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::Value;
use taskpawl::model::plan::Budget;
use taskpawl::model::task::{Mode, Priority, Status, Trigger};
use taskpawl::model::value::Map;
use taskpawl::model::value::Period;
use taskpawl::model::value::Selector;
use taskpawl_json::JsonError;

use crate::error::CliError;

/// Parses a status.
pub(super) fn status() -> impl TypedValueParser<Value = Status> {
    words(Status::ALL.iter().map(|status| status.as_str()), Status::from_word)
}

/// Parses a priority.
pub(super) fn priority() -> impl TypedValueParser<Value = Priority> {
    words(Priority::ALL.iter().map(|priority| priority.as_str()), Priority::from_word)
}

fn words<T: Clone + Send + Sync + 'static>(
    words: impl Iterator<Item = &'static str>,
    from_word: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    let words: Vec<&'static str> = words.collect();
    PossibleValuesParser::new(words)
        .map(move |word| from_word(&word).expect("BUG: only words of the list get here"))
}

/// Parses a whole number.
pub(super) fn number<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseIntError| {
        let is_too_large = *error.kind() == IntErrorKind::PosOverflow;
        let what =
            if is_too_large { "the number is too large" } else { "expected a whole number, as in `20`" };
        what.to_owned()
    })
}

/// Parses a whole number greater than 0.
pub(super) fn at_least_one<T: FromStr<Err = ParseIntError> + Default + PartialEq>(
    text: &str,
) -> Result<T, String> {
    let number = number(text)?;
    if number == T::default() { Err("expected a number of at least 1".to_owned()) } else { Ok(number) }
}

/// Parses a duration greater than 0.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let period: Period =
        text.parse().map_err(|error: taskpawl::model::value::PeriodError| error.to_string())?;
    if period.0.is_zero() { Err("it must be longer than nothing".to_owned()) } else { Ok(period.0) }
}

/// Parses the budget of a run: `calls=N,duration=TIME,cost=N`, or some of them.
pub(super) fn budget(text: &str) -> Result<Budget, String> {
    let mut budget = Budget::default();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let unknown = |what: &str| format!("`{value}` is no {what} for `{name}`");
        match name {
            "calls" => budget.calls = Some(value.parse().map_err(|_| unknown("number"))?),
            "duration" => budget.duration = Some(Period(duration(value)?)),
            "cost" => {
                let cost = value.parse().ok().filter(|cost: &f64| cost.is_finite() && *cost >= 0.0);
                budget.cost = Some(cost.ok_or_else(|| unknown("number"))?);
            }
            _ => {
                return Err(format!("`{name}` is no limit, expected as in `calls=100,duration=1h,cost=2.5`"));
            }
        }
    }
    Ok(budget)
}

/// Formats a budget so that [`budget`] can parse it.
pub(super) fn budget_text(budget: &Budget) -> String {
    let calls = budget.calls.map(|calls| format!("calls={calls}"));
    let duration = budget.duration.map(|duration| format!("duration={duration}"));
    let cost = budget.cost.map(|cost| format!("cost={cost}"));
    [calls, duration, cost].into_iter().flatten().collect::<Vec<_>>().join(",")
}

/// Parses a duration that may also be given in days.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    if let Some(seconds) = days.and_then(|days| days.checked_mul(24 * 60 * 60)) {
        return Ok(Duration::from_secs(seconds));
    }
    let period: Result<Period, _> = text.parse();
    period
        .map(|period| period.0)
        .map_err(|_| format!("`{text}` is no age, expected for example `30d` or `12h`"))
}

/// Parses an assumption of `--what-if`.
pub(super) fn hypothesis(
    text: &str,
) -> Result<taskpawl::model::insight::Hypothesis, taskpawl::model::insight::HypothesisError> {
    text.parse()
}

/// Parses `NAME=VALUE`.
pub(super) fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` has no value, expected for example `region=eu`")),
    }
}

/// Parses JSON.
pub(super) fn json(text: &str) -> Result<Value, String> {
    taskpawl_json::read(text).map_err(|error| match error {
        JsonError::Syntax(error) => format!("{error}; text stands in quotes, as in '\"text\"'"),
        JsonError::Fault(fault) => fault.to_string(),
    })
}

/// Parses a JSON object.
pub(super) fn object(text: &str) -> Result<Map, String> {
    match taskpawl_json::read(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("expected an object, as in '{\"key\": \"value\"}'".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses a JSON object, or `KEY=VALUE` where the value is JSON or plain text.
pub(super) fn pairs(text: &str) -> Result<Map, String> {
    if text.trim_start().starts_with('{') {
        return object(text);
    }
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, or a JSON object")?;
    if key.is_empty() {
        return Err("the key is empty".to_owned());
    }
    let value = match taskpawl_json::read(value) {
        Ok(value) => value,
        // Text without quotes is a string. Valid JSON with a fault, such as a duplicate key, stays an error.
        Err(JsonError::Syntax(_)) => Value::String(value.to_owned()),
        Err(JsonError::Fault(fault)) => return Err(fault.to_string()),
    };
    Ok(Map::from_iter([(key.to_owned(), value)]))
}

/// Collects named values into one object; `what` names them in the error.
///
/// # Errors
/// A name is given twice: the last value would win in silence.
pub(super) fn once(what: &str, given: impl IntoIterator<Item = (String, Value)>) -> Result<Map, CliError> {
    let mut map = Map::new();
    for (name, value) in given {
        if map.contains_key(&name) {
            return Err(CliError::usage(format!("{what} `{name}` is given twice")));
        }
        map.insert(name, value);
    }
    Ok(map)
}

/// Parses `FIELD=JSON`.
pub(super) fn field(text: &str) -> Result<(String, Value), String> {
    let (field, value) = text.split_once('=').ok_or("expected FIELD=JSON")?;
    if field.is_empty() {
        return Err("the field is empty".to_owned());
    }
    Ok((field.to_owned(), json(value)?))
}

/// Parses a trigger.
pub(super) fn trigger() -> impl TypedValueParser<Value = Trigger> {
    words(Trigger::ALL.iter().map(|trigger| trigger.as_str()), Trigger::from_word)
}

/// Parses a mode.
pub(super) fn mode() -> impl TypedValueParser<Value = Mode> {
    words(Mode::ALL.iter().map(|mode| mode.as_str()), Mode::from_word)
}

/// Parses `plan:NAME`, `label:NAME` or an id.
pub(super) fn selector(text: &str) -> Result<Selector, String> {
    match text.split_once(':') {
        Some(("plan" | "label", "")) => Err("the name is missing after the colon".to_owned()),
        Some((word, _)) if !matches!(word, "plan" | "label") => {
            Err(format!("nothing is selected by `{word}`; expected plan:NAME, label:NAME or an id"))
        }
        _ => text.parse().map_err(|never: std::convert::Infallible| match never {}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_say_what_is_wrong_with_them() {
        let error = |text: &str| number::<u32>(text).unwrap_err();
        assert_eq!(error("99999999999"), "the number is too large");
        for wrong in ["", "-1", "1.5", "many"] {
            assert_eq!(error(wrong), "expected a whole number, as in `20`", "{wrong}");
        }
        assert_eq!((number("0"), at_least_one("1")), (Ok(0_u64), Ok(1_usize)));
        assert_eq!(at_least_one::<u32>("0").unwrap_err(), "expected a number of at least 1");
    }

    #[test]
    fn ages_have_units() {
        let days = |days: u64| Ok(Duration::from_secs(days * 86_400));
        assert_eq!([age("0d"), age("30d"), age("12h")], [days(0), days(30), Ok(Duration::from_hours(12))]);
        assert!(age("30").is_err() && age("d").is_err() && age("99999999999999999999d").is_err());
    }
}
