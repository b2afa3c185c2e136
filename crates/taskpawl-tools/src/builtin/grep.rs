use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use globset::GlobMatcher;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkFinish, SinkMatch};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::first::First;
use super::walk::{Gaps, WalkEntry, files, matcher};
use crate::builtin::common::{Blocking, invalid, parse};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::root::Root;
use crate::tool::{Hints, ToolSpec};

/// Longest supported line. A file with a longer one counts as unreadable, so that a file without line ends cannot fill
/// the memory.
const MAX_LINE_BYTES: usize = 4 << 20;

/// Size of a match in the result, in bytes, apart from its path and text.
const MATCH_BYTES: usize = 40;

const MAX_TEXT_CHARS: usize = 500;

pub(super) fn tool() -> Blocking {
    let args = json!({
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "description": "A regular expression, matched against each line."},
            "path": {"type": "string", "minLength": 1, "default": ".", "description": "A directory or file inside the project root."},
            "glob": {"type": "string", "minLength": 1, "description": "Only files whose path matches; a pattern without `/` matches the name."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 200, "description": "The maximum number of matches; if missing and the call has `keep`, all that fit."},
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
                        "text": {"type": "string", "description": "The line, cut to 500 characters and `…` unless the call has `keep`."},
                    },
                    "required": ["path", "line", "text"],
                    "additionalProperties": false,
                },
            },
            "truncated": {"const": true, "description": "Set if only the first matches are included: there are more than `limit`, or than fit (256 KiB, or `keep` of the call)."},
            "unreadable": {"type": "integer", "description": "The number of unreadable files and directories, including files with lines over 4 MiB."},
            "hidden": {"type": "integer", "description": "The number of skipped files and directories that are closed to tools, such as `.env`."},
        },
        "required": ["matches"],
        "additionalProperties": false,
    });
    let description = "Searches text files; binary files and files in `.gitignore` are skipped.";
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
    limit: Option<usize>,
}

fn here() -> String {
    ".".to_owned()
}

const DEFAULT_LIMIT: usize = 200;

fn run(cx: &CallContext, args: Value) -> Result<Value, ToolError> {
    let args: Args = parse("grep", args)?;
    let pattern = compile(&args.pattern)?;
    let filter = Filter::new(args.glob.as_deref())?;
    let root = Root::open(cx)?;
    let (start, dir) = (root.real_path(Path::new(&args.path))?, root.real_dir()?);
    let most = if cx.limits.is_keep_chosen { usize::MAX } else { DEFAULT_LIMIT };
    let mut search = Search::new(cx, pattern, args.limit.unwrap_or(most));
    let mut gaps = Gaps::default();
    files(cx, &root, &start, &dir, &mut gaps, |found, gaps| {
        if !filter.admits(&found.shown) || !search.has_room_for(&found) {
            return;
        }
        // Opened once more through the root: the walk used plain paths, and a path may lead elsewhere by now.
        match root.read(&found.path) {
            Ok(file) => gaps.unreadable += u64::from(search.file(found, file).is_err()),
            Err(ToolError::Closed { .. }) => gaps.hidden += 1,
            Err(_) => gaps.unreadable += 1,
        }
    })?;
    gaps.is_truncated = search.matches.is_cut();
    if gaps.is_truncated && args.limit.is_none_or(|limit| search.matches.len() < limit) {
        cx.report_cut("/matches");
    }
    Ok(gaps.tell(Map::from_iter([("matches".to_owned(), search.into_result())])))
}

fn compile(pattern: &str) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    // `^` and `$` match at line ends, also in files with `\r\n`.
    builder.multi_line(true).crlf(true).size_limit(10 << 20);
    builder.build(pattern).map_err(|error| invalid("grep", "pattern", problem(&error.to_string())))
}

fn problem(error: &str) -> String {
    if error.contains("size limit") {
        return "is too large a regular expression".to_owned();
    }
    // The last line is the message; the lines before it show the position in the pattern.
    let what = crate::text::last_line(error);
    format!("is not a valid regular expression: {}", what.trim_start_matches("error: "))
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

/// Matching line: path, line number, text. The order of the fields is the sort order.
type Match = (PathBuf, u64, Line);

/// Text of a line, and `true` if it is complete.
type Line = (String, bool);

struct Search<'a> {
    cx: &'a CallContext,
    pattern: RegexMatcher,
    searcher: Searcher,
    matches: First<Match>,
}

impl<'a> Search<'a> {
    fn new(cx: &'a CallContext, pattern: RegexMatcher, limit: usize) -> Self {
        let mut builder = SearcherBuilder::new();
        builder.line_terminator(LineTerminator::crlf()).binary_detection(BinaryDetection::quit(0));
        let searcher = builder.heap_limit(Some(MAX_LINE_BYTES)).build();
        Self { cx, pattern, searcher, matches: First::new(limit, cx.limits.keep_bytes) }
    }

    /// Returns whether a match in this file would still be kept.
    fn has_room_for(&self, found: &WalkEntry) -> bool {
        self.matches.has_room_for(&(found.shown.clone(), 0, Line::default()))
    }

    fn file(&mut self, found: WalkEntry, file: File) -> io::Result<()> {
        let reader = Cancelled { cx: self.cx, file };
        let mut hits = Hits {
            path: found.shown,
            first: &self.matches,
            most_chars: if self.cx.limits.is_keep_chosen { usize::MAX } else { MAX_TEXT_CHARS },
            found: Vec::new(),
            bytes: 0,
        };
        self.searcher.search_reader(&self.pattern, reader, &mut hits)?;
        for found in hits.found {
            let bytes = bytes_of(&found);
            self.matches.offer(found, bytes);
        }
        Ok(())
    }

    fn into_result(self) -> Value {
        let cx = self.cx;
        let found = |(path, line, (text, _)): Match| json!({"path": path.to_string_lossy(), "line": line, "text": text});
        let matches: Vec<Match> = self.matches.into_sorted().collect();
        report_cut_lines(cx, &matches);
        matches.into_iter().map(found).collect()
    }
}

fn bytes_of((path, _, (text, _)): &Match) -> usize {
    path.as_os_str().len() + text.len() + MATCH_BYTES
}

/// Reader that fails when the call is cancelled or late. The searcher offers no other way to interrupt it.
struct Cancelled<'a> {
    cx: &'a CallContext,
    file: File,
}

impl Read for Cancelled<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.cx.check().map_err(io::Error::other)?;
        self.file.read(buffer)
    }
}

/// Matching lines of one file. They are collected first, for a NUL byte at its end may still show that the file is
/// binary.
struct Hits<'a> {
    path: PathBuf,
    first: &'a First<Match>,
    /// Characters shown per line.
    most_chars: usize,
    found: Vec<Match>,
    bytes: usize,
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> io::Result<bool> {
        let found = (
            self.path.clone(),
            line.line_number().unwrap_or_default(),
            line_of(line.bytes(), self.most_chars),
        );
        if !self.first.has_room_for(&found) {
            return Ok(false);
        }
        self.bytes += bytes_of(&found);
        self.found.push(found);
        // One match more than fits is enough to set the truncated flag.
        Ok(self.found.len() <= self.first.most() && self.bytes <= self.first.most_bytes())
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        if end.binary_byte_offset().is_some() {
            self.found.clear();
        }
        Ok(())
    }
}

/// Reports the shortened lines as cut; if they are many, all matches.
fn report_cut_lines(cx: &CallContext, matches: &[Match]) {
    const MAX_NAMED: usize = 20;
    let cut = |(number, (_, _, (_, is_whole))): (usize, &Match)| (!is_whole).then_some(number);
    let cut: Vec<usize> = matches.iter().enumerate().filter_map(cut).collect();
    if cut.len() > MAX_NAMED {
        return cx.report_cut("/matches");
    }
    for number in cut {
        cx.report_cut(format!("/matches/{number}/text"));
    }
}

fn line_of(line: &[u8], most_chars: usize) -> Line {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // A character has at most four bytes, so that the part cut off here is never shown.
    let text =
        String::from_utf8_lossy(&line[..line.len().min(most_chars.saturating_add(1).saturating_mul(4))]);
    match text.char_indices().nth(most_chars) {
        Some((end, _)) => (format!("{}…", &text[..end]), false),
        None => (text.into_owned(), true),
    }
}
