use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::builtin::common::{Blocking, invalid, parse};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::root::{Root, io_error, write_all};
use crate::tool::{Hints, ToolSpec};

/// Largest file before and after the edit, in bytes; both versions are in memory at the same time.
const MAX_BYTES: u64 = 8 << 20;

/// Most lines that the error for an ambiguous text names.
const MAX_NAMED: usize = 5;

pub(super) fn tool() -> Blocking {
    let args = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "A text file inside the project root, of at most 8 MiB."},
            "old": {"type": "string", "minLength": 1, "description": "The exact text to replace; it must occur once."},
            "new": {"type": "string"},
            "all": {"type": "boolean", "default": false, "description": "Replace every occurrence."},
        },
        "required": ["path", "old", "new"],
        "additionalProperties": false,
    });
    let result = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "replacements": {"type": "integer"}},
        "required": ["path", "replacements"],
        "additionalProperties": false,
    });
    let spec = ToolSpec::new("edit_file", "Replaces a piece of a text file.", args);
    Blocking {
        spec: spec.with_result(result).with_hints(Hints { destructive: true, ..Hints::default() }),
        work: run,
    }
}

#[derive(Deserialize)]
struct Args {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

fn run(cx: &CallContext, args: Value) -> Result<Value, ToolError> {
    let args: Args = parse("edit_file", args)?;
    if args.old == args.new {
        return Err(invalid("edit_file", "new", "is the same as `args.old`"));
    }
    let path = Path::new(&args.path);
    let root = Root::open(cx)?;
    let content = read(&root, path)?;
    let count = content.match_indices(&args.old).count();
    match count {
        0 => return Err(absent(&args, &content)),
        1 => {}
        _ if args.all => {}
        _ => return Err(ambiguous(&args, &content, count)),
    }
    // Computed in advance, for many replacements by a long text could exhaust the memory.
    let after = (content.len() - count * args.old.len()) as u64 + count as u64 * args.new.len() as u64;
    if after > MAX_BYTES {
        let problem = format!("`{}` would have {after} bytes, more than the limit of {MAX_BYTES}", args.path);
        return Err(ToolError::failed(problem));
    }
    let content = content.replace(&args.old, &args.new);
    root.replace(path, None, |file| write_all(file, content.as_bytes(), path))?;
    Ok(json!({"path": args.path, "replacements": count}))
}

/// Explains a text that seems to be in the file but is not found: readers of the file usually cannot see the kind of
/// its line ends.
fn absent(args: &Args, content: &str) -> ToolError {
    let with_returns = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    let (path, old) = (&args.path, &args.old);
    let why = if content.contains(&with_returns(old)) {
        "; its lines end in `\\r\\n`: use that in `old` and `new`"
    } else if content.contains(&old.replace("\r\n", "\n")) {
        "; its lines end in `\\n` only: use that in `old` and `new`"
    } else {
        ""
    };
    ToolError::failed(format!("`old` does not occur in `{path}`{why}"))
}

/// Lists the lines of an ambiguous text, so that the caller can add context for the intended one.
fn ambiguous(args: &Args, content: &str, count: usize) -> ToolError {
    let (mut lines, mut line, mut from) = (Vec::new(), 1, 0);
    for (at, _) in content.match_indices(&args.old).take(MAX_NAMED) {
        line += content[from..at].matches('\n').count();
        from = at;
        lines.push(line.to_string());
    }
    let more = count.saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    ToolError::failed(format!(
        "`old` occurs {count} times in `{}`, in lines {}{more}; include more surrounding text, or set `all`",
        args.path,
        lines.join(", ")
    ))
}

fn read(root: &Root, path: &Path) -> Result<String, ToolError> {
    let mut bytes = Vec::new();
    let read = root.read(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    if read.map_err(|error| io_error("read", path, error))? as u64 > MAX_BYTES {
        return Err(ToolError::failed(format!("`{}` has more than {MAX_BYTES} bytes", path.display())));
    }
    if bytes.contains(&0) {
        let problem = format!("`{}` is a binary file: it contains a NUL byte", path.display());
        return Err(ToolError::failed(problem));
    }
    String::from_utf8(bytes).map_err(|_| ToolError::failed(format!("`{}` is not UTF-8 text", path.display())))
}
