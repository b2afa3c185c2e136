use std::collections::BTreeMap;
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::{Value, json};

use super::first::First;
use crate::builtin::common::{Blocking, parse};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::root::{Root, io_error};
use crate::tool::{Hints, ToolSpec};

const MAX_ENTRIES: usize = 10_000;

/// Size of an entry in the result, in bytes, apart from its name.
const ENTRY_BYTES: usize = 48;

pub(super) fn tool() -> Blocking {
    let args = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "A directory inside the project root; `.` is the working directory."},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    let result = json!({
        "type": "object",
        "properties": {
            "entries": {
                "type": "array",
                "description": "Sorted by name.",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "type": {"enum": ["file", "dir", "symlink", "other"]},
                        "size": {"type": "integer", "description": "Bytes."},
                    },
                    "required": ["name", "type", "size"],
                    "additionalProperties": false,
                },
            },
            "truncated": {"const": true, "description": "Set if only the first entries are included: there are more than fit (10000, or 256 KiB or `keep` of the call)."},
        },
        "required": ["entries"],
        "additionalProperties": false,
    });
    let spec = ToolSpec::new("list_dir", "Lists the contents of a directory.", args);
    let hints = Hints { read_only: true, idempotent: true, ..Hints::default() };
    Blocking { spec: spec.with_result(result).with_hints(hints), work: run }
}

#[derive(Deserialize)]
struct Args {
    path: String,
}

fn run(cx: &CallContext, args: Value) -> Result<Value, ToolError> {
    let args: Args = parse("list_dir", args)?;
    let path = Path::new(&args.path);
    let dir = Root::open(cx)?.list(path)?;
    let failed = |errno: Errno| io_error("list", path, errno.into());
    let most = if cx.limits.is_keep_chosen { usize::MAX } else { MAX_ENTRIES };
    let mut names = First::new(most, cx.limits.keep_bytes);
    for entry in Dir::read_from(&dir).map_err(failed)? {
        cx.check()?;
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.offer(name.to_owned(), name.to_bytes().len() + ENTRY_BYTES);
        }
    }
    let is_truncated = names.is_cut();
    if is_truncated {
        cx.report_cut("/entries");
    }
    let mut entries = Vec::new();
    for name in names.into_sorted() {
        cx.check()?;
        entries.extend(entry(&dir, &name).map_err(failed)?);
    }
    let truncated = is_truncated.then_some(("truncated", json!(true)));
    let result: BTreeMap<_, _> = [("entries", Value::Array(entries))].into_iter().chain(truncated).collect();
    Ok(json!(result))
}

/// Returns one entry; `None` if it has disappeared since its name was read.
fn entry(dir: &OwnedFd, name: &CStr) -> Result<Option<Value>, Errno> {
    let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => "file",
        FileType::Directory => "dir",
        FileType::Symlink => "symlink",
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => "other",
    };
    Ok(Some(json!({"name": name.to_string_lossy(), "type": kind, "size": stat.st_size})))
}
