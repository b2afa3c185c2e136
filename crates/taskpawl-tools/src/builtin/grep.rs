use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use globset::GlobMatcher;
use regex::bytes::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::walk::{Found, Gaps, files, matcher};
use super::{Blocking, invalid, parse};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::root::Root;
use crate::tool::{Hints, ToolSpec};

/// Longer lines are searched in pieces of this size, so that a file without line ends cannot fill the memory.
const MAX_LINE_BYTES: u64 = 1 << 20;
const MAX_TEXT_CHARS: usize = 500;

pub(super) fn tool() -> Blocking {
    let args = json!({
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "description": "A regular expression, searched in each line."},
            "path": {"type": "string", "minLength": 1, "default": ".", "description": "A directory or file beneath the project root."},
            "glob": {"type": "string", "minLength": 1, "description": "Only files whose path matches; without `/`, whose name does."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 200, "description": "Most matches."},
        },
        "required": ["pattern"],
        "additionalProperties": false,
    });
    let result = json!({
        "type": "object",
        "properties": {
            "matches": {
                "type": "array",
                "description": "Sorted by path and line.",
                "items": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "line": {"type": "integer", "description": "Counted from 1."},
                        "text": {"type": "string", "description": "The line; of more than 500 characters the first, and `…`."},
                    },
                    "required": ["path", "line", "text"],
                    "additionalProperties": false,
                },
            },
            "truncated": {"const": true, "description": "There are more matches than `limit`; these are the first."},
            "unreadable": {"type": "integer", "description": "How many files and directories could not be read."},
        },
        "required": ["matches"],
        "additionalProperties": false,
    });
    let description = "Searches text files; those that `.gitignore` names and binary ones are left out.";
    let hints = Hints { read_only: true, idempotent: true, ..Hints::default() };
    Blocking {
        spec: ToolSpec::new("grep", description, args).with_result(result).with_hints(hints),
        work: run,
    }
}

#[derive(Deserialize)]
struct Args {
    pattern: String,
    #[serde(default = "here")]
    path: String,
    glob: Option<String>,
    #[serde(default = "default_limit")]
    limit: usize,
}

fn here() -> String {
    ".".to_owned()
}

fn default_limit() -> usize {
    200
}

fn run(cx: &CallContext, args: Value) -> Result<Value, ToolError> {
    let args: Args = parse("grep", args)?;
    let pattern = Regex::new(&args.pattern).map_err(|error| invalid("grep", "pattern", problem(&error)))?;
    let filter = Filter::new(args.glob.as_deref())?;
    let root = Root::open(cx)?;
    let (start, dir) = (root.real_path(Path::new(&args.path))?, root.real_dir()?);
    let mut search = Search { cx, pattern, limit: args.limit, matches: Vec::new() };
    let mut gaps = Gaps::default();
    files(cx, &start, &dir, &mut gaps, |found, gaps| {
        if !filter.admits(&found.shown) {
            return Ok(true);
        }
        // Opened through the root once more: the walk went by names, and a name may mean something else by now.
        let Ok(file) = root.read(&found.path) else {
            gaps.unreadable += 1;
            return Ok(true);
        };
        Ok(search.file(&found, file, gaps))
    })?;
    Ok(gaps.tell(Map::from_iter([("matches".to_owned(), search.matches.into())])))
}

fn problem(error: &regex::Error) -> String {
    if matches!(error, regex::Error::CompiledTooBig(_)) {
        return "is too big a regular expression".to_owned();
    }
    // The last line says what is wrong, those before draw where.
    let what = crate::text::last_line(&error.to_string());
    format!("is no regular expression: {}", what.trim_start_matches("error: "))
}

struct Filter(Option<(GlobMatcher, bool)>);

impl Filter {
    fn new(glob: Option<&str>) -> Result<Self, ToolError> {
        let Some(glob) = glob else { return Ok(Self(None)) };
        Ok(Self(Some((matcher("grep", "glob", glob)?, glob.contains('/')))))
    }

    fn admits(&self, path: &Path) -> bool {
        match &self.0 {
            None => true,
            Some((matcher, true)) => matcher.is_match(path),
            Some((matcher, false)) => path.file_name().is_some_and(|name| matcher.is_match(name)),
        }
    }
}

struct Search<'a> {
    cx: &'a CallContext,
    pattern: Regex,
    limit: usize,
    matches: Vec<Value>,
}

impl Search<'_> {
    /// Searches a file and returns whether there is room for more matches.
    fn file(&mut self, found: &Found, file: File, gaps: &mut Gaps) -> bool {
        let before = self.matches.len();
        self.lines(found, &mut BufReader::new(file)).unwrap_or_else(|_| {
            gaps.unreadable += 1;
            self.matches.truncate(before);
            true
        })
    }

    /// Stops early when the call shall end, which the walk then notices.
    fn lines(&mut self, found: &Found, reader: &mut BufReader<File>) -> io::Result<bool> {
        if reader.fill_buf()?.contains(&0) {
            return Ok(true);
        }
        let mut line = Vec::new();
        let mut number = 1_u64;
        while self.cx.check().is_ok()
            && reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? > 0
        {
            if self.pattern.is_match(without_end(&line)) {
                if self.matches.len() == self.limit {
                    return Ok(false);
                }
                let text = shortened(&line);
                self.matches
                    .push(json!({"path": found.shown.to_string_lossy(), "line": number, "text": text}));
            }
            number += u64::from(line.ends_with(b"\n"));
            line.clear();
        }
        Ok(true)
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn shortened(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(without_end(line));
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}
