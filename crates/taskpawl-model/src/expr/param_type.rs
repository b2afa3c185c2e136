//! The types of parameters, by which expressions are checked as well.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::task::spec::word_enum;

word_enum! {
    /// The type of a parameter.
    ParamType {
        /// Text.
        String = "string",
        /// A whole number.
        Integer = "integer",
        /// A number.
        Number = "number",
        /// True or false.
        Boolean = "boolean",
        /// A list.
        Array = "array",
        /// An object.
        Object = "object",
    }
}

impl ParamType {
    /// Returns whether a value is of this type.
    pub fn fits(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }

    /// Returns whether all values of another type are of this one.
    pub(crate) fn includes(self, other: Self) -> bool {
        other == self || (other, self) == (Self::Integer, Self::Number)
    }

    /// Returns how an expression converts values of another type to this one.
    pub(crate) fn conversion_of(self, other: Self) -> Option<&'static str> {
        match (self, other) {
            (Self::String, _) => Some("add `| string`, or `| tojson`"),
            (Self::Integer, Self::String | Self::Number) => Some("add `| int`"),
            (Self::Number, Self::String) => Some("add `| float`"),
            (Self::Boolean, Self::String) => Some("compare it: `… == '…'`"),
            (Self::Array, Self::String) => Some("add `| lines`, `| split(',')` or `| fromjson`"),
            (Self::Object, Self::String) => Some("add `| fromjson`"),
            (Self::Integer | Self::Number | Self::Boolean | Self::Array | Self::Object, _) => None,
        }
    }

    /// Returns the type of a value; `None` for none, which no parameter can be.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.fits(value))
    }

    /// Returns a description of the type for error messages.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::String => "text",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "`true` or `false`",
            Self::Array => "a list",
            Self::Object => "an object",
        }
    }
}
