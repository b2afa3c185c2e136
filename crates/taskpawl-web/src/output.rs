//! Windows into the output of calls, and the search in it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use aho_corasick::AhoCorasick;
use serde::Serialize;
use taskpawl::model::task::{Task, ToolCall};
use taskpawl::tools::Redactor;
use taskpawl::{Taskpawl, can_be_shown, is_unfinished, kept_text};

use crate::answer::Problem;
use crate::request::Query;

/// Bytes of a window.
pub(crate) const WINDOW: u64 = 64 << 10;

/// Bytes before a window that are read as well, so that a secret which begins there is recognized in what is still being written.
const OVERLAP: u64 = 64 << 10;

/// Hits that are listed; all are counted.
const MAX_HITS: usize = 1_000;

/// Bytes that are read at once while searching.
const PIECE: usize = 1 << 20;

/// Words that begin an error in most outputs.
const ERRORS: [&str; 5] = ["error", "failed", "panic", "exception", "traceback"];

/// One stream of one start of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) start: u32,
    pub(crate) stream: &'static str,
    /// Size in bytes.
    pub(crate) bytes: u64,
    /// The call still runs.
    pub(crate) is_live: bool,
    /// The worker that ran it; absent for the machine of the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worker: Option<String>,
    #[serde(skip)]
    source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    File(std::path::PathBuf),
    /// The output of a program that still runs: secrets are not removed from the file yet.
    Live(std::path::PathBuf),
    Text(String),
}

/// Lines of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Window {
    /// Offset of the first byte.
    pub(crate) from: u64,
    /// Offset behind the last byte.
    pub(crate) to: u64,
    /// Size of the part.
    pub(crate) bytes: u64,
    /// Number of the first line, from 1.
    pub(crate) line: u64,
    pub(crate) text: String,
}

/// The places of a text in a part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Hits {
    pub(crate) total: u64,
    /// Offsets of the first hits.
    pub(crate) offsets: Vec<u64>,
}

/// Returns the output of the calls of a task: the failed call's first, the later starts of a call before the earlier.
pub(crate) fn parts(plans: &Taskpawl, task: &Task) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for call in &task.metadata.tool_calls {
        parts.extend(parts_of(plans, task, call));
    }
    parts
}

fn parts_of(plans: &Taskpawl, task: &Task, call: &ToolCall) -> Vec<Part> {
    let part = |start, stream, source, bytes, is_live| Part {
        call: call.id.to_string(),
        tool: call.tool_name.clone(),
        start,
        stream,
        bytes,
        is_live,
        // Only that of the last start is on record.
        worker: call.worker.clone().filter(|_| start == call.attempts),
        source,
    };
    let mut parts = Vec::new();
    for file in plans.engine().output().parts(&task.id, &call.id, call.attempts) {
        let is_live = is_unfinished(call, file.start);
        if is_live && !can_be_shown(call, &plans.engine().vault()) {
            // Showing it could reveal a secret that this process cannot recognize.
            continue;
        }
        let bytes = std::fs::metadata(&file.path).map_or(0, |data| data.len());
        let source = if is_live { Source::Live(file.path) } else { Source::File(file.path) };
        parts.push(part(file.start, file.stream, source, bytes, is_live));
    }
    for stream in ["stdout", "stderr"] {
        let has_file = parts.iter().any(|part| part.start == call.attempts && part.stream == stream);
        if let Some(text) = kept_text(call, stream).filter(|_| !has_file) {
            let bytes = text.len() as u64;
            parts.push(part(call.attempts, stream, Source::Text(text), bytes, false));
        }
    }
    parts.sort_by_key(|part| (std::cmp::Reverse(part.start), part.stream == "stderr"));
    parts
}

/// Returns the part that a query names, or the one that matters most: of the failed call the stream for errors.
pub(crate) fn chosen<'p>(parts: &'p [Part], task: &Task, query: &Query) -> Result<Option<&'p Part>, Problem> {
    let start: Option<u32> = query.number("start")?;
    let (call, stream) = (query.text("call"), query.text("stream"));
    let is_named = |part: &&Part| {
        call.is_none_or(|call| call == part.call)
            && start.is_none_or(|start| start == part.start)
            && stream.is_none_or(|stream| stream == part.stream)
    };
    let has_failed = |part: &Part| {
        let calls = &task.metadata.tool_calls;
        calls.iter().any(|call| call.id.as_str() == part.call && call.error.is_some())
    };
    let rank = |part: &&Part| {
        let failed = has_failed(part);
        (!failed, part.bytes == 0, failed && part.stream != "stderr", std::cmp::Reverse(part.start))
    };
    Ok(parts.iter().filter(is_named).min_by_key(rank))
}

/// Reads the lines from the one at the offset `from` of a query, up to the offset `until` if there is one. A line that is longer than a
/// window is cut.
pub(crate) fn window(plans: &Taskpawl, part: &Part, query: &Query) -> Result<Window, Problem> {
    let from: u64 = query.number("from")?.unwrap_or_default();
    let until: Option<u64> = query.number("until")?;
    let (from, line) = line_at(part, from.min(part.bytes)).map_err(unreadable)?;
    // The line that a window begins with may begin up to a window earlier.
    let most = until.map_or(WINDOW, |until| until.saturating_sub(from).min(2 * WINDOW));
    let mut bytes = read(part, from, most).map_err(unreadable)?;
    let is_end = until.is_some() || from + bytes.len() as u64 >= part.bytes;
    if !is_end && let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
        bytes.truncate(end + 1);
    }
    let to = from + bytes.len() as u64;
    if part.is_live {
        bytes = redacted(&plans.engine().vault().redactor(), part, from, &bytes).map_err(unreadable)?;
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Window { from, to, bytes: part.bytes, line, text })
}

/// Returns the beginning of the line at an offset, and its number.
fn line_at(part: &Part, offset: u64) -> io::Result<(u64, u64)> {
    let (mut begin, mut line, mut at) = (0, 1, 0);
    while at < offset {
        let piece = read(part, at, (offset - at).min(PIECE as u64))?;
        if piece.is_empty() {
            break;
        }
        if let Some(last) = piece.iter().rposition(|byte| *byte == b'\n') {
            begin = at + last as u64 + 1;
            line += lines_in(&piece);
        }
        at += piece.len() as u64;
    }
    // In the middle of a very long line the window begins where it was asked for.
    Ok(if offset - begin > WINDOW { (offset, line) } else { (begin, line) })
}

fn lines_in(piece: &[u8]) -> u64 {
    // Counted in one pass without branches, which the compiler makes as fast as a crate for it.
    piece.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

/// Removes secrets from a window of a file that is still being written.
fn redacted(redactor: &Redactor, part: &Part, from: u64, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let (mut stream, mut before, mut clean) = (redactor.stream(), Vec::new(), Vec::new());
    let begin = from.saturating_sub(OVERLAP);
    stream.push(&read(part, begin, from - begin)?, &mut before);
    stream.push(bytes, &mut clean);
    // The text that the stream holds back could be the beginning of a secret; the next window of a growing file has it.
    Ok(clean)
}

fn read(part: &Part, from: u64, most: u64) -> io::Result<Vec<u8>> {
    match &part.source {
        Source::Text(text) => {
            let bytes =
                text.as_bytes().get(usize::try_from(from).unwrap_or(usize::MAX)..).unwrap_or_default();
            Ok(bytes[..bytes.len().min(usize::try_from(most).unwrap_or(usize::MAX))].to_vec())
        }
        Source::File(path) | Source::Live(path) => {
            let mut bytes = Vec::new();
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(from))?;
            file.take(most).read_to_end(&mut bytes)?;
            Ok(bytes)
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn unreadable(error: io::Error) -> Problem {
    Problem::missing(format!("failed to read the output: {error}"))
}

/// Finds a text, ignoring the case of ASCII letters. Without a text it finds words that begin errors.
pub(crate) fn find(part: &Part, text: Option<&str>) -> Result<Hits, Problem> {
    if part.is_live {
        // Hits would tell where a secret is.
        return Err(Problem::invalid("the output of a running call cannot be searched"));
    }
    let words: Vec<&str> = text.map_or_else(|| ERRORS.to_vec(), |text| vec![text]);
    let searcher = AhoCorasick::builder().ascii_case_insensitive(true).build(&words);
    let searcher =
        searcher.map_err(|error| Problem::invalid(format!("the text cannot be searched: {error}")))?;
    let overlap = words.iter().map(|word| word.len()).max().unwrap_or(1).saturating_sub(1);
    let (mut hits, mut at) = (Hits::default(), 0_u64);
    loop {
        let piece = read(part, at, (PIECE + overlap) as u64).map_err(unreadable)?;
        for hit in searcher.find_iter(&piece).filter(|hit| hit.start() < PIECE) {
            hits.total += 1;
            if hits.offsets.len() < MAX_HITS {
                hits.offsets.push(at + hit.start() as u64);
            }
        }
        if piece.len() < PIECE + overlap {
            return Ok(hits);
        }
        at += PIECE as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Part {
        let source = Source::Text(text.to_owned());
        let (bytes, call) = (text.len() as u64, "c1".to_owned());
        let (tool, worker) = ("shell".to_owned(), None);
        Part { call, tool, start: 1, stream: "stdout", bytes, is_live: false, worker, source }
    }

    #[test]
    fn hits_are_counted_over_the_borders_of_pieces() {
        let mut text = "x".repeat(PIECE - 3);
        text.push_str("NeedLe and needle\n");
        text.push_str(&"needle ".repeat(2_000));
        let hits = find(&part(&text), Some("needle")).unwrap();
        assert_eq!((hits.total, hits.offsets.len()), (2_002, MAX_HITS));
        assert_eq!(hits.offsets[0], PIECE as u64 - 3);
        assert_eq!(find(&part(&text), Some("x")).unwrap().total, PIECE as u64 - 3);
        assert_eq!(find(&part(&text), Some("l")).unwrap().total, 2_002);
        assert_eq!(find(&part("all good\nan Error here"), None).unwrap().offsets, [12]);
    }

    #[test]
    fn an_offset_leads_to_its_line() {
        let text = part("one\ntwo\nthree\n");
        assert_eq!(line_at(&text, 9).unwrap(), (8, 3));
        assert_eq!(line_at(&text, 0).unwrap(), (0, 1));
        let long = part(&"y".repeat(300_000));
        assert_eq!(line_at(&long, 200_000).unwrap(), (200_000, 1));
    }
}
