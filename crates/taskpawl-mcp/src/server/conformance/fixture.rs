//! The parts that all fixtures share.

use rmcp::model::{CallToolResponse, CallToolResult};
use rmcp::service::{RequestContext, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Beginning of the suite's addresses.
pub(super) const SCHEME: &str = "test://";

pub(super) type Context = RequestContext<RoleServer>;

/// Parses a fixture as a type of the protocol.
pub(super) fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("BUG: a fixture is not what the protocol says")
}

/// Parses a result and marks it as complete.
pub(super) fn complete<T: DeserializeOwned>(mut result: Value) -> T {
    result["resultType"] = json!("complete");
    typed(result)
}

pub(super) fn text_of(text: impl Into<String>) -> CallToolResponse {
    complete::<CallToolResult>(json!({"content": [{"type": "text", "text": text.into()}]})).into()
}
