//! Answers of the dialects: a single text. The fields of JSON objects keep the order of their declaration.

use serde::Serialize;
use serde_json::Value;
use taskpawl_tools::ToolError;

/// An answer, before it becomes the result or the error of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The call succeeded.
    Said(String),
    /// The call failed. It becomes an error with this text, so that a plan that contains the call does not continue as
    /// if it had succeeded.
    Refused(String),
}

#[derive(Serialize)]
struct Error<'a> {
    error: &'a str,
}

#[derive(Serialize)]
struct Flagged<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl Answer {
    /// Succeeds with an object.
    pub(crate) fn json(answer: &impl Serialize) -> Self {
        Self::Said(text(answer))
    }

    /// Succeeds with `{"ok":true}`.
    pub(crate) fn ok() -> Self {
        Self::json(&Flagged { ok: true, error: None })
    }

    /// Fails with `{"ok":false,"error":"…"}`.
    pub(crate) fn not_ok(error: &str) -> Self {
        Self::Refused(text(&Flagged { ok: false, error: Some(error) }))
    }

    /// Turns a failure into a success with the same text.
    pub(crate) fn no_refusal(self) -> Self {
        match self {
            Self::Said(text) | Self::Refused(text) => Self::Said(text),
        }
    }

    /// Fails with `{"error":"…"}`.
    pub(crate) fn error(error: impl AsRef<str>) -> Self {
        Self::Refused(text(&Error { error: error.as_ref() }))
    }

    /// Fails with a plain line of text.
    pub(crate) fn line(line: impl Into<String>) -> Self {
        Self::Refused(line.into())
    }

    /// Converts the answer to the result of a tool call.
    pub(crate) fn into_result(self) -> Result<Value, ToolError> {
        match self {
            Self::Said(text) => Ok(Value::String(text)),
            Self::Refused(text) => {
                Err(ToolError::Answered { message: text.clone(), result: Box::new(Value::String(text)) })
            }
        }
    }
}

/// Returns compact JSON.
pub(crate) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("BUG: an answer is always valid JSON")
}
