//! What the built-in tools share.

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::CallContext;
use crate::error::ToolError;
use crate::tool::{Tool, ToolSpec};

/// Tool with short blocking work on files beneath the root.
#[derive(Debug)]
pub(crate) struct Blocking {
    pub(crate) spec: ToolSpec,
    pub(crate) work: fn(&CallContext, Value) -> Result<Value, ToolError>,
}

#[async_trait]
impl Tool for Blocking {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    fn file_beneath_root<'a>(&self, args: &'a Value) -> Option<&'a str> {
        args.get("path")?.as_str()
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let work = self.work;
        blocking(cx, move |cx| work(cx, args)).await
    }
}

/// Runs `work` on a blocking thread. A panic in it is resumed here; dropping the future cancels the context of the
/// work.
pub(crate) async fn blocking<T, F>(mut cx: CallContext, work: F) -> Result<T, ToolError>
where
    T: Send + 'static,
    F: FnOnce(&CallContext) -> Result<T, ToolError> + Send + 'static,
{
    // A child token: dropping this future must not cancel the context of the caller.
    cx.cancel = cx.cancel.child_token();
    let _cancelled_on_drop = cx.cancel.clone().drop_guard();
    match tokio::task::spawn_blocking(move || work(&cx)).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime shut down before the work began.
            Err(_) => Err(ToolError::Cancelled { result: None }),
        },
    }
}

/// Deserializes arguments that the schema has accepted. For unchecked arguments the error names no field.
pub(crate) fn parse<T: DeserializeOwned>(tool: &str, args: Value) -> Result<T, ToolError> {
    serde_json::from_value(args).map_err(|error| ToolError::InvalidArgs {
        tool: tool.to_owned(),
        field: "args".to_owned(),
        problem: format!("cannot be read: {error}"),
    })
}

/// Makes an error about an argument, for rules that a schema cannot express.
pub(crate) fn invalid(tool: &str, field: &str, problem: impl Into<String>) -> ToolError {
    ToolError::InvalidArgs { tool: tool.to_owned(), field: format!("args.{field}"), problem: problem.into() }
}
