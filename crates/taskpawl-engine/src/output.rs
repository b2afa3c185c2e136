//! Output files of calls, and results that are too large for a task.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{MAIN_SEPARATOR_STR, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use taskpawl_model::value::{ByteSize, CallId, RunId, TaskId};
use taskpawl_text::{head, tail};
use taskpawl_tools::{keep_owner_rights, make_private_directories};

use crate::error::RunError;

/// Size up to which a result is stored in the task, in bytes. Larger ones are kept in a file.
pub(crate) const KEPT_BYTES: usize = 256 * 1024;

/// Largest JSON text of a result that is stored whole because of `keep`. JSON escapes a control character as six bytes,
/// so the text may be much longer than the value.
const MAX_TEXT_BYTES: usize = 48 << 20;

/// The part of a result that is stored in the task.
#[derive(Debug)]
pub(crate) struct StoredResult {
    pub(crate) value: Value,
    /// Parts that were cut, as JSON Pointers.
    pub(crate) cut: Vec<String>,
}

/// The output directory of a project.
#[derive(Debug, Clone)]
pub struct Output {
    directory: PathBuf,
}

/// An output file of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPart {
    /// Number of the start of the call, from 1.
    pub start: u32,
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// Absolute path of the file.
    pub path: PathBuf,
}

/// A file in the output directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
    pub(crate) kind: OutputKind,
}

/// Kind of a file in the output directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputKind {
    /// Output of one start of a call on one of its streams.
    Stream { task: TaskId, call: CallId, start: u32 },
    /// A large result, with the SHA-256 that the task refers to.
    Result(String),
    /// A file in the directory of a run for artifacts.
    Artifact(RunId),
    /// A partial result or output whose writer did not finish.
    Scrap,
}

impl Output {
    pub(crate) fn new(files: &Path) -> Self {
        Self { directory: files.join("output") }
    }

    /// Returns the path of the output files of one start of a call, without `.stdout` or `.stderr`.
    pub fn stem(&self, task: &TaskId, call: &CallId, start: u32) -> PathBuf {
        // Ids contain no `@`, so names of different calls cannot collide, and cannot lead elsewhere as `..` would. A
        // flat directory saves creating two directories per call.
        let (directory, [task, call]) = (self.directory.as_os_str(), [task.as_str(), call.as_str()]);
        let room = directory.len() + task.len() + call.len() + "/@@4294967295.stdout".len();
        let mut path = PathBuf::with_capacity(room).into_os_string();
        path.push(directory);
        path.push(MAIN_SEPARATOR_STR);
        for part in [task, "@", call, "@"] {
            path.push(part);
        }
        let _ = write!(path, "{start}");
        path.into()
    }

    /// Returns the path of the files with the steps of a call, without their endings. Starts of a call share them.
    pub(crate) fn stem_of_steps(
        &self,
        task: &TaskId,
        call: &CallId,
        (generation, round, rework): (u32, u32, u32),
    ) -> PathBuf {
        let rework = if rework > 0 { format!("-{rework}") } else { String::new() };
        self.directory.join(format!("{task}@{call}@{generation}-{round}{rework}"))
    }

    /// Returns the path prefix for the output of programs that a run starts to find tools, as in [`stem`](Self::stem).
    pub(crate) fn stem_of_search(&self, run: &RunId, number: usize) -> PathBuf {
        self.directory.join(format!("{run}@tools@{number}"))
    }

    /// Returns the existing output files of a call, by start and stream. Calls that printed nothing have none.
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

    /// Returns every file that calls left. Files with other names are ignored.
    pub(crate) fn files(&self) -> io::Result<Vec<OutputFile>> {
        let mut files = list(&self.directory, stream_of)?;
        files.extend(list(&self.results(), result_of)?);
        Ok(files)
    }

    pub(crate) fn error(&self, action: &'static str, source: io::Error) -> RunError {
        RunError::Files { action, path: self.directory.clone(), source }
    }

    fn results(&self) -> PathBuf {
        self.directory.join("results")
    }

    /// Blocks writers of large results. Otherwise a result that is written during a prune might be removed as unused.
    pub(crate) fn lock_results(&self) -> io::Result<File> {
        let file = open_lock(&self.results())?;
        file.lock()?;
        Ok(file)
    }

    /// Returns the part of a result that is stored in the task: all of it if it is short; otherwise its head and tail,
    /// and the path of a file with the whole result.
    ///
    /// A call with `keep` has that amount stored in the task and not only in the file. Conditions, lists and arguments
    /// are evaluated inside a store transaction, which can only read the store; besides, the file may be pruned.
    pub(crate) fn bounded(&self, result: Value, keeps: Option<ByteSize>) -> io::Result<StoredResult> {
        let whole = |value| Ok(StoredResult { value, cut: Vec::new() });
        // Estimates first: serializing every small result to measure it would be waste.
        if !is_longer(&result, KEPT_BYTES, &mut 0) {
            return whole(result);
        }
        let text = result.to_string();
        if text.len() <= KEPT_BYTES || (fits_keep(&result, keeps) && text.len() <= MAX_TEXT_BYTES) {
            return whole(result);
        }
        let sha256 = format!("{:x}", Sha256::digest(text.as_bytes()));
        let path = self.results().join(format!("{sha256}.json"));
        keep(&path, &text)?;
        let (head, tail) = (head(&text, KEPT_BYTES / 2), tail(&text, KEPT_BYTES / 2));
        let value = json!({
            "truncated": true, "bytes": text.len(), "sha256": sha256, "resultFile": path, "head": head, "tail": tail,
        });
        Ok(StoredResult { value, cut: cut_of_stand_in(&result) })
    }
}

/// Returns the parts of a stand-in that are cut: the whole result, and those of its own fields that the fields of the
/// stand-in hide.
fn cut_of_stand_in(result: &Value) -> Vec<String> {
    let own = ["truncated", "sha256", "resultFile"].into_iter().filter(|field| result.get(field).is_some());
    std::iter::once(String::new()).chain(own.map(|field| format!("/{field}"))).collect()
}

/// Returns whether a result is stored whole. The tool has applied `keep` to one or two of its fields; the margin is for
/// the others.
fn fits_keep(result: &Value, keep: Option<ByteSize>) -> bool {
    let Some(keep) = keep.and_then(|keep| usize::try_from(keep.0).ok()) else { return false };
    !is_longer(result, keep + keep / 8 + KEPT_BYTES / 8, &mut 0)
}

/// Adds up lengths and stops at the limit, so that the check is cheap for large results, too.
fn is_longer(value: &Value, most: usize, sum: &mut usize) -> bool {
    *sum += match value {
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => 8,
    };
    if *sum > most {
        return true;
    }
    match value {
        Value::Array(items) => items.iter().any(|item| is_longer(item, most, sum)),
        Value::Object(map) => map.iter().any(|(name, value)| {
            *sum += name.len();
            is_longer(value, most, sum)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns the files of a directory whose names `kind` recognizes; none if the directory does not exist.
fn list(directory: &Path, kind: fn(&str) -> Option<OutputKind>) -> io::Result<Vec<OutputFile>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some(kind) = entry.file_name().to_str().and_then(kind) else { continue };
        let (path, data) = match entry.metadata() {
            // Another process may have removed the file since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            data => (entry.path(), data?),
        };
        if data.is_file() {
            files.push(OutputFile { path, bytes: data.len(), modified: data.modified()?, kind });
        }
    }
    Ok(files)
}

/// Parses `TASK@CALL@START.stdout` or `.stderr`, and `TASK@CALL@GENERATION-ROUND.steps` or `.details`, which belong to no single start. With
/// `.part` appended it is an unfinished replacement.
fn stream_of(name: &str) -> Option<OutputKind> {
    if let Some(whole) = name.strip_suffix(".part") {
        return stream_of(whole).map(|_| OutputKind::Scrap);
    }
    let of_start = name.strip_suffix(".stdout").or_else(|| name.strip_suffix(".stderr"));
    let of_steps = || name.strip_suffix(".steps").or_else(|| name.strip_suffix(".details"));
    let mut parts = of_start.or_else(of_steps)?.split('@');
    let (task, call, number) = (parts.next()?, parts.next()?, parts.next()?);
    // No start has the number 0: steps are kept as long as their task is open.
    let start = if of_start.is_some() { number.parse().ok()? } else { 0 };
    let stream = OutputKind::Stream { task: TaskId::from(task), call: CallId::from(call), start };
    parts.next().is_none().then_some(stream)
}

fn result_of(name: &str) -> Option<OutputKind> {
    match name.strip_suffix(".json") {
        Some(sha256) => Some(OutputKind::Result(sha256.to_owned())),
        None => name.strip_suffix(".part").map(|_| OutputKind::Scrap),
    }
}

fn open_lock(results: &Path) -> io::Result<File> {
    // Results may contain data that only the owner should read.
    make_private_directories(results)?;
    let file =
        File::options().write(true).create(true).truncate(false).mode(0o600).open(results.join("lock"))?;
    keep_owner_rights(&file)?;
    Ok(file)
}

/// Writes a result to its file. An existing file is replaced, which renews its modification time: prune ignores
/// recently modified files because a task may be about to refer to them.
fn keep(path: &Path, text: &str) -> io::Result<()> {
    let _lock = match path.parent() {
        Some(directory) => {
            let file = open_lock(directory)?;
            // Shared among writers; prune takes it exclusively.
            file.lock_shared()?;
            Some(file)
        }
        None => None,
    };
    let part = part_of(path);
    let done = write_synced(&part, text).and_then(|()| fs::rename(&part, path));
    if done.is_err() {
        // The first error is the one to report. The unique name of the partial file means that no other process uses
        // it.
        let _ = fs::remove_file(&part);
    }
    done
}

/// Returns a unique name for the partial file: two calls may produce the same large result at the same time.
fn part_of(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("{}-{number}.part", std::process::id()))
}

fn write_synced(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    keep_owner_rights(&file)?;
    file.write_all(text.as_bytes())?;
    // Without the sync, a crash could leave a recorded result whose file is empty.
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_result_is_written_whole_over_leftovers_and_by_concurrent_writers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results").join("a.json");
        let text = "x".repeat(KEPT_BYTES);
        keep(&path, &text).unwrap();
        fs::write(&path, "x").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| keep(&path, &text).unwrap());
            }
        });
        assert!(fs::read_to_string(&path).unwrap() == text);
        let names =
            fs::read_dir(directory.path().join("results")).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(
            names.collect::<std::collections::BTreeSet<_>>(),
            ["a.json", "lock"].map(Into::into).into()
        );
    }
}
