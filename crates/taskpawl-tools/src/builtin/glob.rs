use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::walk::{Gaps, files, matcher};
use super::{Blocking, invalid, parse};
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
                "description": "A path pattern from the working directory: `*` within a directory, `**` over several, `{a,b}`. Files that `.gitignore` names are left out.",
            },
        },
        "required": ["pattern"],
        "additionalProperties": false,
    });
    let result = json!({
        "type": "object",
        "properties": {
            "paths": {"type": "array", "items": {"type": "string"}, "description": "Sorted, from the working directory."},
            "truncated": {"const": true, "description": "More than 10000 files match; these are the first."},
            "unreadable": {"type": "integer", "description": "How many directories could not be read."},
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
        return Err(invalid(
            "glob",
            "pattern",
            "has to start from the working directory and go without `..`",
        ));
    }
    let pattern = args.pattern.strip_prefix("./").unwrap_or(&args.pattern);
    let matcher = matcher("glob", "pattern", pattern)?;
    let root = Root::open(cx)?;
    let dir = root.real_dir()?;
    let mut paths = Vec::new();
    let mut gaps = Gaps::default();
    files(cx, &dir, &dir, &mut gaps, |found, _| {
        // The walk goes by names; whoever swaps a directory for a link meanwhile would have it list what lies outside.
        if !matcher.is_match(&found.shown) || root.real_path(&found.path).ok().as_ref() != Some(&found.path) {
            return Ok(true);
        }
        if paths.len() == MAX_PATHS {
            return Ok(false);
        }
        paths.push(Value::from(found.shown.to_string_lossy()));
        Ok(true)
    })?;
    Ok(gaps.tell(Map::from_iter([("paths".to_owned(), paths.into())])))
}
