use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::builtin::common::{Blocking, parse};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::root::{Root, io_error};
use crate::tool::{Hints, ToolSpec};

pub(super) fn tool() -> Blocking {
    let args = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "A file inside the project root."},
            "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "First line, counted from 1."},
            "limit": {"type": "integer", "minimum": 1, "description": "The maximum number of lines; by default all that fit into a result (256 KiB, or `keep` of the call)."},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    let result = json!({
        "type": "object",
        "properties": {
            "content": {"type": "string"},
            "bytes": {"type": "integer", "description": "Bytes in `content`."},
            "lines": {"type": "integer", "description": "Lines in `content`."},
            "truncated": {"type": "boolean", "description": "True if the file continues after `content`."},
            "notUtf8": {"type": "boolean", "description": "True if invalid UTF-8 was replaced by U+FFFD in `content`."},
        },
        "required": ["content", "bytes", "lines", "truncated"],
        "additionalProperties": false,
    });
    let spec = ToolSpec::new("read_file", "Reads a text file, or some of its lines.", args);
    let hints = Hints { read_only: true, idempotent: true, ..Hints::default() };
    Blocking { spec: spec.with_result(result).with_hints(hints), work: run }
}

#[derive(Deserialize)]
struct Args {
    path: String,
    #[serde(default = "one")]
    offset: u64,
    limit: Option<u64>,
}

fn one() -> u64 {
    1
}

fn run(cx: &CallContext, args: Value) -> Result<Value, ToolError> {
    let args: Args = parse("read_file", args)?;
    let path = Path::new(&args.path);
    let mut lines = Lines { reader: BufReader::new(Root::open(cx)?.read(path)?), path, has_nul: false };
    for _ in 1..args.offset {
        if !lines.skip_one(cx)? {
            break;
        }
    }
    let mut content = Vec::new();
    let mut count = 0;
    while args.limit.is_none_or(|limit| count < limit) && content.len() < cx.limits.keep_bytes {
        cx.check()?;
        if !lines.read_one(&mut content, cx.limits.keep_bytes)? {
            break;
        }
        count += 1;
    }
    let truncated = !lines.is_at_end()?;
    if lines.has_nul {
        return Err(ToolError::failed(format!("`{}` is a binary file: it contains a NUL byte", args.path)));
    }
    if truncated && args.limit.is_none_or(|limit| count < limit || !content.ends_with(b"\n")) {
        cx.report_cut("/content");
    }
    let bytes = content.len();
    // A cut may also split a character, which is no encoding error.
    let is_wrong = |error: std::str::Utf8Error| error.error_len().is_some() || !truncated;
    let not_utf8 = std::str::from_utf8(&content).is_err_and(is_wrong);
    let content = String::from_utf8_lossy(&content);
    let mut result = json!({"content": content, "bytes": bytes, "lines": count, "truncated": truncated});
    if not_utf8 {
        result["notUtf8"] = Value::Bool(true);
    }
    Ok(result)
}

struct Lines<'a> {
    reader: BufReader<std::fs::File>,
    path: &'a Path,
    has_nul: bool,
}

impl Lines<'_> {
    /// Appends a line to `content`, which then holds at most `max_bytes`. Returns `false` at the end of the file.
    fn read_one(&mut self, content: &mut Vec<u8>, max_bytes: usize) -> Result<bool, ToolError> {
        let start = content.len();
        let room = max_bytes.saturating_sub(start) as u64;
        let read = self.reader.by_ref().take(room).read_until(b'\n', content);
        let read = read.map_err(|error| io_error("read", self.path, error))?;
        self.has_nul |= content[start..].contains(&0);
        Ok(read > 0)
    }

    /// Skips a line. Returns `false` at the end of the file. A line can be as long as the file, so that each buffer
    /// checks for cancellation.
    fn skip_one(&mut self, cx: &CallContext) -> Result<bool, ToolError> {
        let mut has_read = false;
        loop {
            cx.check()?;
            let buffer = self.reader.fill_buf().map_err(|error| io_error("read", self.path, error))?;
            if buffer.is_empty() {
                return Ok(has_read);
            }
            has_read = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(buffer.len(), |end| end + 1);
            self.reader.consume(count);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    fn is_at_end(&mut self) -> Result<bool, ToolError> {
        let rest = self.reader.fill_buf().map_err(|error| io_error("read", self.path, error))?;
        Ok(rest.is_empty())
    }
}
