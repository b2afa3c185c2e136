//! The error of a definition.

use thiserror::Error;

/// Error in the definition of a tool.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{}` {problem}", self.field())]
#[non_exhaustive]
pub struct DefinitionError {
    /// Path of the field, one name per element; list elements are numbered from 0.
    pub at: Vec<String>,
    /// Description of the problem, worded to follow the name of the field.
    pub problem: String,
}

impl DefinitionError {
    /// Returns the path of the field as text, such as `params.namespace.type`.
    pub fn field(&self) -> String {
        let mut field = String::new();
        for step in &self.at {
            let is_index = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
            match (is_index, field.is_empty()) {
                (true, _) => field.extend(["[", step, "]"]),
                (false, true) => field.push_str(step),
                (false, false) => field.extend([".", step]),
            }
        }
        crate::text::one_line(&field)
    }
}
