//! The tool `wait`. Runs do not start it: the store keeps the wait, and no process belongs to it.

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::builtin::common::invalid;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::tool::{Hints, Tool, ToolSpec};

const HARMLESS: Hints = Hints { read_only: true, idempotent: true, destructive: false, open_world: false };

#[derive(Debug)]
pub(super) struct Wait(ToolSpec);

impl Wait {
    pub(super) fn new() -> Self {
        let period = |description: &str| {
            json!({
                "type": "string",
                "pattern": r"^[0-9]+(\.[0-9]+)?(ms|s|m|h)$",
                "description": description,
                "examples": ["10ms", "0.5s", "5m", "2h"],
            })
        };
        let schema = json!({
            "type": "object",
            "properties": {
                "for": period("The time to wait: a number with a unit."),
                "until": {
                    "type": "string",
                    "description": "The time at which the wait ends, with its offset from UTC.",
                    "examples": ["2030-01-31T09:00:00Z", "2030-01-31T09:00:00+02:00"],
                },
                "signal": {
                    "type": "string",
                    "pattern": "^[A-Za-z0-9._-]{1,64}$",
                    "description": "The name of the signal that ends the wait. Its data is the result.",
                },
                "timeout": period("Only with `signal`: the longest time to wait, after which the call fails."),
            },
            "minProperties": 1,
            "maxProperties": 2,
            "additionalProperties": false,
        });
        let description = "Waits for a time or a signal, without a run: the store keeps the wait.";
        Self(ToolSpec::new("wait", description, schema).with_hints(HARMLESS))
    }
}

#[async_trait]
impl Tool for Wait {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    async fn call(&self, _cx: CallContext, _args: Value) -> Result<Value, ToolError> {
        Err(invalid("wait", "for", "only a task can wait: write the call into a plan"))
    }
}
