//! Plain scalars, by the core schema of YAML 1.2: `no`, `on` and `1_000` are text.

use std::borrow::Cow;

use serde_json::Number;
use taskpawl_json::{JsonProblem, exact_number, whole_number};

use super::node::Content;
use super::{PlanProblem, node};

/// Returns the value of a plain scalar.
///
/// # Errors
/// A number that JSON cannot express or that does not fit into 64 bits is refused, not rounded silently.
pub(super) fn resolve(text: Cow<'_, str>) -> Result<Content<'_>, PlanProblem> {
    if let Some(word) = word(&text) {
        return Ok(word);
    }
    match number(&text) {
        Scalar::Number(number) => Ok(Content::Number(number)),
        Scalar::Inexact => Err(JsonProblem::Number { text: node::shortened(&text) }.into()),
        Scalar::Text => Ok(Content::Text(text)),
    }
}

/// Returns the value of a plain scalar in a file of another program, which is written back later: a number only if it is written the
/// same way again, so that the version `1.10` stays text.
#[cfg(feature = "yaml")]
#[expect(clippy::unnecessary_wraps, reason = "a rule has the signature of `resolve`")]
pub(super) fn resolve_verbatim(text: Cow<'_, str>) -> Result<Content<'_>, PlanProblem> {
    if let Some(word) = word(&text) {
        return Ok(word);
    }
    let whole = text.parse::<i64>().ok().filter(|number| number.to_string() == *text);
    Ok(whole.map_or(Content::Text(text), |number| Content::Number(number.into())))
}

/// Returns the value of a word that is no text.
fn word(text: &str) -> Option<Content<'static>> {
    match text {
        "~" | "null" | "Null" | "NULL" | "" => Some(Content::Null),
        "true" | "True" | "TRUE" => Some(Content::Bool(true)),
        "false" | "False" | "FALSE" => Some(Content::Bool(false)),
        _ => None,
    }
}

enum Scalar {
    Number(Number),
    /// A number that cannot be stored exactly.
    Inexact,
    Text,
}

impl From<Option<Number>> for Scalar {
    fn from(number: Option<Number>) -> Self {
        number.map_or(Self::Inexact, Self::Number)
    }
}

fn number(text: &str) -> Scalar {
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Scalar::Text;
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Scalar::Inexact;
    }
    if is_digits(unsigned) {
        return whole_number(text).into();
    }
    if !is_float(unsigned) {
        return Scalar::Text;
    }
    exact_number(text).into()
}

fn radix(digits: &str, radix: u32) -> Scalar {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Scalar::Text;
    }
    u64::from_str_radix(digits, radix).ok().map(Number::from).into()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// `[0-9]+(\.[0-9]*)?|\.[0-9]+`, then an exponent.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let mantissa_is_fine = match mantissa.split_once('.') {
        Some((whole, "")) => is_digits(whole),
        Some(("", part)) => is_digits(part),
        Some((whole, part)) => is_digits(whole) && is_digits(part),
        None => is_digits(mantissa),
    };
    mantissa_is_fine && exponent.is_none_or(|e| is_digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

#[cfg(test)]
mod tests {
    use super::{Content, Cow, resolve, resolve_verbatim};

    #[test]
    fn verbatim_numbers_are_written_the_same_way_again() {
        for text in ["1.10", "007", "+5", "0x1F", "1e3", "99999999999999999999", "2026-01-02", "no"] {
            assert_eq!(resolve_verbatim(Cow::Borrowed(text)), Ok(Content::Text(text.into())));
        }
        assert_eq!(resolve_verbatim("-5".into()), Ok(Content::Number((-5).into())));
        assert_eq!(resolve_verbatim("~".into()), Ok(Content::Null));
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        let shown = |text: &'static str| match resolve(Cow::Borrowed(text)) {
            Ok(Content::Text(_)) => "text".to_owned(),
            Ok(content) => format!("{content:?}"),
            Err(problem) => problem.to_string(),
        };
        let words =
            ["no", "on", "yes", "~", "Null", "True", "1_000", "0x1F", "0o17", "007", "-5", "+5", "- 5"];
        let numbers =
            ["1.5", ".5", "5.", "1e3", "1e", ".", "-", "10ms", "2026-01-02", "18446744073709551615"];
        let refused = ["18446744073709551616", "-9223372036854775809", ".inf", "-.INF", ".nan", "1e999"];
        let table: Vec<String> = words
            .iter()
            .chain(&numbers)
            .chain(&refused)
            .map(|text| format!("{text:<22}{}", shown(text)))
            .collect();
        insta::assert_snapshot!(table.join("\n"));
    }
}
