//! File requests of agents, answered by the built-in tools with their rules for paths.

use serde_json::{Map, Value, json};
use taskpawl_text::error_chain;
use taskpawl_tools::{CallContext, Registry, call_guarded};

use crate::connection::RequestError;
use crate::words::text;

/// Largest file that an agent gets as a whole, in bytes.
const MAX_FILE_BYTES: usize = 8 << 20;

/// A file request, as a call of a built-in tool.
#[derive(Debug)]
pub(crate) struct FileRequest {
    pub(crate) tool: &'static str,
    pub(crate) args: Map<String, Value>,
}

impl FileRequest {
    /// Reads a request; `None` for other methods.
    pub(crate) fn of(method: &str, params: &Value) -> Option<Self> {
        let path = text(params, "path");
        let (tool, args) = match method {
            "fs/read_text_file" => {
                let mut args = json!({"path": path});
                for (theirs, ours) in [("line", "offset"), ("limit", "limit")] {
                    if let Some(number) = params.get(theirs).and_then(Value::as_u64) {
                        args[ours] = number.max(1).into();
                    }
                }
                ("read_file", args)
            }
            "fs/write_text_file" => ("write_file", json!({"path": path, "content": text(params, "content")})),
            _ => return None,
        };
        Some(Self { tool, args: args.as_object().cloned().unwrap_or_default() })
    }

    /// Makes the call, and returns the answer for the agent.
    pub(crate) async fn run(self, cx: &CallContext) -> Result<Value, RequestError> {
        let registry = Registry::builtin();
        let Some(tool) = registry.get(self.tool).cloned() else {
            return Err(RequestError::unknown(self.tool));
        };
        let mut cx = cx.clone();
        cx.limits.keep_bytes = MAX_FILE_BYTES;
        // A file that is cut for the agent is no cut in the result of the call.
        cx.cut = None;
        let result = call_guarded(tool, cx, Value::Object(self.args)).await;
        let result = result.map_err(|error| RequestError::failed(error_chain(&error)))?;
        if self.tool == "write_file" {
            return Ok(Value::Null);
        }
        if result["truncated"] == true && is_too_large(&result) {
            return Err(RequestError::failed(
                "the file is too large: read it in parts, with `line` and `limit`",
            ));
        }
        Ok(json!({"content": result["content"]}))
    }
}

fn is_too_large(result: &Value) -> bool {
    result["bytes"].as_u64().is_some_and(|bytes| bytes >= MAX_FILE_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_are_read_and_written_inside_the_project_alone() {
        let dir = tempfile::tempdir().unwrap();
        let cx = CallContext::new(dir.path().canonicalize().unwrap(), dir.path().join("out"));
        let path = |name: &str| cx.root.join(name).display().to_string();
        let ask = async |method: &str, params: Value| {
            FileRequest::of(method, &params).unwrap().run(&cx).await.map_err(|error| error.message)
        };
        let write = json!({"sessionId": "s", "path": path("a.txt"), "content": "1\n2\n3\n"});
        assert_eq!(ask("fs/write_text_file", write).await, Ok(Value::Null));
        let read = json!({"path": path("a.txt")});
        assert_eq!(ask("fs/read_text_file", read).await.unwrap()["content"], "1\n2\n3\n");
        let part = json!({"path": path("a.txt"), "line": 2, "limit": 1});
        assert_eq!(ask("fs/read_text_file", part).await.unwrap()["content"], "2\n");
        let outside = json!({"path": "/etc/passwd"});
        assert!(ask("fs/read_text_file", outside).await.unwrap_err().contains("/etc/passwd"));
        let outside = json!({"path": path("../x"), "content": ""});
        assert!(ask("fs/write_text_file", outside).await.is_err());
        assert!(FileRequest::of("terminal/create", &json!({})).is_none());
    }
}
