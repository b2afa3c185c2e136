use std::path::Path;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::builtin::common::{FOR_FILES, blocking, parse};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::root::{Root, io_error, write_all};
use crate::tool::{Hints, Tool, ToolSpec};

/// Tool that writes a whole file, or appends to one.
#[derive(Debug)]
pub(super) struct WriteFile(ToolSpec);

impl WriteFile {
    pub(super) fn new() -> Self {
        let args = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1, "description": "A file inside the project root; missing directories are created."},
                "content": {"type": "string"},
                "append": {"type": "boolean", "default": false, "description": "Add to the end instead of replacing the file."},
                "mode": {"type": "string", "pattern": "^0?[0-7]{3}$", "examples": ["644", "755"], "description": "Permissions in octal."},
            },
            "required": ["path", "content"],
            "additionalProperties": false,
        });
        let result = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "bytes": {"type": "integer", "description": "The number of bytes written."},
                "sha256": {"type": "string", "description": "The hash of the bytes written."},
            },
            "required": ["path", "bytes", "sha256"],
            "additionalProperties": false,
        });
        let spec = ToolSpec::new("write_file", "Writes a text file in one step, or appends to one.", args);
        // Not idempotent in general, because of `append`; `is_repeatable` decides by the arguments.
        Self(spec.with_result(result).with_hints(Hints { destructive: true, ..Hints::default() }))
    }
}

#[async_trait]
impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    fn file_beneath_root<'a>(&self, args: &'a Value) -> Option<&'a str> {
        args.get("path")?.as_str()
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        blocking(cx, FOR_FILES, move |cx| run(cx, args)).await
    }

    fn is_repeatable(&self, args: &Value) -> bool {
        args.get("append").is_none_or(|append| append == false)
    }
}

#[derive(Deserialize)]
struct Args {
    path: String,
    content: String,
    #[serde(default)]
    append: bool,
    mode: Option<String>,
}

fn run(cx: &CallContext, args: Value) -> Result<Value, ToolError> {
    let args: Args = parse("write_file", args)?;
    let path = Path::new(&args.path);
    let root = Root::open(cx)?;
    let content = args.content.as_bytes();
    let mode = args.mode.as_deref().and_then(|mode| u32::from_str_radix(mode, 8).ok());
    if args.append {
        append(&root, path, content, mode)?;
    } else {
        root.replace(path, mode, |file| write_all(file, content, path))?;
    }
    let sha256 = format!("{:x}", Sha256::digest(content));
    Ok(json!({"path": args.path, "bytes": content.len(), "sha256": sha256}))
}

fn append(root: &Root, path: &Path, content: &[u8], mode: Option<u32>) -> Result<(), ToolError> {
    use std::os::unix::fs::PermissionsExt;

    let mut file = root.append(path)?;
    if let Some(mode) = mode {
        let permissions = std::fs::Permissions::from_mode(mode);
        file.set_permissions(permissions).map_err(|error| io_error("append to", path, error))?;
    }
    write_all(&mut file, content, path)?;
    file.sync_data().map_err(|error| io_error("append to", path, error))
}
