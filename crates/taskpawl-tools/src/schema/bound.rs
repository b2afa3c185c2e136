//! Bounds of numbers and sizes, with exact arithmetic.

use std::cmp::Ordering;

use serde_json::{Number, Value};

#[derive(Debug)]
pub(super) struct Bound {
    pub(super) kind: BoundKind,
    pub(super) limit: Number,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum BoundKind {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
    MultipleOf,
    MinLength,
    MaxLength,
    MinItems,
    MaxItems,
    MinProperties,
    MaxProperties,
}

impl BoundKind {
    pub(super) fn of(keyword: &str) -> Option<Self> {
        Some(match keyword {
            "minimum" => Self::Minimum,
            "maximum" => Self::Maximum,
            "exclusiveMinimum" => Self::ExclusiveMinimum,
            "exclusiveMaximum" => Self::ExclusiveMaximum,
            "multipleOf" => Self::MultipleOf,
            "minLength" => Self::MinLength,
            "maxLength" => Self::MaxLength,
            "minItems" => Self::MinItems,
            "maxItems" => Self::MaxItems,
            "minProperties" => Self::MinProperties,
            "maxProperties" => Self::MaxProperties,
            _ => return None,
        })
    }
}

impl Bound {
    /// Returns the violation of the bound by a value; `None` for values of another type.
    pub(super) fn problem(&self, value: &Value) -> Option<String> {
        use BoundKind as Kind;

        let measured = match self.kind {
            Kind::MinLength | Kind::MaxLength => value.as_str()?.chars().count().into(),
            Kind::MinItems | Kind::MaxItems => value.as_array()?.len().into(),
            Kind::MinProperties | Kind::MaxProperties => value.as_object()?.len().into(),
            Kind::Minimum
            | Kind::Maximum
            | Kind::ExclusiveMinimum
            | Kind::ExclusiveMaximum
            | Kind::MultipleOf => value.as_number()?.clone(),
        };
        let order = compare(&measured, &self.limit);
        let (holds, expected) = match self.kind {
            Kind::Minimum => (order.is_ge(), "be at least"),
            Kind::Maximum => (order.is_le(), "be at most"),
            Kind::ExclusiveMinimum => (order.is_gt(), "be more than"),
            Kind::ExclusiveMaximum => (order.is_lt(), "be less than"),
            Kind::MultipleOf => (is_multiple(&measured, &self.limit), "be a multiple of"),
            Kind::MinLength | Kind::MinItems | Kind::MinProperties => (order.is_ge(), "have at least"),
            Kind::MaxLength | Kind::MaxItems | Kind::MaxProperties => (order.is_le(), "have at most"),
        };
        let unit = match self.kind {
            Kind::MinLength | Kind::MaxLength => " characters",
            Kind::MinItems | Kind::MaxItems => " items",
            Kind::MinProperties | Kind::MaxProperties => " fields",
            Kind::Minimum
            | Kind::Maximum
            | Kind::ExclusiveMinimum
            | Kind::ExclusiveMaximum
            | Kind::MultipleOf => "",
        };
        let actual = if value.is_number() { "is" } else { "has" };
        let limit = shown(&self.limit);
        (!holds).then(|| format!("has to {expected} {limit}{unit}, but {actual} {measured}"))
    }
}

/// Compares two numbers. Integers are compared as such: beyond 2^53, `f64` makes neighbours equal.
fn compare(left: &Number, right: &Number) -> Ordering {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => left.cmp(&right),
        // JSON has no NaN.
        (Some(_), None) | (None, _) => float(left).partial_cmp(&float(right)).unwrap_or(Ordering::Equal),
    }
}

/// Returns whether `number` is a whole multiple of `unit`, both as written: in binary, 0.07 / 0.01 is not 7.
fn is_multiple(number: &Number, unit: &Number) -> bool {
    let exact = || {
        let ((number, places), (unit, others)) = (decimal(number)?, decimal(unit)?);
        let most = places.max(others);
        let scale = |digits: i128, places: i32| {
            digits.checked_mul(10_i128.checked_pow(u32::try_from(most - places).ok()?)?)
        };
        scale(number, places)?.checked_rem(scale(unit, others)?).map(|rest| rest == 0)
    };
    // Numbers of very different size do not fit into the scaled integers.
    exact().unwrap_or_else(|| (float(number) / float(unit)).fract() == 0.0)
}

/// Returns the number without the `.0` of a whole one.
pub(super) fn shown(number: &Number) -> String {
    if number.is_f64() { float(number).to_string() } else { number.to_string() }
}

/// Returns the digits and the decimal places: `-1.25` is `-125` with 2 places.
fn decimal(number: &Number) -> Option<(i128, i32)> {
    let text = number.to_string();
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let places = i32::try_from(fraction.len()).ok()? - exponent.parse::<i32>().ok()?;
    Some((format!("{whole}{fraction}").parse().ok()?, places))
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_multiple_of(number: &Value, unit: &Value) -> bool {
        is_multiple(number.as_number().unwrap(), unit.as_number().unwrap())
    }

    #[test]
    fn multiples_are_decimal() {
        for (number, unit) in [
            (json!(0.07), json!(0.01)),
            (json!(19.99), json!(0.01)),
            (json!(-4), json!(0.5)),
            (json!(1e300), json!(1)),
            (json!(3e-7), json!(1e-7)),
            (json!(u64::MAX), json!(5)),
            (json!(0), json!(3)),
        ] {
            assert!(is_multiple_of(&number, &unit), "{number} {unit}");
        }
        for (number, unit) in [
            (json!(0.075), json!(0.01)),
            (json!(u64::MAX), json!(2)),
            (json!(1e-300), json!(1)),
            (json!(1), json!(0)),
        ] {
            assert!(!is_multiple_of(&number, &unit), "{number} {unit}");
        }
    }

    #[test]
    fn numbers_are_compared_by_size() {
        let compare =
            |left: Value, right: Value| compare(left.as_number().unwrap(), right.as_number().unwrap());
        assert_eq!(compare(json!(u64::MAX), json!(u64::MAX - 1)), Ordering::Greater);
        assert_eq!(compare(json!(1), json!(1.0)), Ordering::Equal);
        assert_eq!(compare(json!(0), json!(-0.0)), Ordering::Equal);
        assert_eq!(compare(json!(-1), json!(0.5)), Ordering::Less);
    }
}
