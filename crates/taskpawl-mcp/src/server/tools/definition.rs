//! Definitions of tools, and the parts of their schemas.

use serde_json::{Value, json};

/// The behaviour of a tool, in the terms of MCP.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "four independent facts, named as in MCP")]
pub(super) struct Hints {
    pub(super) reads_only: bool,
    pub(super) destroys: bool,
    pub(super) is_idempotent: bool,
    pub(super) is_open: bool,
}

pub(super) const READS: Hints =
    Hints { reads_only: true, destroys: false, is_idempotent: true, is_open: false };

/// Repeating a call with a `request_id` changes nothing; without one it may.
pub(super) const WRITES: Hints =
    Hints { reads_only: false, destroys: false, is_idempotent: false, is_open: false };

/// The definition of a tool, as clients see it.
pub(super) struct Definition {
    pub(super) description: &'static str,
    pub(super) input: Value,
    pub(super) hints: Hints,
}

/// Returns the schema of a tool's arguments. Every tool takes `agent`; those that write take `request_id`.
pub(super) fn schema(mut properties: Value, required: &[&str], writes: bool) -> Value {
    properties["agent"] = text();
    if writes {
        properties["request_id"] = text();
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

pub(super) fn text() -> Value {
    json!({"type": "string"})
}

pub(super) fn texts() -> Value {
    json!({"type": "array", "items": text()})
}

pub(super) fn number() -> Value {
    json!({"type": "integer"})
}

pub(super) fn switch() -> Value {
    json!({"type": "boolean"})
}
