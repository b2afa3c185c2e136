//! The parts of the output of calls: one stream of one start each, and their texts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use taskpawl::model::task::Task;
use taskpawl::model::value::{CallId, TaskId};
use taskpawl::tools::Vault;
use taskpawl::{Taskpawl, can_be_shown, is_unfinished, kept_text};

use super::args::Args;
use super::wanted::{Starts, place_of_item};
use crate::error::CliError;

/// Key of a part: one output stream of one start of a call. Parts are printed in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    /// Index of the item in its `forEach`; 0 without one.
    pub(super) item: usize,
    pub(super) task: TaskId,
    pub(super) position: usize,
    pub(super) call: String,
    pub(super) start: u32,
    /// `false` sorts first, so standard output precedes standard error.
    pub(super) is_stderr: bool,
    pub(super) stream: &'static str,
}

/// Source of the text of a part.
#[derive(Debug)]
pub(super) enum Source {
    File(PathBuf),
    /// File of a program that still runs, or that the run did not wait for. Secrets are not yet removed from
    /// it.
    Unfinished(PathBuf),
    /// Head and tail in the stored result. The fallback if the file was pruned.
    Result(String),
}

/// Returns the available parts, in the order of their names.
pub(super) fn parts<'a>(
    plans: &Taskpawl,
    vault: &Vault,
    args: &Args,
    starts: Option<&Starts>,
    tasks: &'a [Task],
) -> Vec<(Name, Source, &'a Task)> {
    let is_in_run = |name: &Name| {
        let start = (name.task.clone(), CallId::from(name.call.clone()), name.start);
        starts.is_none_or(|starts| starts.contains(&start))
    };
    let of = |task: &'a Task| {
        let parts = parts_of(plans, vault, args, task).into_iter();
        parts.filter(|(name, _)| is_in_run(name)).map(move |(name, source)| (name, source, task))
    };
    tasks.iter().flat_map(of).collect()
}

fn parts_of(plans: &Taskpawl, vault: &Vault, args: &Args, task: &Task) -> BTreeMap<Name, Source> {
    let mut parts = of_task(plans, vault, task);
    parts.retain(|name, _| {
        args.call.as_deref().is_none_or(|id| id == name.call)
            && args.attempt.is_none_or(|attempt| attempt == name.start)
            && !(args.stdout && name.stream != "stdout")
            && !(args.stderr && name.stream != "stderr")
    });
    parts
}

/// Returns all available parts of a task.
fn of_task(plans: &Taskpawl, vault: &Vault, task: &Task) -> BTreeMap<Name, Source> {
    let mut parts = BTreeMap::new();
    for (position, call) in task.metadata.tool_calls.iter().enumerate() {
        let name = |start, stream| Name {
            item: place_of_item(task),
            task: task.id.clone(),
            position,
            call: call.id.to_string(),
            start,
            is_stderr: stream == "stderr",
            stream,
        };
        for stream in ["stdout", "stderr"] {
            // Inserted first: a file of the same start replaces the shortened text below.
            if let Some(text) = kept_text(call, stream) {
                parts.insert(name(call.attempts, stream), Source::Result(text));
            }
        }
        for part in plans.engine().output().parts(&task.id, &call.id, call.attempts) {
            let source = match is_unfinished(call, part.start) {
                true if can_be_shown(call, vault) => Source::Unfinished(part.path),
                // Showing it could reveal a secret that this process cannot recognize.
                true => continue,
                false => Source::File(part.path),
            };
            parts.insert(name(part.start, part.stream), source);
        }
    }
    parts
}

/// The end of one stream of one start of a call.
pub(crate) struct Tail {
    pub(crate) call: CallId,
    pub(crate) start: u32,
    pub(crate) stream: &'static str,
    pub(crate) text: String,
    pub(crate) is_cut: bool,
}

/// Returns the ends of the output of a task, of at most `max_bytes` each. Secrets are removed.
pub(crate) fn tails(plans: &Taskpawl, task: &Task, max_bytes: u64) -> Result<Vec<Tail>, CliError> {
    let vault = plans.engine().vault();
    let mut tails = Vec::new();
    for (name, source) in of_task(plans, &vault, task) {
        let length = match &source {
            Source::Result(text) => text.len() as u64,
            Source::File(path) | Source::Unfinished(path) => {
                std::fs::metadata(path).map_or(0, |data| data.len())
            }
        };
        let mut bytes = Vec::new();
        read_from(&source, length.saturating_sub(max_bytes), &mut bytes)?;
        if matches!(source, Source::Unfinished(_)) {
            bytes = redacted(&vault, &bytes);
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (call, is_cut) = (CallId::from(name.call), length > max_bytes);
        tails.push(Tail { call, start: name.start, stream: name.stream, text, is_cut });
    }
    Ok(tails)
}

/// Removes secrets from the output of a call that has not ended.
pub(super) fn redacted(vault: &Vault, bytes: &[u8]) -> Vec<u8> {
    let (mut stream, mut clean) = (vault.redactor().stream(), Vec::new());
    stream.push(bytes, &mut clean);
    stream.finish(&mut clean);
    clean
}

/// Appends the bytes of a part after `offset`, at most 1 MiB at a time.
pub(super) fn read_from(source: &Source, offset: u64, bytes: &mut Vec<u8>) -> Result<(), CliError> {
    match source {
        Source::Result(text) => bytes.extend_from_slice(
            text.as_bytes().get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default(),
        ),
        Source::File(path) | Source::Unfinished(path) => match read_file(path, offset, bytes) {
            Ok(()) => {}
            // A call removes its empty files when it ends.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(CliError::File { action: "read", path: path.clone(), source }),
        },
    }
    Ok(())
}

fn read_file(path: &Path, offset: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    // Limited, so that the caller prints each piece before it reads the next: logs can be larger than memory.
    file.take(1 << 20).read_to_end(bytes)?;
    Ok(())
}
