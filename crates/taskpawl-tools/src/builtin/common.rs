//! What the built-in tools share.

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;
use taskpawl_process::free_descriptors;

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
        blocking(cx, FOR_FILES, move |cx| work(cx, args)).await
    }
}

/// Descriptors that a tool opens at once for a file: the root, the directories of a walk, and the file with its copy.
pub(crate) const FOR_FILES: u64 = 8;

/// Runs `work` on a blocking thread when `descriptors` more of them can be opened. A panic in it is resumed here; dropping the future cancels the context of the
/// work.
pub(crate) async fn blocking<T, F>(mut cx: CallContext, descriptors: u64, work: F) -> Result<T, ToolError>
where
    T: Send + 'static,
    F: FnOnce(&CallContext) -> Result<T, ToolError> + Send + 'static,
{
    // A child token: dropping this future must not cancel the context of the caller.
    cx.cancel = cx.cancel.child_token();
    let _cancelled_on_drop = cx.cancel.clone().drop_guard();
    // Without a share the call is over, as the work notices by itself.
    let share = free_descriptors(descriptors, cx.deadline, &cx.cancel).await;
    let work = move || {
        let _share = share;
        work(&cx)
    };
    match tokio::task::spawn_blocking(work).await {
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
