//! Answers of the dialects: a single text. The fields of JSON objects keep the order of their declaration.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use taskpawl_tools::ToolError;

/// An answer, before it becomes the result or the error of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The call succeeded.
    Said {
        /// The text.
        text: String,
        /// The names of arguments and fields that are not kept: a JSON object names them in its last field.
        ignored: BTreeSet<String>,
    },
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
        Self::said(text(answer))
    }

    fn said(text: String) -> Self {
        Self::Said { text, ignored: BTreeSet::new() }
    }

    /// Names arguments or fields that are not kept.
    pub(crate) fn ignoring(mut self, names: impl IntoIterator<Item = String>) -> Self {
        if let Self::Said { ignored, .. } = &mut self {
            ignored.extend(names);
        }
        self
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
            Self::Refused(text) => Self::said(text),
            said @ Self::Said { .. } => said,
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
            Self::Said { text, ignored } => Ok(Value::String(with_ignored(text, &ignored))),
            Self::Refused(text) => {
                Err(ToolError::Answered { message: text.clone(), result: Box::new(Value::String(text)) })
            }
        }
    }
}

/// Adds a last field to a JSON object. Parsing it would lose the order of its fields.
fn with_ignored(object: String, ignored: &BTreeSet<String>) -> String {
    match object.strip_suffix('}') {
        Some(start) if !ignored.is_empty() => format!("{start},\"ignored\":{}}}", text(ignored)),
        _ => object,
    }
}

/// Returns compact JSON.
pub(crate) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("BUG: an answer is always valid JSON")
}
