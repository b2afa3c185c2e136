//! Arithmetic. Whole numbers stay whole and never wrap around. Results that JSON cannot hold are errors.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::ast::Op;
use super::error::EvalFault;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Num {
    Int(i128),
    Float(f64),
}

/// Compares a whole number of at most 64 bits with a float, without rounding either.
#[expect(clippy::cast_possible_truncation, reason = "what is cut off is looked at by itself")]
fn compare_to_float(int: i128, float: f64) -> Ordering {
    const BEYOND: f64 = 1e30;
    if float.abs() > BEYOND {
        return if float > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    let whole = float.trunc();
    int.cmp(&(whole as i128)).then_with(|| {
        if float > whole {
            Ordering::Less
        } else if float < whole {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    })
}

impl Num {
    pub(super) fn of(value: &Value) -> Option<Self> {
        let Value::Number(number) = value else { return None };
        let int = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        int.map(Self::Int).or_else(|| number.as_f64().map(Self::Float))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "whole numbers and fractions are compared and added as fractions"
    )]
    pub(super) fn float(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }

    pub(super) fn value(self) -> Result<Value, EvalFault> {
        let number = match self {
            Self::Int(int) => {
                i64::try_from(int).map(Number::from).or_else(|_| u64::try_from(int).map(Number::from)).ok()
            }
            Self::Float(float) => Number::from_f64(float),
        };
        number.map(Value::Number).ok_or(EvalFault::Range)
    }

    /// Compares exactly. With rounding, the order of three numbers could be inconsistent.
    pub(super) fn compare(self, other: Self) -> std::cmp::Ordering {
        match (self, other) {
            (Self::Int(left), Self::Int(right)) => left.cmp(&right),
            (Self::Int(int), Self::Float(float)) => compare_to_float(int, float),
            (Self::Float(float), Self::Int(int)) => compare_to_float(int, float).reverse(),
            // JSON has no NaN, so there is always an order.
            (Self::Float(left), Self::Float(right)) => left.partial_cmp(&right).unwrap_or(Ordering::Equal),
        }
    }

    pub(super) fn equals(self, other: Self) -> bool {
        self.compare(other) == Ordering::Equal
    }

    pub(super) fn negate(self) -> Self {
        match self {
            Self::Int(int) => Self::Int(-int),
            Self::Float(float) => Self::Float(-float),
        }
    }

    pub(super) fn abs(self) -> Self {
        match self {
            Self::Int(int) => Self::Int(int.abs()),
            Self::Float(float) => Self::Float(float.abs()),
        }
    }

    /// Returns the whole part; `None` if it is too large.
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
    pub(super) fn truncate(self) -> Option<Self> {
        match self {
            Self::Int(_) => Some(self),
            Self::Float(float) if float.abs() < 1.9e19 => Some(Self::Int(float.trunc() as i128)),
            Self::Float(_) => None,
        }
    }
}

/// Applies an operator to two numbers.
pub(super) fn apply(op: Op, left: Num, right: Num) -> Result<Value, EvalFault> {
    let number = match (op, left, right) {
        (Op::Divide | Op::FloorDivide | Op::Remainder, _, right) if right.equals(Num::Int(0)) => {
            return Err(EvalFault::Zero);
        }
        (Op::Divide, left, right) => Num::Float(left.float() / right.float()),
        (op, Num::Int(left), Num::Int(right)) => Num::Int(whole(op, left, right).ok_or(EvalFault::Range)?),
        (op, left, right) => Num::Float(fraction(op, left.float(), right.float())),
    };
    number.value()
}

/// Both operands fit in 64 bits, so only a product can overflow 128 bits.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other operators do not calculate")]
fn whole(op: Op, left: i128, right: i128) -> Option<i128> {
    // Python's floor division: `div_euclid` rounds down for positive divisors only. `max(1)` avoids a panic for other
    // operators.
    let floor = left.div_euclid(right.max(1));
    match op {
        Op::Add => left.checked_add(right),
        Op::Subtract => left.checked_sub(right),
        Op::Multiply => left.checked_mul(right),
        Op::FloorDivide if right > 0 => Some(floor),
        Op::FloorDivide => Some((-left).div_euclid(-right)),
        Op::Remainder if right > 0 => Some(left - floor * right),
        Op::Remainder => Some(left - (-left).div_euclid(-right) * right),
        _ => None,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other operators do not calculate")]
fn fraction(op: Op, left: f64, right: f64) -> f64 {
    match op {
        Op::Add => left + right,
        Op::Subtract => left - right,
        Op::Multiply => left * right,
        Op::FloorDivide => (left / right).floor(),
        Op::Remainder => left - (left / right).floor() * right,
        _ => f64::NAN,
    }
}
