//! What a dialect answers: one text, with the fields of its objects in the order in which they are declared.

use serde::Serialize;
use serde_json::Value;
use taskpawl_tools::ToolError;

/// An answer, before it is a result or an error of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The call did what it is for.
    Said(String),
    /// The call came to nothing: an error result with this text, so that a plan whose call it is does not go on as if it had worked.
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
    /// Answers with an object.
    pub(crate) fn json(answer: &impl Serialize) -> Self {
        Self::Said(text(answer))
    }

    /// Answers `{"ok":true}`.
    pub(crate) fn ok() -> Self {
        Self::json(&Flagged { ok: true, error: None })
    }

    /// Refuses with `{"ok":false,"error":"…"}`.
    pub(crate) fn not_ok(error: &str) -> Self {
        Self::Refused(text(&Flagged { ok: false, error: Some(error) }))
    }

    /// Returns the same text as a result that is no error.
    pub(crate) fn no_refusal(self) -> Self {
        match self {
            Self::Said(text) | Self::Refused(text) => Self::Said(text),
        }
    }

    /// Refuses with `{"error":"…"}`.
    pub(crate) fn error(error: impl AsRef<str>) -> Self {
        Self::Refused(text(&Error { error: error.as_ref() }))
    }

    /// Refuses with a plain line.
    pub(crate) fn line(line: impl Into<String>) -> Self {
        Self::Refused(line.into())
    }

    /// Returns the result of a call that gave this answer.
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
