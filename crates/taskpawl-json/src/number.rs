//! Numbers that can be represented without loss.

use serde_json::Number;

/// Parses an integer in decimal digits, with or without a sign; `None` if it does not fit into 64 bits.
pub fn whole_number(text: &str) -> Option<Number> {
    text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok()
}

/// Parses a number. With a fraction or an exponent it is rounded to the nearest `f64`; `None` if it is out of range.
///
/// A number without both is an integer, which is never rounded.
pub fn exact_number(text: &str) -> Option<Number> {
    if text.contains(['.', 'e', 'E']) {
        text.parse().ok().and_then(Number::from_f64)
    } else {
        whole_number(text)
    }
}
