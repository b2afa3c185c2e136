//! Usage of calls, as reported by their tools: any JSON object, whose numbers are added up.

use serde_json::{Number, Value};

/// Adds usage to a total: numbers with the same name are added, other values are replaced.
pub fn add_usage(total: &mut Option<Value>, more: Value) {
    match total {
        None => *total = Some(more),
        Some(total) => add(total, more),
    }
}

fn add(total: &mut Value, more: Value) {
    match (total, more) {
        (Value::Object(total), Value::Object(more)) => {
            for (name, more) in more {
                match total.get_mut(&name) {
                    Some(total) => add(total, more),
                    None => _ = total.insert(name, more),
                }
            }
        }
        (Value::Number(total), Value::Number(more)) => *total = sum(total, &more),
        (total, more) => *total = more,
    }
}

fn sum(one: &Number, other: &Number) -> Number {
    let whole = one.as_i64().zip(other.as_i64()).and_then(|(one, other)| one.checked_add(other));
    let float = || Number::from_f64(one.as_f64()? + other.as_f64()?);
    whole.map(Number::from).or_else(float).unwrap_or_else(|| other.clone())
}

/// Returns the field `cost` of a usage; 0 without a positive number.
pub fn cost(usage: &Value) -> f64 {
    usage.get("cost").and_then(Value::as_f64).filter(|cost| cost.is_finite() && *cost > 0.0).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_added_and_the_rest_is_replaced() {
        let mut total = None;
        add_usage(&mut total, json!({"cost": 0.5, "tokens": {"in": 1}, "model": "a"}));
        add_usage(&mut total, json!({"cost": 1, "tokens": {"in": 2, "out": 5}, "model": "b"}));
        assert_eq!(total, Some(json!({"cost": 1.5, "tokens": {"in": 3, "out": 5}, "model": "b"})));
        assert!((cost(&total.unwrap()) - 1.5).abs() < 1e-9);
        let mut large = Some(json!(i64::MAX));
        add_usage(&mut large, json!(1));
        assert_eq!(large, Some(json!(9_223_372_036_854_775_808.0)));
    }
}
