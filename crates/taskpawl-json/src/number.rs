//! Numbers that can be kept.

use serde_json::Number;

/// Returns a whole number in decimal digits, with or without a sign; nothing where 64 bits cannot hold it.
pub fn whole_number(text: &str) -> Option<Number> {
    text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok()
}

/// Returns a number with its fraction or exponent, rounded as floating point is; nothing where it is beyond that.
///
/// A number without both is a whole number, which is never rounded.
pub fn exact_number(text: &str) -> Option<Number> {
    if text.contains(['.', 'e', 'E']) {
        text.parse().ok().and_then(Number::from_f64)
    } else {
        whole_number(text)
    }
}
