//! A log of decisions: approvals, rejections, trust, grants, the PIN, purges, and changes of the policy.
//!
//! Each line holds the hash of the line before, so that a line which is changed or removed later shows. A process that can write the file can
//! rewrite all of it: the last hash has to be kept elsewhere to show that, too.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use taskpawl::Source;
use taskpawl::model::value::{TaskId, Timestamp};
use taskpawl::tools::{content_hash, is_in_sandbox, read_bytes_if_there};

use crate::context::Context;
use crate::error::CliError;
use crate::state_files::{state_directory_of, state_file};
use crate::trust::real;

/// The largest log that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// A decision that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Action {
    Approve,
    Reject,
    Trust,
    Distrust,
    Grant,
    Revoke,
    Pin,
    Policy,
    Token,
    Purge,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Trust => "trust",
            Self::Distrust => "distrust",
            Self::Grant => "grant",
            Self::Revoke => "revoke",
            Self::Pin => "pin",
            Self::Policy => "policy",
            Self::Token => "token",
            Self::Purge => "purge",
        })
    }
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    pub(crate) at: Timestamp,
    pub(crate) action: Action,
    /// The tasks, files, grants or hashes that it is about.
    pub(crate) about: String,
    /// The directory of the project; absent outside of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<PathBuf>,
    pub(crate) actor: String,
    /// The SHA-256 of the line before; empty for the first.
    previous: String,
}

/// The log as it was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) entries: Vec<Entry>,
    /// The number of the first line that does not follow from the one before.
    pub(crate) broken: Option<usize>,
    /// The numbers of the lines that are no entries. The entries around them are still read: a crash may leave half a line.
    pub(crate) unreadable: Vec<usize>,
    /// The hash of the last line.
    pub(crate) head: String,
}

impl Log {
    pub(crate) fn read(context: &Context) -> Result<Self, CliError> {
        let Some(path) = path(context) else { return Ok(Self::default()) };
        let bytes = read_bytes_if_there(&path, MAX_BYTES).map_err(|source| CliError::File {
            action: "read",
            path,
            source,
        })?;
        Ok(Self::of(&bytes.unwrap_or_default()))
    }

    fn of(bytes: &[u8]) -> Self {
        let mut log = Self::default();
        let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let lines = whole.split(|byte| *byte == b'\n').filter(|_| !whole.is_empty());
        for (number, line) in lines.enumerate() {
            let entry = serde_json::from_slice::<Entry>(line).ok();
            if entry.is_none() {
                log.unreadable.push(number + 1);
            }
            let follows = entry.as_ref().is_some_and(|entry| entry.previous == log.head);
            if !follows && log.broken.is_none() {
                log.broken = Some(number + 1);
            }
            log.head = content_hash(line);
            log.entries.extend(entry);
        }
        log
    }
}

/// Adds decisions of one command to the log.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    path: PathBuf,
    project: Option<PathBuf>,
    actor: String,
    source: Arc<dyn Source>,
}

impl Recorder {
    /// Returns a recorder; `None` where there is no state of the user.
    pub(crate) fn of(context: &Context) -> Result<Option<Self>, CliError> {
        let Some(path) = path(context) else { return Ok(None) };
        let project = context.place().ok().map(|place| real(&place.root));
        Ok(Some(Self { path, project, actor: context.config()?.actor.clone(), source: context.source()? }))
    }

    /// Adds a decision.
    pub(crate) fn record(&self, action: Action, about: &str) -> Result<(), CliError> {
        let entry = Entry {
            at: self.source.now(),
            action,
            about: about.to_owned(),
            project: self.project.clone(),
            actor: self.actor.clone(),
            previous: String::new(),
        };
        add(&self.path, entry).map_err(|source| CliError::File {
            action: "write",
            path: self.path.clone(),
            source,
        })
    }
}

/// Adds a decision to the log.
pub(crate) fn record(context: &Context, action: Action, about: &str) -> Result<(), CliError> {
    Recorder::of(context)?.map_or(Ok(()), |recorder| recorder.record(action, about))
}

fn add(path: &Path, mut entry: Entry) -> io::Result<()> {
    state_directory_of(path)?;
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    // Two commands at once would follow the same line.
    File::lock(&file)?;
    let before = read_bytes_if_there(path, MAX_BYTES)?.unwrap_or_default();
    entry.previous = Log::of(&before).head;
    let line = serde_json::to_string(&entry)?;
    // Half a line of an interrupted command must not swallow this one.
    let begin = if before.last().is_some_and(|last| *last != b'\n') { "\n" } else { "" };
    file.write_all(format!("{begin}{line}\n").as_bytes())?;
    file.sync_all()
}

/// Adds a decision about tasks to the log.
pub(crate) fn record_tasks(context: &Context, action: Action, tasks: &[TaskId]) -> Result<(), CliError> {
    let tasks: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
    record(context, action, &tasks.join(", "))
}

/// Logs that the policy of the machine or the user has changed since it was last logged.
pub(crate) fn record_policy(context: &Context) -> Result<(), CliError> {
    // The sandbox keeps the log out of reach, and the run around this one has logged the same.
    if is_in_sandbox() {
        return Ok(());
    }
    let files = context.policy_files();
    let hash = |path: Option<PathBuf>| {
        path.and_then(|path| std::fs::read(path).ok()).map(|bytes| content_hash(&bytes))
    };
    let (machine, user) = (hash(files.ceiling), hash(files.user));
    if machine.is_none() && user.is_none() && path(context).is_none_or(|path| !path.exists()) {
        return Ok(());
    }
    let said = |hash: Option<String>| hash.unwrap_or_else(|| "none".to_owned());
    let about = format!("machine {}, user {}", said(machine), said(user));
    let log = Log::read(context)?;
    let last = log.entries.iter().rev().find(|entry| entry.action == Action::Policy);
    if last.is_some_and(|last| last.about == about) {
        Ok(())
    } else {
        record(context, Action::Policy, &about)
    }
}

fn path(context: &Context) -> Option<PathBuf> {
    state_file(context, "audit.ndjson")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(about: &str) -> Entry {
        let at = chrono::DateTime::UNIX_EPOCH;
        let (project, actor, previous) = (None, "ann".to_owned(), String::new());
        Entry { at, action: Action::Grant, about: about.to_owned(), project, actor, previous }
    }

    #[test]
    fn a_line_that_is_changed_or_removed_shows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.ndjson");
        for about in ["one", "two", "three"] {
            add(&path, entry(about)).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let log = Log::of(text.as_bytes());
        assert_eq!((log.entries.len(), log.broken), (3, None));
        let without = |number: usize| {
            let lines = text.lines().enumerate().filter(|(at, _)| *at != number);
            lines.flat_map(|(_, line)| [line, "\n"]).collect::<String>()
        };
        assert_eq!(Log::of(without(0).as_bytes()).broken, Some(1));
        assert_eq!(Log::of(without(1).as_bytes()).broken, Some(2));
        assert_eq!(Log::of(text.replace("two", "2").as_bytes()).broken, Some(3));
        assert_ne!(Log::of(without(2).as_bytes()).head, log.head);
    }

    #[test]
    fn entries_beside_lines_that_cannot_be_read_are_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.ndjson");
        add(&path, entry("one")).unwrap();
        let append =
            |bytes: &[u8]| OpenOptions::new().append(true).open(&path).unwrap().write_all(bytes).unwrap();
        append(b"caf\xe9\n{\"at\": \"20");
        add(&path, entry("two")).unwrap();
        let log = Log::of(&std::fs::read(&path).unwrap());
        let about: Vec<&str> = log.entries.iter().map(|entry| &*entry.about).collect();
        assert_eq!(
            (about.as_slice(), &log.unreadable[..], log.broken),
            (&["one", "two"][..], &[2, 3][..], Some(2))
        );
    }
}
