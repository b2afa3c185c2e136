//! The output files of calls, and results that are too large for a task.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use taskpawl_model::{CallId, TaskId};

/// What of a result stays in the task, in bytes; the whole is kept in a file.
pub(crate) const KEPT_BYTES: usize = 256 * 1024;

/// Where calls of a project leave their output.
#[derive(Debug, Clone)]
pub struct Output {
    directory: PathBuf,
}

/// An output file of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPart {
    /// Which start of the call it is from, counted from 1.
    pub start: u32,
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// The file.
    pub path: PathBuf,
}

impl Output {
    pub(crate) fn new(files: &Path) -> Self {
        Self { directory: files.join("output") }
    }

    /// Returns the path of the output files of one start of a call, without `.stdout` and `.stderr`.
    pub fn stem(&self, task: &TaskId, call: &CallId, start: u32) -> PathBuf {
        // No id has an `@`: names cannot meet, nor lead elsewhere as `..` would. One directory for all saves each call two.
        self.directory.join(format!("{task}@{call}@{start}"))
    }

    /// Returns the output files that there are of a call, by start and stream. Calls that printed nothing have none.
    pub fn parts(&self, task: &TaskId, call: &CallId, starts: u32) -> Vec<OutputPart> {
        let mut parts = Vec::new();
        for start in 1..=starts {
            for stream in ["stdout", "stderr"] {
                let mut path = self.stem(task, call, start).into_os_string();
                path.push(format!(".{stream}"));
                let path = PathBuf::from(path);
                if path.exists() {
                    parts.push(OutputPart { start, stream, path });
                }
            }
        }
        parts
    }

    /// Returns what of a result stays in the task: all of it where it is short enough; else head and tail, and the name of the
    /// file with the whole.
    pub(crate) fn bounded(&self, result: Value) -> io::Result<Value> {
        if !may_be_long(&result, &mut 0) {
            return Ok(result);
        }
        let text = result.to_string();
        if text.len() <= KEPT_BYTES {
            return Ok(result);
        }
        let sha256 = format!("{:x}", Sha256::digest(text.as_bytes()));
        let path = self.directory.join("results").join(format!("{sha256}.json"));
        keep(&path, &text)?;
        let (head, tail) = (head(&text, KEPT_BYTES / 2), tail(&text, KEPT_BYTES / 2));
        Ok(json!({
            "truncated": true, "bytes": text.len(), "sha256": sha256, "resultFile": path, "head": head, "tail": tail,
        }))
    }
}

/// Adds up lengths only as far as needed, so that a small result costs nothing.
fn may_be_long(value: &Value, sum: &mut usize) -> bool {
    *sum += match value {
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => 8,
    };
    if *sum > KEPT_BYTES {
        return true;
    }
    match value {
        Value::Array(items) => items.iter().any(|item| may_be_long(item, sum)),
        Value::Object(map) => map.iter().any(|(name, value)| {
            *sum += name.len();
            may_be_long(value, sum)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn keep(path: &Path, text: &str) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let part = path.with_extension("part");
    fs::write(&part, text)?;
    fs::rename(part, path)
}

fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn tail(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len() - most)..]
}
