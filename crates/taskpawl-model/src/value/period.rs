//! Durations in the syntax of plans: `10ms`, `0.5s`, `5m`, `2h`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration, written as `10ms`, `0.5s`, `5m` or `2h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(pub Duration);

/// The text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid duration{}", remedy(.text))]
pub struct PeriodError {
    /// The given text.
    pub text: String,
}

fn remedy(text: &str) -> String {
    if text.parse::<f64>().is_ok_and(|number| number.is_finite() && number > 0.0) {
        format!(", expected a number with its unit: `{text}s` for seconds, `{text}m` for minutes")
    } else {
        ", expected for example `10ms`, `0.5s`, `5m` or `2h`".to_owned()
    }
}

impl FromStr for Period {
    type Err = PeriodError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(Self).ok_or_else(|| PeriodError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    if !number.starts_with(|c: char| c.is_ascii_digit())
        || !number.chars().all(|c| c.is_ascii_digit() || c == '.')
    {
        return None;
    }
    let unit = nanos_of(unit)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if part.contains('.') {
        return None;
    }
    // Whole numbers are used, because floats would change the decimal digits.
    let part = &part[..part.len().min(MAX_DIGITS)];
    let scale = 10_u128.pow(u32::try_from(part.len()).ok()?);
    let part = if part.is_empty() { 0 } else { part.parse::<u128>().ok()? };
    let nanos = u128::from(whole.parse::<u64>().ok()?).checked_mul(unit)? + (part * unit + scale / 2) / scale;
    let seconds = u64::try_from(nanos / NANOS).ok()?;
    Some(Duration::new(seconds, u32::try_from(nanos % NANOS).ok()?))
}

/// The maximum number of decimals that are read. Further ones are less than a nanosecond in every unit.
const MAX_DIGITS: usize = 18;

/// Nanoseconds per second.
const NANOS: u128 = 1_000_000_000;

fn nanos_of(unit: &str) -> Option<u128> {
    match unit {
        "ms" => Some(NANOS / 1000),
        "s" => Some(NANOS),
        "m" => Some(60 * NANOS),
        "h" => Some(3600 * NANOS),
        _ => None,
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nanos, seconds) = (self.0.subsec_nanos(), self.0.as_secs());
        match (seconds, nanos) {
            (0, nanos) if nanos.is_multiple_of(1_000_000) => write!(f, "{}ms", self.0.as_millis()),
            (s, 0) if s % 3600 == 0 => write!(f, "{}h", s / 3600),
            (s, 0) if s % 60 == 0 => write!(f, "{}m", s / 60),
            (s, 0) => write!(f, "{s}s"),
            (s, nanos) => write!(f, "{s}.{}s", format!("{nanos:09}").trim_end_matches('0')),
        }
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PeriodVisitor)
    }
}

/// Accepts numbers only to refuse them with a message about the missing unit.
struct PeriodVisitor;

impl Visitor<'_> for PeriodVisitor {
    type Value = Period;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as `30s` or `5m`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Period, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Period, E> {
        Err(E::custom(PeriodError { text: number.to_string() }))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Period, E> {
        Err(E::custom(PeriodError { text: number.to_string() }))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Period, E> {
        Err(E::custom(PeriodError { text: number.to_string() }))
    }
}

#[cfg(test)]
mod tests {
    use super::Period;

    #[test]
    fn periods_are_parsed_and_formatted() {
        for (text, millis, written) in [
            ("10ms", 10, "10ms"),
            ("0.5s", 500, "500ms"),
            ("90s", 90_000, "90s"),
            ("5m", 300_000, "5m"),
            ("2h", 7_200_000, "2h"),
            ("1.5s", 1_500, "1.5s"),
            ("1.5ms", 1, "0.0015s"),
            ("60.0001s", 60_000, "60.0001s"),
            ("2.595s", 2_595, "2.595s"),
            ("0.7s", 700, "700ms"),
            ("1.1m", 66_000, "66s"),
            ("0.1h", 360_000, "6m"),
            ("0.0000000005s", 0, "0.000000001s"),
        ] {
            let period: Period = text.parse().unwrap();
            assert_eq!((period.0.as_millis(), period.to_string().as_str()), (millis, written));
        }
        for text in ["", "5", "s", "-1s", "1d", "1 s", "NaNs", "1e99h"] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_refused_with_a_hint() {
        let message =
            |value: serde_json::Value| serde_json::from_value::<Period>(value).unwrap_err().to_string();
        for value in [serde_json::json!(5), serde_json::json!("5")] {
            let lacks = "`5` is not a valid duration, expected a number with its unit: `5s` for seconds, `5m` for minutes";
            assert_eq!(message(value), lacks);
        }
        assert!(message(serde_json::json!(-5)).contains("expected for example `10ms`"));
        assert!(message(serde_json::json!(true)).contains("expected a duration such as `30s` or `5m`"));
    }
}
