//! A tool of a server as a tool of plans.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use taskpawl::tools::{
    BeforeCall, CallContext, CreatedInCall, Progress, Tool, ToolError, ToolSpec, check_foreign,
};

use super::catalogue::Entry;
use super::pool::Server;
use super::result::result_of;

#[derive(Debug)]
pub(super) struct McpTool {
    spec: ToolSpec,
    /// The server's name for it.
    name: String,
    server: Arc<Server>,
}

impl McpTool {
    pub(super) fn new(server: &Arc<Server>, entry: &Entry) -> Self {
        let mut spec = entry.spec(format!("{}/{}", server.config.name, entry.name));
        spec.timeout = server.config.timeout;
        Self { spec, name: entry.name.clone(), server: Arc::clone(server) }
    }
}

impl McpTool {
    /// Returns the first violation of the tool's `outputSchema` by a structured result, as far as the schema is
    /// understood.
    fn problem_of(&self, result: &Value) -> Option<String> {
        let schema = self.spec.result_schema.as_ref()?;
        match check_foreign(&self.spec.name, schema, result) {
            Err(ToolError::InvalidArgs { field, problem, .. }) => {
                let at = field.strip_prefix("args").unwrap_or(&field);
                Some(format!("it does not fit the `outputSchema` of its tool: `result{at}` {problem}"))
            }
            Err(other) => Some(other.to_string()),
            Ok(()) => None,
        }
    }
}

/// Reports a fault in a result as a warning, and in the result itself if that is an object. The result is used
/// nevertheless.
fn warn(cx: &CallContext, result: &mut Value, problem: String) {
    if let Some(progress) = &cx.progress {
        progress(Progress::Warning(problem.clone()));
    }
    if let Value::Object(result) = result {
        result.entry(WARNING).or_insert(Value::String(problem));
    }
}

/// The field with the fault of a result.
const WARNING: &str = "_warning";

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let Value::Object(args) = args else {
            return Err(ToolError::InvalidArgs {
                tool: self.spec.name.clone(),
                field: "args".to_owned(),
                problem: "has to be an object".to_owned(),
            });
        };
        let before = if self.server.is_program() { Some(BeforeCall::of(&cx).await?) } else { None };
        let answer = self.server.call(&cx, &self.spec.name, &self.name, args).await;
        let created = match before {
            Some(before) => before.created(&cx, self.server.config.sandbox.write.clone()).await,
            None => CreatedInCall::default(),
        };
        let result = answer.and_then(|answer| {
            let is_structured = answer.result.structured_content.is_some();
            let mut result = result_of(&self.spec.name, answer.result, answer.hint.as_deref())?;
            if let Some(problem) = is_structured.then(|| self.problem_of(&result)).flatten() {
                warn(&cx, &mut result, problem);
            }
            Ok(result)
        });
        with_created(&cx, created, result)
    }

    fn is_foreign(&self) -> bool {
        true
    }
}

/// Reports files created during the call that other programs obey later, such as configuration. They become a
/// warning, and a field of the result if that is an object.
fn with_created(
    cx: &CallContext,
    created: CreatedInCall,
    result: Result<Value, ToolError>,
) -> Result<Value, ToolError> {
    let mut sandbox = Map::new();
    created.tell(cx, &mut sandbox);
    if sandbox.is_empty() {
        return result;
    }
    match result {
        Ok(value) => Ok(with_sandbox(value, sandbox)),
        Err(ToolError::Answered { message, result }) => {
            Err(ToolError::Answered { message, result: Box::new(with_sandbox(*result, sandbox)) })
        }
        Err(error) => Err(error),
    }
}

fn with_sandbox(mut value: Value, sandbox: Map<String, Value>) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.entry("sandbox").or_insert(Value::Object(sandbox));
    }
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_of_the_server_is_added_to_and_never_changed() {
        let sandbox = || Map::from_iter([("created".to_owned(), json!([".mcp.json"]))]);
        for (value, expected) in [
            (json!({"n": 1}), json!({"n": 1, "sandbox": {"created": [".mcp.json"]}})),
            (json!({"sandbox": "mine"}), json!({"sandbox": "mine"})),
            (json!("text"), json!("text")),
            (Value::Null, Value::Null),
        ] {
            assert_eq!(with_sandbox(value, sandbox()), expected);
        }
    }
}
