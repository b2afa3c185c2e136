use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::first::First;
use super::walk::{Gaps, files, matcher};
use crate::builtin::common::{Blocking, invalid, parse};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::root::{Root, is_inner};
use crate::tool::{Hints, ToolSpec};

const MAX_PATHS: usize = 10_000;

pub(super) fn tool() -> Blocking {
    let args = json!({
        "type": "object",
        "properties": {
            "pattern": {
                "type": "string",
                "minLength": 1,
                "description": "A path pattern relative to the working directory: `*` within a directory, `**` across directories, `{a,b}`. Files in `.gitignore` are skipped.",
            },
        },
        "required": ["pattern"],
        "additionalProperties": false,
    });
    let result = json!({
        "type": "object",
        "properties": {
            "paths": {"type": "array", "items": {"type": "string"}, "description": "Sorted, relative to the working directory."},
            "truncated": {"const": true, "description": "Set if only the first matches are included: more match than fit (10000, or 256 KiB or `keep` of the call)."},
            "unreadable": {"type": "integer", "description": "The number of unreadable directories."},
            "hidden": {"type": "integer", "description": "The number of skipped matching files and directories that are closed to tools, such as `.env`."},
        },
        "required": ["paths"],
        "additionalProperties": false,
    });
    let spec = ToolSpec::new("glob", "Finds files by a pattern.", args);
    let hints = Hints { read_only: true, idempotent: true, ..Hints::default() };
    Blocking { spec: spec.with_result(result).with_hints(hints), work: run }
}

#[derive(Deserialize)]
struct Args {
    pattern: String,
}

fn run(cx: &CallContext, args: Value) -> Result<Value, ToolError> {
    let args: Args = parse("glob", args)?;
    if !is_inner(Path::new(&args.pattern)) {
        return Err(invalid("glob", "pattern", "must be relative to the working directory, without `..`"));
    }
    let pattern = args.pattern.strip_prefix("./").unwrap_or(&args.pattern);
    let matcher = matcher("glob", "pattern", pattern)?;
    let root = Root::open(cx)?;
    let dir = root.real_dir()?;
    let most = if cx.limits.is_keep_chosen { usize::MAX } else { MAX_PATHS };
    let mut paths = First::new(most, cx.limits.keep_bytes);
    let mut gaps = Gaps::default();
    files(cx, &root, &dir, &dir, &mut gaps, |found, gaps| {
        if !matcher.is_match(&found.shown) || !paths.has_room_for(&found.shown) {
            return;
        }
        if root.closed().hides(&found.path).is_some() {
            gaps.hidden += 1;
            return;
        }
        // The walk uses plain paths. If a directory is swapped for a link meanwhile, it lists files outside of the
        // root.
        if root.real_path(&found.path).ok().as_ref() == Some(&found.path) {
            let bytes = found.shown.as_os_str().len() + 8;
            paths.offer(found.shown, bytes);
        }
    })?;
    gaps.is_truncated = paths.is_cut();
    if gaps.is_truncated {
        cx.report_cut("/paths");
    }
    let paths: Vec<Value> = paths.into_sorted().map(|path| path.to_string_lossy().into()).collect();
    Ok(gaps.tell(Map::from_iter([("paths".to_owned(), paths.into())])))
}
