//! Tests of expressions.

mod faults;
mod hostile;
mod language;
mod operators;
mod secrets;
mod shell;

use taskpawl_model::expr::evaluate_expression;

pub(crate) use crate::data::data;

pub(crate) fn shown(text: &str) -> String {
    match evaluate_expression(text, &data()) {
        Ok(value) => value.value.to_string(),
        Err(error) => error.to_string(),
    }
}
