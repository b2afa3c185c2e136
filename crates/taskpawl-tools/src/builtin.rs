//! The built-in tools.

use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::CallContext;
use crate::error::ToolError;
use crate::tool::{Tool, ToolSpec};

mod edit_file;
pub(crate) mod exec;
mod first;
mod glob;
mod grep;
#[cfg(feature = "http")]
pub(crate) mod http;
mod list_dir;
mod read_file;
mod shell;
mod simple;
mod walk;
pub(crate) mod words;
mod write_file;

pub(crate) use simple::duration;
pub use walk::has_unfit_ignore_file;

/// Returns the tool that sends HTTP requests.
#[cfg(feature = "http")]
pub(crate) fn http_request(access: http::HttpAccess) -> Arc<dyn Tool> {
    Arc::new(http::HttpRequest::new(access))
}

/// Returns all other built-in tools.
pub(crate) fn local() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(exec::Exec::new()),
        Arc::new(shell::Shell::new()),
        Arc::new(read_file::tool()),
        Arc::new(write_file::WriteFile::new()),
        Arc::new(edit_file::tool()),
        Arc::new(list_dir::tool()),
        Arc::new(glob::tool()),
        Arc::new(grep::tool()),
        Arc::new(simple::Sleep::new()),
        Arc::new(simple::Log::new()),
        Arc::new(simple::Fail::new()),
    ]
}

/// Tool with short blocking work on files beneath the root.
#[derive(Debug)]
struct Blocking {
    spec: ToolSpec,
    work: fn(&CallContext, Value) -> Result<Value, ToolError>,
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
fn parse<T: DeserializeOwned>(tool: &str, args: Value) -> Result<T, ToolError> {
    serde_json::from_value(args).map_err(|error| ToolError::InvalidArgs {
        tool: tool.to_owned(),
        field: "args".to_owned(),
        problem: format!("cannot be read: {error}"),
    })
}

/// Makes an error about an argument, for rules that a schema cannot express.
fn invalid(tool: &str, field: &str, problem: impl Into<String>) -> ToolError {
    ToolError::InvalidArgs { tool: tool.to_owned(), field: format!("args.{field}"), problem: problem.into() }
}
